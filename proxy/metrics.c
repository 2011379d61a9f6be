/* Counting, and the Prometheus text format. */
#include "proxy/metrics.h"

#include <stddef.h>

static const uint64_t bucket_us[METRICS_BUCKETS] = {1000,   2500,   5000,    10000,   25000,    50000,
						    100000, 250000, 1000000, 5000000, 30000000, 120000000};
static const char *const bucket_le[METRICS_BUCKETS] = {"0.001", "0.0025", "0.005", "0.01", "0.025", "0.05",
						       "0.1",   "0.25",   "1",     "5",    "30",    "120"};

void histogram_add(struct histogram *h, uint64_t us)
{
	size_t i = 0;
	while (i < METRICS_BUCKETS && us > bucket_us[i])
		i++;
	metric_add(&h->buckets[i], 1);
	metric_add(&h->sum_us, us);
}

static uint64_t read_metric(const metric *m)
{
	return atomic_load_explicit(m, memory_order_relaxed);
}

/* The sum over workers of the counter at that offset. */
static uint64_t total(const struct metrics *w, size_t n, size_t offset)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += read_metric((const metric *)(const void *)((const char *)&w[i] + offset));
	return sum;
}

static void put_str(struct text *t, const char *s)
{
	text_put(t, slice_str(s));
}

static void put_sample(struct text *t, const char *name_and_labels, uint64_t v)
{
	put_str(t, name_and_labels);
	text_put_char(t, ' ');
	text_put_u64(t, v);
	text_put_char(t, '\n');
}

static void write_decisions(struct text *t, const struct metrics *w, size_t n)
{
	put_str(t, "# HELP cage_decisions_total Decisions by reason.\n# TYPE cage_decisions_total counter\n");
	for (int d = 0; d < METRICS_DECISIONS; d++) {
		struct slice decision = audit_decision_text((enum audit_decision)d);
		if (decision.len == 0)
			continue;
		for (size_t r = 0; r < REASON_COUNT; r++) {
			size_t offset =
				offsetof(struct metrics, decisions) + ((size_t)d * REASON_COUNT + r) * sizeof(metric);
			uint64_t v = total(w, n, offset);
			if (v == 0)
				continue;
			put_str(t, "cage_decisions_total{decision=\"");
			text_put(t, decision);
			put_str(t, "\",reason=\"");
			text_put(t, reason_code((enum reason)r));
			put_sample(t, "\"}", v);
		}
	}
}

static void put_seconds(struct text *t, const char *name, uint64_t us)
{
	char frac[6];
	uint64_t rest = us % 1000000u;
	for (size_t i = sizeof(frac); i > 0; i--) {
		frac[i - 1] = (char)('0' + rest % 10);
		rest /= 10;
	}
	put_str(t, name);
	put_str(t, "_sum ");
	text_put_u64(t, us / 1000000u);
	text_put_char(t, '.');
	text_put(t, slice_of(frac, sizeof(frac)));
	text_put_char(t, '\n');
}

static void write_histogram(struct text *t, const struct metrics *w, size_t n, const char *name, const char *help,
			    size_t offset)
{
	uint64_t count = 0;
	put_str(t, "# HELP ");
	put_str(t, name);
	put_str(t, help);
	put_str(t, "# TYPE ");
	put_str(t, name);
	put_str(t, " histogram\n");
	for (size_t i = 0; i <= METRICS_BUCKETS; i++) {
		count += total(w, n, offset + offsetof(struct histogram, buckets) + i * sizeof(metric));
		put_str(t, name);
		put_str(t, "_bucket{le=\"");
		put_str(t, i < METRICS_BUCKETS ? bucket_le[i] : "+Inf");
		put_sample(t, "\"}", count);
	}
	put_seconds(t, name, total(w, n, offset + offsetof(struct histogram, sum_us)));
	put_str(t, name);
	put_sample(t, "_count", count);
}

static const struct {
	const char *header, *sample;
	size_t offset;
} plain_metrics[] = {
#define M(header, sample, field)                                \
	{                                                       \
		header, sample, offsetof(struct metrics, field) \
	}
	M("# HELP cage_bytes_total Body bytes by direction and whether inspectors saw them.\n"
	  "# TYPE cage_bytes_total counter\n",
	  "cage_bytes_total{direction=\"out\",inspected=\"true\"}", bytes_inspected_out),
	M("", "cage_bytes_total{direction=\"in\",inspected=\"true\"}", bytes_inspected_in),
	M("", "cage_bytes_total{direction=\"out\",inspected=\"false\"}", bytes_uninspected_out),
	M("", "cage_bytes_total{direction=\"in\",inspected=\"false\"}", bytes_uninspected_in),
	M("# HELP cage_connections_total Client connections accepted.\n# TYPE cage_connections_total counter\n",
	  "cage_connections_total", connections),
	M("# HELP cage_connections_open Client connections now.\n# TYPE cage_connections_open gauge\n",
	  "cage_connections_open", connections_open),
	M("# HELP cage_upstream_connections_total Upstream connections taken, by kind.\n"
	  "# TYPE cage_upstream_connections_total counter\n",
	  "cage_upstream_connections_total{kind=\"new\"}", upstream_new),
	M("", "cage_upstream_connections_total{kind=\"pooled\"}", upstream_reused),
	M("# HELP cage_upstream_tls_resumed_total New upstream connections that resumed a TLS session.\n"
	  "# TYPE cage_upstream_tls_resumed_total counter\n",
	  "cage_upstream_tls_resumed_total", upstream_resumed),
	M("# HELP cage_pool_idle Idle upstream connections.\n# TYPE cage_pool_idle gauge\n", "cage_pool_idle",
	  pool_idle),
	M("# HELP cage_leaves_minted_total Certificates asked of the signer.\n# TYPE cage_leaves_minted_total "
	  "counter\n",
	  "cage_leaves_minted_total", leaves_minted),
	M("# HELP cage_leaves_cached Certificates kept.\n# TYPE cage_leaves_cached gauge\n", "cage_leaves_cached",
	  leaves_cached),
	M("# HELP cage_log_lost_total Refusals that found no place in the log queue.\n"
	  "# TYPE cage_log_lost_total counter\n",
	  "cage_log_lost_total", log_lost),
	M("# HELP cage_log_pending_bytes Log events that wait for the writer.\n# TYPE cage_log_pending_bytes gauge\n",
	  "cage_log_pending_bytes", log_pending),
	M("# HELP cage_held_bytes Request bodies held back for inspection.\n# TYPE cage_held_bytes gauge\n",
	  "cage_held_bytes", held_bytes),
#undef M
};

void metrics_write(struct text *t, const struct metrics *w, size_t n, uint64_t policy_gen, bool log_ok)
{
	write_decisions(t, w, n);
	for (size_t i = 0; i < sizeof(plain_metrics) / sizeof(plain_metrics[0]); i++) {
		put_str(t, plain_metrics[i].header);
		put_sample(t, plain_metrics[i].sample, total(w, n, plain_metrics[i].offset));
	}
	write_histogram(t, w, n, "cage_request_seconds", " From a request's head to the end of its response.\n",
			offsetof(struct metrics, request_us));
	write_histogram(t, w, n, "cage_upstream_seconds", " To a ready new upstream connection.\n",
			offsetof(struct metrics, upstream_us));
	put_str(t, "# HELP cage_policy_generation Counts policies loaded.\n# TYPE cage_policy_generation gauge\n");
	put_sample(t, "cage_policy_generation", policy_gen);
	put_str(t, "# HELP cage_log_available 1 when the log can be written.\n# TYPE cage_log_available gauge\n");
	put_sample(t, "cage_log_available", log_ok ? 1 : 0);
}
