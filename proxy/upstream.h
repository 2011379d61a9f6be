/* Upstream connections: from the pool, or resolved, vetted, dialled and verified (THREATS T14, T18). */
#ifndef CAGE_PROXY_UPSTREAM_H
#define CAGE_PROXY_UPSTREAM_H

#include "core/base/addr.h"
#include "core/net/stream.h"
#include "proxy/worker.h"

#define UPSTREAM_KEY 512

/* A connection to a real server, ready for a request. */
struct upstream {
	struct worker *worker;
	struct generation *gen;
	struct stream *stream;
	struct addr addr;
	bool reused;           /* there was one before this request */
	bool is_h2;            /* for this request alone: a stream of a connection that is shared (upstream_h2.c) */
	bool wants_other_alpn; /* the server did not take what was offered */
	uint64_t idle_since_us;
	struct upstream *next, *prev, *newer, *older; /* in the pool */
	size_t key_len;
	/* Sandbox, policy generation, transport, rule, name and port. The address is not looked up by: it was vetted
	 * under the same rule of the same generation. */
	char key[UPSTREAM_KEY];
};

/* What the server may choose from. */
enum upstream_offer {
	OFFER_H1_ONLY,
	OFFER_H1, /* HTTP/2 too, if it knows nothing else */
	OFFER_H2  /* HTTP/2 before HTTP/1.1 */
};

/* Where to, for whom. The pointers stay valid until the answer. */
struct upstream_want {
	struct generation *gen;
	struct slice sandbox;
	const struct policy_rule *rule; /* NULL in observe mode when no rule matched */
	const struct target *target;
	bool tls; /* false for http and for tunnels */
	enum upstream_offer offer;
};

struct upstream_result {
	enum reason reason; /* REASON_NONE: up is ready, and the callee's */
	struct upstream *up;
	const char *detail; /* a clause that says more about the reason; never the peer's own words; NULL: none */
	struct addr addr;   /* with family set when one was reached */
	uint64_t us_dns, us_connect, us_tls;
};

typedef void (*upstream_cb)(void *arg, const struct upstream_result *r);

/* A pooled connection, at once; or NULL. */
struct upstream *upstream_take_pooled(struct worker *w, const struct upstream_want *want);

struct reach; /* the way to an upstream, under way */

/* Never calls back before it returns; NULL without memory. */
struct reach *upstream_reach(struct worker *w, const struct upstream_want *want, upstream_cb cb, void *arg);
void reach_cancel(struct reach **r);

/* Ends it; ends it so that an unfinished request can't be taken for a whole one; or keeps it for the next request. */
void upstream_close(struct upstream **up);
void upstream_abort(struct upstream **up);
void upstream_finish(struct upstream **up); /* in good order, once what is queued is sent */
void upstream_release(struct upstream **up);

/* Of the connections that requests share, closes those without any that are of an older policy, or all when the worker
 * drains; ... */
void upstream_h2_expire(struct worker *w);

/* ... all whose policy is in that slot; ... */
void upstream_h2_evict(struct worker *w, uint32_t slot);

/* ... and all. */
void upstream_h2_clear(struct worker *w);

/* For tls_client_ctx_new: keeps sessions for resumption. */
int upstream_keep_session(SSL *ssl, SSL_SESSION *session);

/* Is the name itself forbidden? An address literal in a special range, or labels that spell one, without a rule that
 * lists it. */
enum reason upstream_check_name(const struct host *host, const struct policy_rule *rule);

#endif
