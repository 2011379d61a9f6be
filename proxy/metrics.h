/* Counters of one worker, in shared memory: the worker writes, the master reads them for /metrics. */
#ifndef CAGE_PROXY_METRICS_H
#define CAGE_PROXY_METRICS_H

#include <stdatomic.h>

#include "core/audit/event.h"
#include "core/base/reason.h"
#include "core/base/text.h"

#define METRICS_DECISIONS (DECISION_ERROR + 1)
#define METRICS_BUCKETS 12

typedef _Atomic uint64_t metric;

/* How long something took, in buckets that double as limits for Prometheus. */
struct histogram {
	metric buckets[METRICS_BUCKETS + 1]; /* the last one: longer than all limits */
	metric sum_us;
};

struct metrics {
	metric decisions[METRICS_DECISIONS][REASON_COUNT];
	metric bytes_inspected_out, bytes_inspected_in;
	metric bytes_uninspected_out, bytes_uninspected_in;
	metric connections, connections_open;
	metric upstream_new, upstream_reused, upstream_resumed, pool_idle;
	metric leaves_minted, leaves_cached;
	metric log_lost, log_pending;
	metric held_bytes;
	struct histogram request_us;  /* head read to response done */
	struct histogram upstream_us; /* to a ready upstream connection that was not pooled */
};

/* One writer per counter, so a plain add without a lock is enough. */
static inline void metric_add(metric *m, uint64_t n)
{
	atomic_store_explicit(m, atomic_load_explicit(m, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline void metric_set(metric *m, uint64_t n)
{
	atomic_store_explicit(m, n, memory_order_relaxed);
}

void histogram_add(struct histogram *h, uint64_t us);

/* The Prometheus text of all workers together. */
void metrics_write(struct text *t, const struct metrics *workers, size_t n_workers, uint64_t policy_gen, bool log_ok);

#endif
