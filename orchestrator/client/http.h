/* One request and its answer over a connection of its own: HTTP/1.1 as core/http reads it, and each wait has an end. */
#ifndef CAGE_CLIENT_HTTP_H
#define CAGE_CLIENT_HTTP_H

#include "core/http/h1.h"
#include "orchestrator/client/place.h"

struct http_request {
	const char *method;
	struct slice target; /* escaped, with its query */
	const char *type;    /* of the body; NULL: there is none */
	struct slice body;   /* all of it, unless it comes from a file */
	bool from_file;
	int fd;             /* with from_file: it is sent until its end */
	const char *name;   /* of that file, for messages */
	const char *key;    /* Idempotency-Key; NULL: none */
	unsigned answer_ms; /* beyond the time that every answer has */
};

/* Zeroed before its first use. */
struct http {
	int fd;
	struct arena arena; /* of the head and of trailers */
	struct message head;
	struct h1_body body;
	char in[LIMIT_HEAD + 1]; /* what came and was not used is in[at] to in[len] */
	size_t at, len;
};

enum http_result {
	HTTP_ANSWERED, /* the head is there */
	HTTP_FAILED,   /* it was said why */
	HTTP_BROKEN    /* the same, after the connection was made: whether the request was heard is not known */
};

/* Sends it and reads the head of the answer. To be closed, whatever comes. */
enum http_result http_ask(struct http *h, const struct place *p, const struct http_request *r) MUST_CHECK;

/* The next piece of the body, good until the next call: CAGE_OK; CAGE_EOF: it is whole. All else was said. idle_ms: the
 * longest wait for a byte. */
enum cage_status http_read(struct http *h, int idle_ms, struct slice *piece) MUST_CHECK;

void http_close(struct http *h);

#endif
