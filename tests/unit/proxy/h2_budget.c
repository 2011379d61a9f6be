/* The accounts of an HTTP/2 connection: what empties them, and what fills them up to their ceiling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/limits.h"
#include "proxy/h2_budget.h"

#define START 1000000000u
#define SECOND 1000000u

static unsigned controls_left(struct h2_budget b, uint64_t now)
{
	unsigned n = 0;
	while (h2_budget_control(&b, now))
		n++;
	return n;
}

static unsigned resets_left(struct h2_budget b, uint64_t now)
{
	unsigned n = 0;
	while (h2_budget_reset(&b, now))
		n++;
	return n;
}

static struct h2_budget empty(void)
{
	struct h2_budget b;
	h2_budget_init(&b, START);
	while (h2_budget_control(&b, START))
		;
	while (h2_budget_reset(&b, START))
		;
	return b;
}

static void both_have_an_end(void **state)
{
	(void)state;
	struct h2_budget b;
	h2_budget_init(&b, START);
	assert_int_equal(controls_left(b, START), LIMIT_H2_CONTROL);
	assert_int_equal(resets_left(b, START), LIMIT_H2_RESETS);
	b = empty();
	assert_false(h2_budget_control(&b, START));
	assert_false(h2_budget_reset(&b, START));
}

static void time_fills_them(void **state)
{
	(void)state;
	struct h2_budget b = empty();
	assert_int_equal(controls_left(b, START + SECOND - 1), 0);
	assert_int_equal(controls_left(b, START + SECOND), LIMIT_H2_CONTROL_RATE);
	assert_int_equal(resets_left(b, START + SECOND), LIMIT_H2_RESETS_RATE);
	assert_int_equal(controls_left(b, START + 1000u * (uint64_t)SECOND), LIMIT_H2_CONTROL);
	assert_int_equal(resets_left(b, START + 1000u * (uint64_t)SECOND), LIMIT_H2_RESETS);
}

/* Whoever looks often gets no more for it, and no less. */
static void fractions_of_a_second_are_not_lost(void **state)
{
	(void)state;
	struct h2_budget b = empty();
	unsigned n = 0;
	for (uint64_t now = START; now <= START + 2 * SECOND; now += SECOND / 10)
		while (h2_budget_control(&b, now))
			n++;
	assert_int_equal(n, 2 * LIMIT_H2_CONTROL_RATE);
}

static void useful_traffic_fills_them(void **state)
{
	(void)state;
	struct h2_budget b = empty();
	h2_budget_earn_data(&b);
	assert_int_equal(controls_left(b, START), LIMIT_H2_CONTROL_EARNED);
	assert_int_equal(resets_left(b, START), 0);
	h2_budget_earn_answer(&b);
	assert_int_equal(controls_left(b, START), 2 * LIMIT_H2_CONTROL_EARNED);
	assert_int_equal(resets_left(b, START), 1);
	for (unsigned i = 0; i < 2 * LIMIT_H2_CONTROL; i++)
		h2_budget_earn_answer(&b);
	assert_int_equal(controls_left(b, START), LIMIT_H2_CONTROL);
	assert_int_equal(resets_left(b, START), LIMIT_H2_RESETS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_have_an_end),
		cmocka_unit_test(time_fills_them),
		cmocka_unit_test(fractions_of_a_second_are_not_lost),
		cmocka_unit_test(useful_traffic_fills_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
