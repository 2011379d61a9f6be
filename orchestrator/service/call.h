/* The life of what is done inside a sandbox for somebody: a tool call, or a file that is got or put. It is decided, logged, and then
 * made: no log, no call. One that is denied is logged too, and answered then.
 *
 * When its client leaves it is cancelled; with an Idempotency-Key it goes on, and its answer is kept for the client that comes
 * again. */
#ifndef CAGE_SERVICE_CALL_H
#define CAGE_SERVICE_CALL_H

#include "orchestrator/service/api.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/tools.h"

enum call_state {
	CALL_LOGGING,   /* that it is allowed */
	CALL_MAKING,    /* it has a job in the sandbox */
	CALL_CANCELLED, /* its time is over, and its job is to end */
	CALL_REFUSING   /* that it is denied is being logged */
};

struct call;

/* What kind of call it is. Each is called at most once for a call, but data and drained. */
struct call_kind {
	void (*make)(struct call *c, struct link *link); /* begins its job with call_job(), or ends the call */
	void (*data)(struct call *c, enum frame_kind kind, struct slice bytes); /* NULL: none is of interest */
	void (*drained)(struct call *c); /* there is room for more of its input; NULL: it has none */
	void (*succeed)(struct call *c, struct job_end end);
	void (*free)(struct call *c);
};

/* The first member of the kind's own struct. */
struct call {
	struct call *next;
	const struct call_kind *kind;
	struct service *service;
	struct request *request; /* NULL: its client has left */
	struct key *key;         /* NULL: none */
	bool is_marked;          /* it is stored that its key was begun */
	enum call_state state;
	enum tool tool;
	struct link_job *job;
	struct event *clock;
	unsigned stall_ms;  /* without anything that happens; 0: any time */
	uint64_t until_us;  /* monotonic: all of it */
	const char *reason; /* why it is denied, ... */
	json_t *errors;     /* ... and what is wrong with its arguments; NULL: nothing */
	char sandbox[STORE_ID];
	char instance[LIMIT_SERVE_REQUEST_ID + 1];
	char name[LIMIT_SANDBOX + 1];        /* of the tool, and ... */
	char detail[LIMIT_SERVE_DETAIL + 1]; /* ... what it is to do, as they are logged */
};

/* Takes the key of the request. False: no memory; the call is as it was. */
bool call_init(struct call *c, const struct call_kind *kind, struct request *r, enum tool t);

/* Logs the decision, and does what follows from it. reason: why it is denied; NULL: it is allowed. */
void call_decide(struct call *c, const char *reason, unsigned time_ms);

/* Begins the job of it; false: it could not, and the call is over. */
bool call_job(struct call *c, struct link *link, enum frame_kind kind, struct slice payload);

/* Something has happened: its stall begins anew. */
void call_touch(struct call *c);

/* ---- ends: the call is gone then ---- */

/* answer is taken over. */
void call_answer(struct call *c, int status, json_t *answer);
void call_fail(struct call *c, const struct problem *p);
void call_fail_errno(struct call *c, int error);

/* Its request, for an answer that can't be kept; NULL: its client has left. */
struct request *call_leave(struct call *c);

/* All of them, without an answer: the service ends. */
void calls_free(struct service *s);

#endif
