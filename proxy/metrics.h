/* Counters of one worker, in shared memory: the worker writes, the master reads them for /metrics. */
#ifndef CAGE_PROXY_METRICS_H
#define CAGE_PROXY_METRICS_H

#include "core/proc/metrics.h"

struct metrics {
	struct decision_counts decisions;
	metric bytes_inspected_out, bytes_inspected_in;
	metric bytes_uninspected_out, bytes_uninspected_in;
	metric connections, connections_open;
	metric upstream_new, upstream_reused, upstream_resumed, pool_idle, policies;
	metric leaves_minted, leaves_cached;
	metric log_lost, log_pending;
	metric held_bytes;
	struct histogram request_us;  /* head read to response done */
	struct histogram upstream_us; /* to a ready upstream connection that was not pooled */
};

/* The Prometheus text of all workers together. */
void metrics_write(struct text *t, const struct metrics *workers, size_t n_workers, uint64_t policy_gen, bool log_ok);

#endif
