/* The metrics text: sums over workers, buckets that add up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "proxy/metrics.h"

static char room[65536];

static bool has_line(struct slice text, const char *line)
{
	struct slice rest = text;
	while (rest.len > 0)
		if (slice_eq(slice_cut(&rest, '\n'), slice_str(line)))
			return true;
	return false;
}

static void sums_over_workers(void **state)
{
	(void)state;
	struct metrics *m = calloc(2, sizeof(*m));
	struct text t = text_in(room, sizeof(room));
	metric_add(&m[0].decisions.n[DECISION_BLOCK][REASON_HOST_NOT_ALLOWED], 2);
	metric_add(&m[1].decisions.n[DECISION_BLOCK][REASON_HOST_NOT_ALLOWED], 3);
	metric_set(&m[1].pool_idle, 4);
	metrics_write(&t, m, 2, 9, true);
	assert_true(text_ok(&t));
	assert_true(has_line(text_slice(&t), "cage_decisions_total{decision=\"block\",reason=\"host.not_allowed\"} 5"));
	assert_true(has_line(text_slice(&t), "cage_pool_idle 4"));
	assert_true(has_line(text_slice(&t), "cage_policy_generation 9"));
	assert_true(has_line(text_slice(&t), "cage_log_available 1"));
	free(m);
}

static void buckets_are_cumulative(void **state)
{
	(void)state;
	struct metrics *m = calloc(1, sizeof(*m));
	struct text t = text_in(room, sizeof(room));
	histogram_add(&m->request_us, 1000); /* exactly a limit belongs to it */
	histogram_add(&m->request_us, 1001);
	histogram_add(&m->request_us, 500000000); /* beyond all */
	metrics_write(&t, m, 1, 1, false);
	assert_true(has_line(text_slice(&t), "cage_request_seconds_bucket{le=\"0.001\"} 1"));
	assert_true(has_line(text_slice(&t), "cage_request_seconds_bucket{le=\"0.0025\"} 2"));
	assert_true(has_line(text_slice(&t), "cage_request_seconds_bucket{le=\"120\"} 2"));
	assert_true(has_line(text_slice(&t), "cage_request_seconds_bucket{le=\"+Inf\"} 3"));
	assert_true(has_line(text_slice(&t), "cage_request_seconds_sum 500.002001"));
	assert_true(has_line(text_slice(&t), "cage_log_available 0"));
	free(m);
}

/* With every counter in use the text still fits the admin port's room. */
static void the_largest_text_fits(void **state)
{
	(void)state;
	struct metrics *m = malloc(sizeof(*m));
	struct text t = text_in(room, sizeof(room));
	memset(m, 0x7f, sizeof(*m));
	metrics_write(&t, m, 1, ~0ull, true);
	assert_true(text_ok(&t));
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_over_workers),
		cmocka_unit_test(buckets_are_cumulative),
		cmocka_unit_test(the_largest_text_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
