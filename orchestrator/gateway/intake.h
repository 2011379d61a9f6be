/* The intake: where the orchestrator asks, over TLS, one request on each connection. Without the token nothing is told but whether we
 * are there. Heads are read by the strict reader of core/http; heads, bodies, connections and time are bounded. */
#ifndef CAGE_GATEWAY_INTAKE_H
#define CAGE_GATEWAY_INTAKE_H

#include "core/base/arena.h"
#include "core/http/h1.h"
#include "core/net/stream.h"
#include "orchestrator/gateway/change.h"

enum conn_state {
	CONN_HEAD,
	CONN_BODY,
	CONN_WAITS, /* for a change */
	CONN_OVER
};

struct conn {
	struct conn *next;
	struct intake *intake;
	struct stream *stream;
	enum conn_state state;
	bool is_known; /* it has shown the token */
	struct arena arena;
	struct h1_gate gate;
	struct message head;
	struct h1_body framing;
	char *body; /* owned; NULL: none */
	size_t len;
	struct change *change; /* that it waits for; NULL: none */
};

/* False with a message. */
bool intake_open(struct gateway *g);
void intake_close(struct gateway *g);

struct gateway *conn_gateway(const struct conn *c);

/* Each ends the connection, which is gone then. fields: further ones, with their line breaks; "": none. */
void conn_answer(struct conn *c, int status, const char *type, const char *fields, struct slice body);

/* value is taken over. */
void conn_answer_json(struct conn *c, int status, const char *type, json_t *value);
void conn_problem(struct conn *c, int status, const char *detail);

/* It is answered when that is done. */
void conn_await(struct conn *c, struct change *change);

/* api.c: its request is whole. */
void api_handle(struct conn *c);

#endif
