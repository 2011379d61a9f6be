/* Time as text. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "core/base/clock.h"

static void assert_format(uint64_t us, const char *expected)
{
	char out[CLOCK_TEXT];
	clock_format(us, out);
	assert_memory_equal(out, expected, CLOCK_TEXT);
}

static void formatting(void **state)
{
	(void)state;
	assert_format(0, "1970-01-01T00:00:00.000000Z");
	assert_format(1794801821123456u, "2026-11-16T04:03:41.123456Z");
	assert_format(951782400000001u, "2000-02-29T00:00:00.000001Z");
	assert_format(253402300799999999u, "9999-12-31T23:59:59.999999Z");
}

static void any_value_gives_a_well_formed_time(void **state)
{
	(void)state;
	static const char shape[] = "0000-00-00T00:00:00.000000Z";
	for (uint64_t us = 1; us; us <<= 1) {
		char out[CLOCK_TEXT];
		clock_format(us - 1 + us, out);
		for (size_t i = 0; i < CLOCK_TEXT; i++)
			assert_true(shape[i] == '0' ? ascii_is_digit((unsigned char)out[i]) : out[i] == shape[i]);
	}
}

static void parsing(void **state)
{
	(void)state;
	int64_t s;
	assert_true(clock_parse(SLICE("1970-01-01T00:00:00Z"), &s) && s == 0);
	assert_true(clock_parse(SLICE("2026-11-16T04:03:41Z"), &s) && s == 1794801821);
	assert_true(clock_parse(SLICE("2024-02-29T23:59:59Z"), &s) && s == 1709251199);
	assert_true(clock_parse(SLICE("9999-12-31T23:59:59Z"), &s) && s == 253402300799);
}

static void parsing_refuses(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"2026-11-16",
		"2026-11-16T04:03:41",
		"2026-11-16T04:03:41z",
		"2026-11-16 04:03:41Z",
		"2026-11-16T04:03:41.0Z",
		"2026-11-16T04:03:41+00:00",
		"2026-02-29T00:00:00Z",
		"2026-02-31T00:00:00Z",
		"2026-00-10T00:00:00Z",
		"2026-13-10T00:00:00Z",
		"2026-01-00T00:00:00Z",
		"2026-01-32T00:00:00Z",
		"2026-01-01T24:00:00Z",
		"2026-01-01T00:60:00Z",
		"2026-01-01T00:00:60Z",
		"+026-01-01T00:00:00Z",
		"2026-1 -01T00:00:00Z",
		"2026-01-01T00:00:0-Z",
		" 2026-01-01T00:00:00Z",
		"2026-01-01T00:00:00ZZ",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int64_t s;
		if (clock_parse(slice_str(bad[i]), &s))
			fail_msg("accepted: %s", bad[i]);
	}
	int64_t s;
	assert_false(clock_parse(SLICE("2026-01-01T00:00:0\0Z"), &s));
}

static void clocks_run(void **state)
{
	(void)state;
	uint64_t before = clock_mono_us();
	assert_true(clock_mono_us() >= before);
	assert_true(clock_wall_us() > 1700000000000000u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formatting), cmocka_unit_test(any_value_gives_a_well_formed_time),
		cmocka_unit_test(parsing),    cmocka_unit_test(parsing_refuses),
		cmocka_unit_test(clocks_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
