/* A client's connection. It reads heads, hands each request to a transaction, and turns CONNECT into an intercepted
 * session or a tunnel.
 *
 *	HEAD -> BUSY -> HEAD ...                                       requests, one after the other
 *	HEAD -> (CONNECT) SNIFF -> TLS -> GREETED -> BUSY -> HEAD ...  intercepted: the same, but bound to one origin
 *	HEAD -> (CONNECT) SNIFF -> TLS -> GREETED -> H2                intercepted, HTTP/2: each request is a child
 *	HEAD -> (CONNECT) TUNNEL                                       opaque, by a tunnel rule
 *
 * SOCKS and CAPTURED, in which connections of other entrances begin, stand in the place of the HEAD of a CONNECT.
 *
 * A child is a connection in memory, for one request of an HTTP/2 connection, its parent (conn_h2.c): HEAD -> BUSY, bound
 * to the parent's origin, and gone with it.
 */
#ifndef CAGE_PROXY_CONN_H
#define CAGE_PROXY_CONN_H

#include "core/http/h1.h"
#include "core/http/socks5.h"
#include "core/http/url.h"
#include "core/net/stream.h"
#include "proxy/entrance.h"
#include "proxy/refusal.h"
#include "proxy/worker.h"

struct captured;
struct h2_server;
struct txn;

enum conn_state {
	CONN_HEAD,     /* waits for a request head */
	CONN_SOCKS,    /* is asked who and where to in SOCKS5 */
	CONN_CAPTURED, /* waits for the first bytes, which say where to */
	CONN_SNIFF,    /* after CONNECT: TLS or HTTP? */
	CONN_TLS,      /* handshake with the client */
	CONN_GREETED,  /* the handshake is over, and nothing was asked yet: the client may still turn away */
	CONN_BUSY,     /* a transaction is under way */
	CONN_H2,       /* HTTP/2: the server owns the stream */
	CONN_TUNNEL,   /* the tunnel owns the stream */
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
	struct conn *next, *prev; /* in worker->conns; children stand before their parent */
	enum entrance entrance;
	enum conn_state state;
	struct stream *down;  /* NULL in CONN_H2 */
	uint64_t id;          /* children have their parent's */
	size_t seat;          /* in worker->seats; 0: nobody has shown that it is his */
	struct slice sandbox; /* who sits there */
	bool is_bound;        /* inside a CONNECT */
	struct origin origin;
	struct h1_gate gate;
	struct txn *txn;           /* in CONN_BUSY and CONN_TUNNEL */
	struct socks5 socks;       /* in CONN_SOCKS */
	struct captured *captured; /* in CONN_CAPTURED */

	/* A refusal that was logged at CONNECT or ClientHello and is told to the client inside TLS. */
	enum reason refused; /* REASON_NONE: none */
	uint64_t refused_txn;
	char refused_rule[LIMIT_RULE_ID];
	size_t refused_rule_len;

	/* HTTP/2 */
	struct h2_server *h2;         /* in CONN_H2 */
	bool has_asked;               /* in CONN_H2: there was a request, or what should have been one */
	struct conn *children;        /* of a parent */
	struct conn *parent;          /* of a child; NULL otherwise */
	struct conn *sibling, *elder; /* the next and the one before, among the parent's children */

	struct leaf_waiter leaf;
	char leaf_name[LIMIT_HOST + 1]; /* the name the client asked a certificate for */
	struct deferred work;           /* looks for the next head */
};

void conn_new(struct worker *w, int fd, enum entrance entrance);

/* For one request over HTTP/2 (conn_h2.c). Takes inner over; NULL without memory. */
struct conn *conn_new_child(struct conn *parent, struct stream *inner);

/* The only way to change the state; a transition that is not in the picture above ends the worker. */
void conn_enter(struct conn *c, enum conn_state next);

/* Ends the connection at once, with whatever it does. */
void conn_close(struct conn *c);

/* Sends what is queued, then ends it. */
void conn_finish(struct conn *c);

/* May another request be on its way? Also a client that has ended its side may have sent more before. */
bool conn_has_more(const struct conn *c);

/* The client has shown that this seat is its. */
void conn_identify(struct conn *c, size_t seat);

/* It has to show it again, unless it did so for the connection as a whole. */
void conn_forget(struct conn *c);

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

/* conn_h2.c: the handshake is over and has chosen HTTP/2. */
void conn_h2_start(struct conn *c);

/* Requests under way are finished, others not taken any more; then the connection ends. */
void conn_h2_drain(struct conn *c);

/* The same where each of them has its answer, or is about to get it: the client reads it before it is told to leave. */
void conn_h2_drain_after(struct conn *c);

/* Part of the end of a parent: its children end with it. */
void conn_h2_leave(struct conn *c);

/* Part of the end of a child. */
void conn_h2_leave_parent(struct conn *c);

/* The hello callback of the worker's server context. */
int conn_on_hello(SSL *ssl, int *alert, void *arg);

/* ---- between the files of the connection ---- */

/* Binds it to what was, or could have been, asked for by CONNECT. */
void conn_bind(struct conn *c, const struct host *host, uint16_t port);

/* Goes on with the first bytes inside. */
void conn_sniff(struct conn *c);

/* Do the bytes that wait begin like TLS? */
bool conn_has_hello(const struct conn *c);

/* A refusal that belongs to no request: logged and told in HTTP, then the connection ends. */
void conn_refuse(struct conn *c, enum reason reason, enum audit_stage stage);

/* The client ended, or took too long, before it had said where to. */
void conn_ended_early(struct conn *c, enum cage_status why);

/* conn_answer.c: the answer to what asked to be connected. */
void conn_answer_connected(struct conn *c);
void conn_answer_refused(struct conn *c, const struct refusal *r);

/* conn_socks.c */
void conn_socks_begin(struct conn *c);
void conn_socks_look(struct conn *c);

/* conn_captured.c */
bool conn_captured_begin(struct conn *c, int fd); /* false: no memory, or nobody knows where it was going */
void conn_captured_look(struct conn *c);
void conn_captured_ended(struct conn *c, enum cage_status why);
int conn_captured_hello(struct conn *c, SSL *ssl); /* the hello callback in CONN_CAPTURED */
void conn_captured_free(struct conn *c);

#endif
