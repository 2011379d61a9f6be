/* What the files of the way to a server share. */
#ifndef CAGE_PROXY_UPSTREAM_PRIVATE_H
#define CAGE_PROXY_UPSTREAM_PRIVATE_H

#include "core/net/dial.h"
#include "proxy/upstream.h"

enum reach_state {
	REACH_WAIT, /* another one is on its way to the same server, which may have room for both */
	REACH_RESOLVE,
	REACH_DIAL,
	REACH_TLS,
	REACH_FAILED
};

/* What became of a reach that others may wait for. */
enum reach_outcome {
	REACH_GIVEN_UP,
	REACH_MISSED, /* it has failed, and so would the others */
	REACH_GOT_H1, /* a connection for one request at a time: each needs its own */
	REACH_GOT_H2
};

struct reach {
	struct worker *worker;
	struct upstream_want want;
	upstream_cb cb;
	void *arg;
	enum reach_state state;
	struct resolve *resolve;
	struct dial *dial;
	struct upstream *up;
	struct upstream_result result;
	uint64_t step_us; /* when this step began */
	struct deferred fail;
	struct deferred wake;            /* in REACH_WAIT */
	struct reach *next_h2, *prev_h2; /* in worker->h2_reaches, if it offers HTTP/2 */
	bool is_alone;                   /* it waits for nobody, and nobody for it */
	size_t key_len;
	char key[UPSTREAM_KEY];
};

/* Resolves, dials and so on. */
void reach_start(struct reach *r);

/* Hands the result over; the reach is gone after this. */
void reach_finish(struct reach *r, enum reason reason);

/* The same later in this pass. */
void reach_fail_later(struct reach *r, enum reason reason);

uint64_t reach_step_time(struct reach *r);

/* ---- upstream_h2.c ---- */

/* A reach that offers HTTP/2 begins: it starts, or waits for one that did. */
void upstream_h2_join(struct reach *r);

/* It is over: those that wait for it go on. */
void upstream_h2_part(struct reach *r, enum reach_outcome outcome);

/* r->up has chosen HTTP/2: from now on it is shared, and r->up one request on it. false without memory. */
bool upstream_h2_share(struct reach *r);

/* A request on a shared connection with that key; NULL: there is none, or none with room. */
struct upstream *upstream_h2_take(struct worker *w, const struct upstream_want *want, struct slice key);

/* May a connection that is there already, with that address, be used? Not once cage-dns has answered others, nor when its
 * answer is over and upstream.bound is set. */
bool upstream_is_bound(struct worker *w, const struct upstream_want *want, const struct addr *addr);

#endif
