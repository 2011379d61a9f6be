/* The intake: where the orchestrator asks, over TLS, one request on each connection. Without the token nothing is told but whether we
 * are there. Heads are read by the strict reader of core/http; heads, bodies, connections and time are bounded. */
#ifndef CAGE_GATEWAY_INTAKE_H
#define CAGE_GATEWAY_INTAKE_H

#include <openssl/sha.h>
#include <openssl/ssl.h>

#include "core/net/stream.h"
#include "orchestrator/gateway/change.h"
#include "orchestrator/gateway/request.h"

enum conn_state {
	CONN_STRANGER, /* it has shown no token so far */
	CONN_KNOWN,
	CONN_WAITS,     /* for a change */
	CONN_DISMISSED, /* a stranger that was answered, and may go */
	CONN_OVER,      /* it was answered: it counts until it has gone */
	CONN_STATES
};

static inline bool conn_may_follow(enum conn_state from, enum conn_state to)
{
	static const unsigned next[CONN_STATES] = {
		[CONN_STRANGER] = 1u << CONN_KNOWN | 1u << CONN_DISMISSED,
		[CONN_KNOWN] = 1u << CONN_WAITS | 1u << CONN_OVER,
		[CONN_WAITS] = 1u << CONN_OVER,
	};
	return next[from] & 1u << to;
}

struct conn {
	struct conn *next;
	struct intake *intake;
	struct stream *stream;
	enum conn_state state;
	struct request request;
	struct change *change; /* that it waits for; NULL: none */
};

struct intake {
	struct gateway *gateway;
	SSL_CTX *tls;
	int fd;
	struct listener *listener; /* NULL: nobody is let in yet */
	struct conn *conns;        /* the newest first */
	size_t n_conns;
	unsigned char token[SHA256_DIGEST_LENGTH]; /* its hash */
};

/* Before the proxy is started: it listens, and gateway.intake_at says where. False with a message. */
bool intake_open(struct gateway *g);

/* From now on who comes is answered. */
bool intake_serve(struct gateway *g);
void intake_close(struct gateway *g);

/* ---- conn.c ---- */

/* Takes over both. */
void conn_open(struct intake *in, int fd, SSL *ssl);

/* Without an answer. */
void conn_close(struct conn *c);

struct gateway *conn_gateway(const struct conn *c);

/* Each is the last that is done with it. fields: further ones, with their line breaks; "": none. */
void conn_answer(struct conn *c, int status, const char *type, const char *fields, struct slice body);

/* value is taken over. */
void conn_answer_json(struct conn *c, int status, const char *type, json_t *value);
void conn_problem(struct conn *c, int status, const char *detail);

/* It is answered when that is done. */
void conn_await(struct conn *c, struct change *change);

/* api.c: its request is whole. */
void api_handle(struct conn *c);

#endif
