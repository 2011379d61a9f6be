/* Numbers of --limit. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "orchestrator/gate/room_limits.h"

static void all_of_them(void **state)
{
	(void)state;
	struct room_limits l = {0};
	assert_int_equal(room_limits_parse(&l, "mem=2G,cpu=1.5,pids=100"), 0);
	assert_int_equal(room_limits_parse(&l, "files=64,fsize=3M,time=10m"), 0);
	assert_int_equal(l.mem, (uint64_t)2 << 30);
	assert_int_equal(l.cpu, 1500);
	assert_int_equal(l.pids, 100);
	assert_int_equal(l.files, 64);
	assert_int_equal(l.fsize, 3 << 20);
	assert_int_equal(l.seconds, 600);
	assert_int_equal(room_limits_parse(&l, "mem=17,time=2h"), 0);
	assert_int_equal(l.mem, 17);
	assert_int_equal(l.seconds, 7200);
}

static void parts_of_a_processor(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t thousandths;
	} rows[] = {{"cpu=1", 1000}, {"cpu=0.5", 500}, {"cpu=0.05", 50}, {"cpu=2.125", 2125}, {"cpu=1.0", 1000}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct room_limits l = {0};
		assert_int_equal(room_limits_parse(&l, rows[i].text), 0);
		assert_int_equal(l.cpu, rows[i].thousandths);
	}
}

static void what_is_none(void **state)
{
	(void)state;
	static const char *const rows[] = {"mem",
					   "mem=",
					   "mem=0",
					   "mem=-1",
					   "mem=1T",
					   "mem=G",
					   "mem=1g",
					   "cpu=.5",
					   "cpu=1.",
					   "cpu=0",
					   "cpu=0.0",
					   "cpu=x",
					   "cpu=1.2345",
					   "time=1d",
					   "time=m",
					   "pids=1K",
					   "files=",
					   "=1",
					   ",",
					   "mem=1,,cpu=1",
					   "mem=1 ",
					   "mem=99999999999999999999",
					   "mem=1048577G",
					   "fsize=+1",
					   "Mem=1",
					   "memory=1"};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct room_limits l = {0};
		assert_int_equal(room_limits_parse(&l, rows[i]), -1);
	}
}

static void numbers_end_where_they_are_said_to(void **state)
{
	(void)state;
	uint64_t n = 0;
	assert_int_equal(room_limits_number("123x", 3, &n), 0);
	assert_int_equal(n, 123);
	assert_int_equal(room_limits_number("", 0, &n), -1);
	assert_int_equal(room_limits_size("4K,", 2, &n), 0);
	assert_int_equal(n, 4096);
	assert_int_equal(room_limits_size("", 0, &n), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_them),
		cmocka_unit_test(parts_of_a_processor),
		cmocka_unit_test(what_is_none),
		cmocka_unit_test(numbers_end_where_they_are_said_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
