/* A client's connection. It reads heads, hands each request to a transaction, and turns CONNECT into an intercepted
 * session or a tunnel.
 *
 *	HEAD -> BUSY -> HEAD ...                                       requests, one after the other
 *	HEAD -> (CONNECT) SNIFF -> TLS -> GREETED -> BUSY -> HEAD ...  intercepted: the same, but bound to one origin
 *	HEAD -> (CONNECT) TUNNEL                                       opaque, by a tunnel rule
 */
#ifndef CAGE_PROXY_CONN_H
#define CAGE_PROXY_CONN_H

#include "core/http/h1.h"
#include "core/http/url.h"
#include "core/net/stream.h"
#include "proxy/refusal.h"
#include "proxy/worker.h"

struct txn;

enum conn_state {
	CONN_HEAD,    /* waits for a request head */
	CONN_SNIFF,   /* after CONNECT: TLS or HTTP? */
	CONN_TLS,     /* handshake with the client */
	CONN_GREETED, /* the handshake is over, and nothing was asked yet: the client may still turn away */
	CONN_BUSY,    /* a transaction is under way */
	CONN_TUNNEL,  /* the tunnel owns the stream */
	CONN_CLOSED
};

/* What CONNECT has bound a connection to: every request on it must name the same host and port. */
struct origin {
	struct host host;
	uint16_t port;
	enum scheme scheme;
	char text[LIMIT_HOST + 1]; /* the host's bytes */
};

#define CONN_MAGIC 0xc0117e57u

struct conn {
	unsigned magic;
	struct worker *worker;
	struct conn *next, *prev; /* in worker->conns */
	enum conn_state state;
	struct stream *down;
	uint64_t id;
	struct slice sandbox;
	bool is_bound; /* inside a CONNECT */
	struct origin origin;
	struct h1_gate gate;
	struct txn *txn; /* in CONN_BUSY and CONN_TUNNEL */

	/* A refusal that was logged at CONNECT or ClientHello and is told to the client inside TLS. */
	enum reason refused; /* REASON_NONE: none */
	uint64_t refused_txn;
	char refused_rule[LIMIT_RULE_ID];
	size_t refused_rule_len;

	struct leaf_waiter leaf;
	char leaf_name[LIMIT_HOST + 1]; /* the name the client asked a certificate for */
	struct deferred work;           /* looks for the next head */
};

void conn_new(struct worker *w, int fd);

/* The only way to change the state; a transition that is not in the picture above ends the worker. */
void conn_enter(struct conn *c, enum conn_state next);

/* Ends the connection at once, with whatever it does. */
void conn_close(struct conn *c);

/* Sends what is queued, then ends it. */
void conn_finish(struct conn *c);

/* May another request be on its way? Also a client that has ended its side may have sent more before. */
bool conn_has_more(const struct conn *c);

/* The transaction is over and the connection may be used again. */
void conn_next(struct conn *c);

/* There may be a head to read that had to wait. */
void conn_look_again(struct conn *c);

/* The CONNECT in c->txn was allowed: answers it and goes on to intercept. */
void conn_intercept(struct conn *c);

/* The refusal was logged; tell it to the client with the answer to its first request. */
void conn_refuse_later(struct conn *c, enum reason reason, uint64_t txn, struct slice rule);

/* A line about the connection itself; txn 0: about no transaction. */
void conn_log(struct conn *c, enum audit_decision decision, enum reason reason, enum audit_stage stage, uint64_t txn);

/* Writes a refusal. */
void conn_write_refusal(struct conn *c, const struct refusal *r, bool close, bool head_only);

/* The hello callback of the worker's server context. */
int conn_on_hello(SSL *ssl, int *alert, void *arg);

#endif
