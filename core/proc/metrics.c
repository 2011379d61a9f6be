/* Counting, and the Prometheus text format. */
#include "core/proc/metrics.h"

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
static uint64_t total(const struct metrics_of *all, size_t offset)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < all->n; i++)
		sum += read_metric((const metric *)(const void *)((const char *)all->first + i * all->size + offset));
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

void metrics_put_decisions(struct text *t, const struct metrics_of *all, size_t offset)
{
	put_str(t, "# HELP cage_decisions_total Decisions by reason.\n# TYPE cage_decisions_total counter\n");
	for (int d = 0; d < METRICS_DECISIONS; d++) {
		struct slice decision = audit_decision_text((enum audit_decision)d);
		if (decision.len == 0)
			continue;
		for (size_t r = 0; r < REASON_COUNT; r++) {
			uint64_t v = total(all, offset + ((size_t)d * REASON_COUNT + r) * sizeof(metric));
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

void metrics_put_histogram(struct text *t, const struct metrics_of *all, const char *name, const char *help,
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
		count += total(all, offset + offsetof(struct histogram, buckets) + i * sizeof(metric));
		put_str(t, name);
		put_str(t, "_bucket{le=\"");
		put_str(t, i < METRICS_BUCKETS ? bucket_le[i] : "+Inf");
		put_sample(t, "\"}", count);
	}
	put_seconds(t, name, total(all, offset + offsetof(struct histogram, sum_us)));
	put_str(t, name);
	put_sample(t, "_count", count);
}

void metrics_put_lines(struct text *t, const struct metrics_of *all, const struct metric_line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		put_str(t, lines[i].header);
		put_sample(t, lines[i].sample, total(all, lines[i].offset));
	}
}

void metrics_put_master(struct text *t, uint64_t policy_gen, bool log_ok)
{
	put_str(t, "# HELP cage_policy_generation Counts policies loaded, and changes of sandboxes.\n# TYPE "
		   "cage_policy_generation gauge\n");
	put_sample(t, "cage_policy_generation", policy_gen);
	put_str(t, "# HELP cage_log_available 1 when the log can be written.\n# TYPE cage_log_available gauge\n");
	put_sample(t, "cage_log_available", log_ok ? 1 : 0);
}
