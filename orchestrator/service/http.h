/* HTTP in front of the API: listeners, who may ask, requests with their bodies within bounds, and answers. */
#ifndef CAGE_SERVICE_HTTP_H
#define CAGE_SERVICE_HTTP_H

#include <event2/buffer.h>

#include "core/http/message.h"
#include "orchestrator/service/service.h"

enum request_state {
	REQUEST_RECEIVING, /* its body comes */
	REQUEST_HANDLING,  /* somebody works on it */
	REQUEST_STREAMING, /* its answer has begun */
	REQUEST_OVER
};

struct request {
	struct request *next;
	struct http *http;
	struct service *service;
	struct conn *conn;
	struct arena arena;      /* all of it that has no bound of its own */
	struct message head;     /* in the arena */
	struct evbuffer *fields; /* of the answer */
	enum request_state state;
	bool chunked, bare; /* the answer: in chunks; without a body, as for HEAD */
	char id[LIMIT_SERVE_REQUEST_ID + 1];
	char sandbox[STORE_ID];          /* of the path; "": none */
	char path[LIMIT_SERVE_PATH + 1]; /* of a file, decoded; "": none */
	const struct route *route;       /* NULL: nothing has that method and path */
	struct slice query;              /* as it came */
	struct evbuffer *body;           /* NULL: none */
	int spool;                       /* the body of a file, at its beginning; -1: none */
	size_t length;                   /* bytes of the body */
	int refused;                     /* status that its body has earned it; 0: none */
	struct key *key;                 /* of idempotency; NULL: none, or others hold it now */
	/* The client is gone: work for it ends. NULL: nothing to end. */
	void (*gone)(void *work);
	/* It has read what was sent. NULL: not of interest. */
	void (*drained)(void *work);
	void *work;
};

bool http_start(struct service *s);
void http_free(struct service *s);

/* Bytes of answers that clients have not read. */
size_t http_unsent(const struct http *h);

/* The service is stopping: no more connections. */
void http_stop(struct service *s);

/* How many requests are being worked on. */
size_t http_busy(const struct service *s);

/* ---- answers: each ends the request, which is gone then ---- */

/* value is taken over. */
void answer_json(struct request *r, int status, json_t *value);
void answer_nothing(struct request *r);
void answer_text(struct request *r, const char *type, struct slice text);

/* All of a file from its beginning; fd is taken over. */
void answer_file(struct request *r, int fd, size_t size);

/* What a problem says (RFC 9457). */
struct problem {
	int status;
	const char *type;   /* NULL: about:blank */
	const char *reason; /* of a tool call that was denied; NULL: none */
	const char *detail;
};

/* A new object; instance: the id of its request. */
json_t *problem_json(const struct problem *p, const char *instance);
void answer_told(struct request *r, const struct problem *p);

/* problem+json; detail like printf. */
void answer_problem(struct request *r, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same with a list of errors, or the reason of a denied tool call; both may be NULL. errors is taken over. */
void answer_refusal(struct request *r, int status, const char *reason, json_t *errors, const char *detail);

/* What the store could not do. */
void answer_store(struct request *r, enum store_result result);

/* An answer that was kept for its idempotency key. */
void answer_again(struct request *r, const struct answer *a);

void add_header(struct request *r, const char *name, const char *value);

/* ---- answers in pieces ---- */

void stream_begin(struct request *r, const char *type);

/* Adds bytes. */
void stream_add(struct request *r, struct slice bytes);

/* Bytes that the client has not read yet. */
size_t stream_unsent(const struct request *r);
void stream_end(struct request *r);

/* ---- what was asked ---- */

/* A parameter of the query, decoded; NULL: it is not there. */
const char *query_value(struct request *r, const char *name);

/* Undoes percent escapes, in the request's arena; NULL: a NUL is among them, or there is no memory. */
const char *request_decode(struct request *r, struct slice text);

/* A header field; NULL: it is not there. */
const char *request_field(struct request *r, const char *name);

/* The body as JSON; NULL: it was answered. */
json_t *request_json(struct request *r);
struct slice request_body(struct request *r);

#endif
