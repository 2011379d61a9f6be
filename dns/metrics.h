/* Counters of the worker, in shared memory: it writes, the master reads them for /metrics. */
#ifndef CAGE_DNS_METRICS_H
#define CAGE_DNS_METRICS_H

#include "core/proc/metrics.h"
#include "dns/server.h"

struct dns_metrics {
	struct decision_counts decisions;
	metric dropped;                  /* packets that no answer is right for */
	metric local, cached, forwarded; /* queries by where their answer comes from */
	metric udp_queries, tcp_queries, udp_answers, tcp_answers, udp_limited, udp_ignored, udp_unsent, tcp_taken,
		tcp_refused, tcp_cut;               /* as in struct dns_server_stats, of all workers there were */
	metric joined;                              /* of those forwarded: had company already */
	metric waiting, cache_entries, cache_bytes; /* now */
	metric log_lost, log_pending;
	struct histogram upstream_us; /* from the first question to the upstream's answer */
};

/* What the server has counted since `before`. */
void dns_metrics_count(struct dns_metrics *m, const struct dns_server_stats *now,
		       const struct dns_server_stats *before);

/* The Prometheus text. */
void dns_metrics_write(struct text *t, const struct dns_metrics *m, uint64_t policy_gen, bool log_ok);

#endif
