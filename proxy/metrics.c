/* What cage-proxy counts beside its decisions. */
#include "proxy/metrics.h"

static const struct metric_line lines[] = {
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
	M("# HELP cage_policies_ready Policies for which all that requests need is built.\n# TYPE cage_policies_ready "
	  "gauge\n",
	  "cage_policies_ready", policies),
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
	struct metrics_of all = {.first = w, .size = sizeof(*w), .n = n};
	metrics_put_decisions(t, &all, offsetof(struct metrics, decisions));
	metrics_put_lines(t, &all, lines, sizeof(lines) / sizeof(lines[0]));
	metrics_put_histogram(t, &all, "cage_request_seconds", " From a request's head to the end of its response.\n",
			      offsetof(struct metrics, request_us));
	metrics_put_histogram(t, &all, "cage_upstream_seconds", " To a ready new upstream connection.\n",
			      offsetof(struct metrics, upstream_us));
	metrics_put_master(t, policy_gen, log_ok);
}
