/* Prices as they are written, and amounts to the last digit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/cost.h"

static void prices_are_read_exactly(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t price;
	} good[] = {{"0", 0},
		    {"0.0000135", 13500000},
		    {"0.0000015", 1500000},
		    {"1", 1000000000000},
		    {"999999.999999999999", 999999999999999999},
		    {"0.000000000001", 1},
		    {"2.5", 2500000000000}};
	static const char *const bad[] = {"",      ".5",  "1.",  "-1",      "+1",
					  "1e-5",  "1,5", "0x1", "1000000", "0.0000000000001",
					  "1.2.3", " 1",  "nan", "inf",     "1 "};
	char text[PRICE_TEXT];
	uint64_t n, again;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(price_parse(slice_str(good[i].text), &n));
		assert_int_equal(n, good[i].price);
		price_format(n, text);
		assert_true(price_parse(slice_str(text), &again));
		assert_int_equal(again, n);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(price_parse(slice_str(bad[i]), &n));
}

/* 1.5 vCPU and 1.6 GB for 61 s: 91.5 and 97.6, of which the amount is 0.0013816500. */
static void amounts_are_exact(void **state)
{
	(void)state;
	const struct prices p = {.vcpu = 13500000, .gb = 1500000};
	assert_int_equal(cost_nano(&p, 91500000, 97600000), 1381650);
	assert_int_equal(cost_nano(&p, 0, 0), 0);
	assert_int_equal(cost_nano(&p, 1000000, 0), 13500);
	const struct prices least = {.vcpu = 1};
	assert_int_equal(cost_nano(&least, 499999999, 0), 0); /* less than half of a nano */
	assert_int_equal(cost_nano(&least, 500000000, 0), 1);
}

/* A tenth, a million times: with doubles that is not a whole number. */
static void sums_do_not_drift(void **state)
{
	(void)state;
	const struct prices p = {.vcpu = 100000000000};
	uint64_t sum = 0;
	for (int i = 0; i < 1000000; i++)
		sum += cost_nano(&p, 1000000, 0);
	assert_int_equal(sum, 100000ull * 1000000000);
}

static void too_much_is_the_most(void **state)
{
	(void)state;
	const struct prices p = {.vcpu = 999999999999999999, .gb = 999999999999999999};
	assert_int_equal(cost_nano(&p, UINT64_MAX, UINT64_MAX), UINT64_MAX);
	assert_int_equal(cost_nano(&p, 1000000, 0), 999999999999999999 / 1000 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prices_are_read_exactly),
		cmocka_unit_test(amounts_are_exact),
		cmocka_unit_test(sums_do_not_drift),
		cmocka_unit_test(too_much_is_the_most),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
