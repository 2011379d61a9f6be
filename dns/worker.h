/* The worker: one process, one loop, all queries. Start reading here, then query.h. */
#ifndef CAGE_DNS_WORKER_H
#define CAGE_DNS_WORKER_H

#include "core/audit/ring.h"
#include "core/net/loop.h"
#include "core/policy/policy.h"
#include "core/proc/seat.h"
#include "dns/bindings.h"
#include "dns/cache.h"
#include "dns/metrics.h"
#include "dns/server.h"
#include "dns/sockets.h"
#include "dns/tunnel.h"
#include "dns/upstream.h"
#include "dns/waiting.h"

/* What the master gives the worker when it forks it. */
struct worker_config {
	const struct dns_sockets *sockets;
	int control; /* to the master */
	int wake;    /* eventfd of the log writer */
	struct audit_ring *ring;
	uint64_t first_id; /* of queries that leave: its upper bits are this worker's alone */
	struct dns_metrics *metrics;
	const struct seat *seat; /* with the policy */
	struct slice sandbox;
	const struct policy_resolver *upstream; /* of the command line */
	size_t n_upstream;
	const struct addr_port *self; /* our own listeners, never answered with */
	size_t n_self;
	struct ledger *ledger;
	const unsigned char *fingerprint_key; /* CHAIN_KEY bytes */
	int bindings;                         /* listens for proxies; -1: nobody is told */
	uint64_t bindings_seed;
};

enum worker_state {
	WORKER_SERVING,
	WORKER_CHANGING, /* the policy: what was asked upstream is asked anew */
	WORKER_DRAINING
};

struct dns_asked;

struct worker {
	const struct worker_config *config;
	enum worker_state state;
	struct loop *loop;
	struct dns_server *server;
	struct dns_metrics *metrics;
	struct dns_server_stats counted; /* of the server, as far as the metrics have it */
	struct dns_cache *cache;
	struct dns_waiting *waiting;
	struct dns_bindings *bindings; /* NULL: nobody is told */
	/* The policy and what was built from it. Nothing of one outlives it: a new one takes over all who wait. */
	const struct policy *policy;
	uint32_t slot; /* in which it is mapped */
	struct audit_policy logged;
	struct dns_tunnel *tunnel;
	struct dns_upstream *upstream;
	struct dns_asked *again, **again_last; /* to be asked anew, while the policy is changed */
	struct event *control, *tick;
	uint64_t next_id, drain_deadline_us;
	struct arena arena;      /* of one name */
	char out[LIMIT_DNS_TCP]; /* the answer that is being written */
};

/* Never returns. */
_Noreturn void worker_run(const struct worker_config *config);

#endif
