/* What cage-dns counts beside its decisions. */
#include "dns/metrics.h"

static const struct metric_line lines[] = {
#define M(header, sample, field)                                    \
	{                                                           \
		header, sample, offsetof(struct dns_metrics, field) \
	}
	M("# HELP cage_dns_queries_total Queries by where their answer comes from.\n"
	  "# TYPE cage_dns_queries_total counter\n",
	  "cage_dns_queries_total{answered=\"local\"}", local),
	M("", "cage_dns_queries_total{answered=\"cache\"}", cached),
	M("", "cage_dns_queries_total{answered=\"upstream\"}", forwarded),
	M("# HELP cage_dns_joined_total Queries for which an upstream had been asked already.\n"
	  "# TYPE cage_dns_joined_total counter\n",
	  "cage_dns_joined_total", joined),
	M("# HELP cage_dns_dropped_total Packets that no answer is right for.\n# TYPE cage_dns_dropped_total counter\n",
	  "cage_dns_dropped_total", dropped),
	M("# HELP cage_dns_waiting Queries that wait for an upstream.\n# TYPE cage_dns_waiting gauge\n",
	  "cage_dns_waiting", waiting),
	M("# HELP cage_dns_cache_entries Answers kept.\n# TYPE cage_dns_cache_entries gauge\n",
	  "cage_dns_cache_entries", cache_entries),
	M("# HELP cage_dns_cache_bytes Bytes of answers kept.\n# TYPE cage_dns_cache_bytes gauge\n",
	  "cage_dns_cache_bytes", cache_bytes),
	M("# HELP cage_log_lost_total Refusals that found no place in the log queue.\n"
	  "# TYPE cage_log_lost_total counter\n",
	  "cage_log_lost_total", log_lost),
	M("# HELP cage_log_pending_bytes Log events that wait for the writer.\n# TYPE cage_log_pending_bytes gauge\n",
	  "cage_log_pending_bytes", log_pending),
#undef M
};

void dns_metrics_write(struct text *t, const struct dns_metrics *m, uint64_t policy_gen, bool log_ok)
{
	struct metrics_of all = {.first = m, .size = sizeof(*m), .n = 1};
	metrics_put_decisions(t, &all, offsetof(struct dns_metrics, decisions));
	metrics_put_lines(t, &all, lines, sizeof(lines) / sizeof(lines[0]));
	metrics_put_histogram(t, &all, "cage_dns_upstream_seconds", " From a question to the upstream's answer.\n",
			      offsetof(struct dns_metrics, upstream_us));
	metrics_put_master(t, policy_gen, log_ok);
}
