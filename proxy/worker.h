/* A worker: one process, one loop, many connections. Start reading here, then conn.h, txn.h, upstream.h. */
#ifndef CAGE_PROXY_WORKER_H
#define CAGE_PROXY_WORKER_H

#include <openssl/ssl.h>

#include "core/audit/ring.h"
#include "core/base/limits.h"
#include "core/net/listener.h"
#include "core/net/loop.h"
#include "core/net/resolver.h"
#include "core/policy/policy.h"
#include "core/proc/seat.h"
#include "proxy/entrance.h"
#include "proxy/leaf.h"
#include "proxy/metrics.h"
#include "proxy/tls.h"

struct bindings;
struct chain;
struct conn;
struct external_link;
struct h2_origin;
struct keyring;
struct ledger;
struct oauth2;
struct pool;
struct reach;
struct tools;
struct txn;
struct watch;

/* What the master gives a worker when it forks it. */
struct worker_config {
	unsigned index;
	const int *listeners;
	const enum entrance *entrances; /* of each of them */
	size_t n_listeners;
	int control; /* to the master */
	int signer;  /* to the signer */
	int wake;    /* eventfd of the log writer */
	struct audit_ring *ring;
	uint64_t first_id; /* of connections and transactions: its upper bits are this worker's alone */
	struct metrics *metrics;
	struct seat *seats; /* the worker's own from now on; the policies are mapped */
	size_t n_seats;
	uint64_t gen;  /* of their last change */
	bool has_auth; /* clients must show which seat is theirs */
	struct slice sandbox;
	const struct addr_port *self; /* our own listeners, never dialled */
	size_t n_self;
	EVP_PKEY *leaf_key;
	const unsigned char *ticket_keys;
	struct ledger *ledger;                /* shared by all workers */
	const unsigned char *fingerprint_key; /* CHAIN_KEY bytes */
	struct vault *vault;
	const unsigned char *placeholder_key; /* PLACEHOLDER_KEY bytes */
	const char *bindings;                 /* path of the socket of cage-dns; empty: none */
	const char *kit;                      /* directory of what the page serves; NULL: nothing but the CA */
	const char *ca_dir;
	const uint64_t *out; /* bytes that may be sent to servers, by all workers; NULL: any number */
	int watch;           /* packet socket, in the first worker; -1: none */
};

/* A policy in use, with what was built from it. Lives until the last transaction that began under it has ended. */
struct generation {
	const struct policy *policy;
	uint64_t gen; /* the policy's own, kept here since its memory may be somebody else's by now, as are: */
	uint32_t slot;
	size_t seat; /* that it was made for, ... */
	char sandbox[LIMIT_SANDBOX];
	size_t sandbox_len; /* ... and who sat there; 0: it is the first */
	struct audit_policy logged;
	uint64_t used_us; /* when it was asked for last */
	size_t refs;      /* one for being current, one per transaction, tunnel and upstream connection */
	SSL_CTX *client_ctx;
	struct resolver *resolver;      /* NULL: nobody is asked for names (policy_asks_resolvers) */
	struct chain *chain;            /* the inspectors as the policy has them */
	struct external_link *external; /* NULL: none of them is external */
	struct keyring *keyring;        /* NULL: the policy has no secrets */
	struct worker *worker;
};

enum worker_state { WORKER_SERVING, WORKER_DRAINING };

struct worker {
	const struct worker_config *config;
	enum worker_state state;
	struct loop *loop;
	struct seat *seats;
	size_t n_taken;              /* behind the last at which somebody sits */
	struct generation **current; /* of each seat; NULL: it has no policy, or nobody needs it now */
	struct generation **slots;   /* those alive, by where their policy is mapped */
	struct metrics *metrics;
	struct leaves *leaves;
	SSL_CTX *server_ctx;
	size_t waited; /* most bytes that waited in streams since memory was given back last */
	struct pool *pool;
	struct h2_origin *h2_origins; /* connections with servers that requests share */
	size_t n_h2_origins;
	struct reach *h2_reaches; /* ways to servers that may become such */
	struct oauth2 *oauth2;
	struct bindings *bindings; /* what cage-dns has answered; NULL: nobody tells */
	struct watch *watch;       /* NULL: nothing to watch */
	struct tools *tools;       /* who tell of tool calls */
	struct lru *sessions;      /* of upstreams, by generation, name and port */
	struct conn *conns;        /* all client connections */
	size_t n_conns;
	size_t held; /* bytes of request bodies held back */
	uint64_t next_id;
	uint64_t drain_deadline_us;
	struct listener *listeners[LIMIT_LISTENERS];
	struct event *control, *tick;
	struct event *log_wait; /* runs while heads wait for the log writer */
	struct txn *spare_txn;  /* kept for the next request */
};

/* Never returns. */
_Noreturn void worker_run(const struct worker_config *config);

/* Counts bytes of bodies that are held, or no longer. */
void worker_count_held(struct worker *w, int64_t change);

/* Takes so many bytes out of what may be sent to servers. False: there are not so many left. */
bool worker_spend(struct worker *w, uint64_t bytes) MUST_CHECK;

/* Is the log's queue so full that a decision might find no place? Then everybody is looked at again soon. */
bool worker_must_wait_for_log(struct worker *w);

/* Unique over workers and restarts. */
uint64_t worker_new_id(struct worker *w);

/* Of the policy that holds at a seat, made now if nobody has asked there before; NULL without memory. */
struct generation *worker_generation(struct worker *w, size_t seat);

/* The same for a line in the log: another's, rather than none. */
const struct generation *worker_logged(struct worker *w, size_t seat);

/* The policy of the seat is mapped already; NULL without memory. One reference is the caller's. */
struct generation *generation_new(struct worker *w, size_t seat);
struct generation *generation_ref(struct generation *g);
void generation_unref(struct generation **g);

/* Lets go of one that is its seat's alone; its policy stays where it is. */
void generation_put_away(struct generation **g);

/* Is its policy the one that holds now? */
bool generation_is_current(const struct generation *g);

/* Of whom it is, in the log. */
struct slice generation_sandbox(const struct generation *g);

/* Lets go of the external inspector: nobody will ask under this policy any more. */
void generation_hang_up(struct generation *g);

/* ---- the log, as seen from a worker ---- */

/* Fills what every line has. */
void worker_event(struct audit_event *e, enum audit_kind kind, const struct generation *g);

/* See audit_intent, audit_result, audit_note. They also count the decision and wake the log writer. A note says
 * whether it was taken. */
enum cage_status worker_log_intent(struct worker *w, const struct audit_event *e) MUST_CHECK;
void worker_log_result(struct worker *w, const struct audit_event *e);
bool worker_log_note(struct worker *w, const struct audit_event *e);

#endif
