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
	M("# HELP cage_dns_received_total Packets with queries.\n# TYPE cage_dns_received_total counter\n",
	  "cage_dns_received_total{over=\"udp\"}", udp_queries),
	M("", "cage_dns_received_total{over=\"tcp\"}", tcp_queries),
	M("# HELP cage_dns_sent_total Packets with answers.\n# TYPE cage_dns_sent_total counter\n",
	  "cage_dns_sent_total{over=\"udp\"}", udp_answers),
	M("", "cage_dns_sent_total{over=\"tcp\"}", tcp_answers),
	M("# HELP cage_dns_udp_lost_total Queries over UDP that got no answer, or only that it is truncated.\n"
	  "# TYPE cage_dns_udp_lost_total counter\n",
	  "cage_dns_udp_lost_total{why=\"limited\"}", udp_limited),
	M("", "cage_dns_udp_lost_total{why=\"ignored\"}", udp_ignored),
	M("", "cage_dns_udp_lost_total{why=\"unsent\"}", udp_unsent),
	M("# HELP cage_dns_tcp_taken_total Connections that were taken.\n# TYPE cage_dns_tcp_taken_total counter\n",
	  "cage_dns_tcp_taken_total", tcp_taken),
	M("# HELP cage_dns_tcp_refused_total Connections that were not taken.\n"
	  "# TYPE cage_dns_tcp_refused_total counter\n",
	  "cage_dns_tcp_refused_total", tcp_refused),
	M("# HELP cage_dns_tcp_cut_total Connections that were ended for what their clients did or did not do.\n"
	  "# TYPE cage_dns_tcp_cut_total counter\n",
	  "cage_dns_tcp_cut_total", tcp_cut),
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

void dns_metrics_count(struct dns_metrics *m, const struct dns_server_stats *now, const struct dns_server_stats *before)
{
	metric_add(&m->udp_queries, now->udp_queries - before->udp_queries);
	metric_add(&m->tcp_queries, now->tcp_queries - before->tcp_queries);
	metric_add(&m->udp_answers, now->udp_answers - before->udp_answers);
	metric_add(&m->tcp_answers, now->tcp_answers - before->tcp_answers);
	metric_add(&m->udp_limited, now->udp_limited - before->udp_limited);
	metric_add(&m->udp_ignored, now->udp_ignored - before->udp_ignored);
	metric_add(&m->udp_unsent, now->udp_unsent - before->udp_unsent);
	metric_add(&m->tcp_taken, now->tcp_taken - before->tcp_taken);
	metric_add(&m->tcp_refused, now->tcp_refused - before->tcp_refused);
	metric_add(&m->tcp_cut, now->tcp_cut - before->tcp_cut);
}

void dns_metrics_write(struct text *t, const struct dns_metrics *m, uint64_t policy_gen, bool log_ok)
{
	struct metrics_of all = {.first = m, .size = sizeof(*m), .n = 1};
	metrics_put_decisions(t, &all, offsetof(struct dns_metrics, decisions));
	metrics_put_lines(t, &all, lines, sizeof(lines) / sizeof(lines[0]));
	metrics_put_histogram(t, &all, "cage_dns_upstream_seconds", " From a question to the upstream's answer.\n",
			      offsetof(struct dns_metrics, upstream_us));
	metrics_put_master(t, policy_gen, log_ok);
}
