/* The making of a sandbox from what was asked for, by a request or by a step of a workflow: it is checked, its directory is made with
 * its policy and files, and then it is stored and queued. A directory without a row is nobody's: whatever fails on the way, the
 * sweeper finds it. */
#ifndef CAGE_SERVICE_CREATION_H
#define CAGE_SERVICE_CREATION_H

#include "orchestrator/service/service.h"

struct creation;

/* Why there is none. */
struct creation_refusal {
	int status;         /* of an answer */
	const char *detail; /* a sentence */
	json_t *errors;     /* of single values; NULL: none. To be counted by who keeps it */
	const char *reason; /* of the closed list; NULL: none but the status */
};

struct creation_order {
	struct service *service;
	const json_t *body;
	/* Of a workflow, else NULL: what is added to the spec; and files of others, a list of {from, to, sha256}. */
	json_t *more, *inputs; /* taken over */
	struct creation **at;  /* where it is while it is under way; NULL there: it is not */
	/* Within the transaction that stores it: what has to be stored with it, or not at all. */
	enum store_result (*with)(void *arg, const struct row *row);
	/* One of these is called, maybe before creation_begin() returns. */
	void (*made)(void *arg);
	void (*refused)(void *arg, const struct creation_refusal *why);
	void *arg;
};

void creation_begin(const struct creation_order *o);

/* Is there room for one more in the queue and on the disk? Without it, creation_begin() would refuse. */
bool creation_has_place(const struct service *s);

/* Nobody wants it any more: nothing is called. */
void creation_abandon(struct creation *c);

/* Is a body good? Its spec, a new object; NULL with errors. */
json_t *creation_spec(const struct config *config, const json_t *body, json_t **full, json_t *errors);

#endif
