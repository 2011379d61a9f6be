/* Sizes and times. */
#include "core/base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static uint64_t size_of(const char *text)
{
	uint64_t n;
	return units_size(slice_str(text), &n) ? n : UINT64_MAX;
}

static void sizes(void **state)
{
	(void)state;
	assert_int_equal(size_of("0"), 0);
	assert_int_equal(size_of("4096"), 4096);
	assert_int_equal(size_of("7B"), 7);
	assert_int_equal(size_of("512KiB"), 512 << 10);
	assert_int_equal(size_of("3MiB"), 3 << 20);
	assert_int_equal(size_of("17179869183GiB"), 17179869183ull << 30);
	static const char *const wrong[] = {"",   "B",      "KiB",  "1kib",           "1KB",  "1 KiB", "-1",
					    "+1", "1.5MiB", "0x10", "17179869184GiB", "1KiBB"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(size_of(wrong[i]), UINT64_MAX);
}

static uint64_t seconds_of(const char *text, uint64_t max)
{
	uint64_t n;
	return units_duration(slice_str(text), max, &n) ? n : 0;
}

static void durations(void **state)
{
	(void)state;
	assert_int_equal(seconds_of("1s", 1), 1);
	assert_int_equal(seconds_of("10m", 600), 600);
	assert_int_equal(seconds_of("24h", 86400), 86400);
	assert_int_equal(seconds_of("7d", 604800), 604800);
	static const char *const wrong[] = {
		"", "s", "0s", "1", "1S", "1 s", "-1s", "1.5h", "8d", "604801s", "99999999999999999999s", "1ms", "1w"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(seconds_of(wrong[i], 604800), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(durations)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
