/* Counters of workers in shared memory: each worker writes its own, the master reads all of them for /metrics. */
#ifndef CAGE_PROC_METRICS_H
#define CAGE_PROC_METRICS_H

#include <stdatomic.h>
#include <stddef.h>

#include "core/audit/event.h"
#include "core/base/reason.h"
#include "core/base/text.h"

#define METRICS_DECISIONS (DECISION_ERROR + 1)
#define METRICS_BUCKETS 12

typedef _Atomic uint64_t metric;

/* By decision and reason. */
struct decision_counts {
	metric n[METRICS_DECISIONS][REASON_COUNT];
};

/* How long something took, in buckets that double as limits for Prometheus. */
struct histogram {
	metric buckets[METRICS_BUCKETS + 1]; /* the last one: longer than all limits */
	metric sum_us;
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

/* ---- the Prometheus text ---- */

/* The counters of n workers: structs of `size` bytes, one after the other. Offsets below are into such a struct. */
struct metrics_of {
	const void *first;
	size_t size, n;
};

/* One counter or gauge. */
struct metric_line {
	const char *header; /* its HELP and TYPE lines; empty for a further sample of the one before */
	const char *sample; /* name and labels */
	size_t offset;
};

void metrics_put_decisions(struct text *t, const struct metrics_of *all, size_t offset);
void metrics_put_lines(struct text *t, const struct metrics_of *all, const struct metric_line *lines, size_t n);
void metrics_put_histogram(struct text *t, const struct metrics_of *all, const char *name, const char *help,
			   size_t offset);

/* What only the master knows. */
void metrics_put_master(struct text *t, uint64_t policy_gen, bool log_ok);

#endif
