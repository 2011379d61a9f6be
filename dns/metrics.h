/* Counters of the worker, in shared memory: it writes, the master reads them for /metrics. */
#ifndef CAGE_DNS_METRICS_H
#define CAGE_DNS_METRICS_H

#include "core/proc/metrics.h"

struct dns_metrics {
	struct decision_counts decisions;
	metric dropped;                             /* packets that no answer is right for */
	metric local, cached, forwarded;            /* queries by where their answer comes from */
	metric joined;                              /* of those forwarded: had company already */
	metric waiting, cache_entries, cache_bytes; /* now */
	metric log_lost, log_pending;
	struct histogram upstream_us; /* from the first question to the upstream's answer */
};

/* The Prometheus text. */
void dns_metrics_write(struct text *t, const struct dns_metrics *m, uint64_t policy_gen, bool log_ok);

#endif
