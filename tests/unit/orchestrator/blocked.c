/* Blocked commands: what matches, and that it takes no longer than it may, however many there are. */
#include "orchestrator/service/blocked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
/* after them */
#include <cmocka.h>

#include "core/base/limits.h"

static uint64_t worked_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* format: of as many patterns as there can be, each with its number. */
static struct blocked *many(const char *format)
{
	json_t *list = json_array();
	for (int i = 0; i < LIMIT_SERVE_PATTERNS; i++)
		json_array_append_new(list, json_sprintf(format, i));
	struct blocked *b = blocked_new(list);
	json_decref(list);
	assert_non_null(b);
	return b;
}

static char *repeat(char c, size_t n, char last)
{
	char *text = malloc(n + 2);
	assert_non_null(text);
	memset(text, c, n);
	text[n] = last;
	text[n + 1] = '\0';
	return text;
}

static void test_what_matches(void **state)
{
	(void)state;
	json_t *list = json_pack("[s, s, s]", "rm +-rf +/", "^(a|b)+$", "(?i)shutdown");
	struct blocked *b = blocked_new(list);
	assert_true(blocked_has(b, slice_str("cd /; rm  -rf /x")));
	assert_true(blocked_has(b, slice_str("abba")));
	assert_true(blocked_has(b, slice_str("ShutDown -h now")));
	assert_false(blocked_has(b, slice_str("rm -r x")));
	assert_false(blocked_has(b, slice_str("")));
	blocked_free(&b);
	json_decref(list);
	b = blocked_new(NULL);
	assert_false(blocked_has(b, slice_str("anything")));
	blocked_free(&b);
	assert_true(blocked_has(NULL, slice_str("anything"))); /* they could not be compiled */
}

static void test_usual_ones_are_quick_enough(void **state)
{
	(void)state;
	struct blocked *b = many("\\bforbidden%d\\s+--force\\b");
	char *command = repeat('f', LIMIT_SERVE_COMMAND / 10, 'x');
	assert_false(blocked_has(b, slice_str(command)));
	free(command);
	blocked_free(&b);
}

static void takes_too_long(const char *format, size_t n, char last)
{
	struct blocked *b = many(format);
	char *command = repeat('a', n, last);
	const uint64_t began_us = worked_us();
	assert_true(blocked_has(b, slice_str(command)));
	assert_in_range(worked_us() - began_us, LIMIT_SERVE_REGEX_CPU_US, (uint64_t)LIMIT_SERVE_REGEX_CPU_US * 3);
	free(command);
	blocked_free(&b);
}

/* By the number of its steps; by the places at which it may begin; by what one step passes over. */
static void test_one_that_takes_too_long_is_blocked(void **state)
{
	(void)state;
	takes_too_long("(?:[ab]{1,40}?){2}%dQ", 80, 'Q');
	takes_too_long("(?:[ab]{1,40}?){2}[%dz][QR]", LIMIT_SERVE_COMMAND - 1, 'Q');
	takes_too_long("a{14000}[bc][%dz]", LIMIT_SERVE_COMMAND - 1, 'x');
	takes_too_long("(?:a+)+[bc][%dz]", LIMIT_SERVE_COMMAND - 1, 'x');
}

static void test_how_large_one_can_be(void **state)
{
	(void)state;
	char why[256] = "";
	assert_true(pattern_is_good(slice_str("(?:[ab]{1,40}?){2}"), why, sizeof(why)));
	assert_false(pattern_is_good(slice_str("(?:[ab][cd]){1000}"), why, sizeof(why)));
	assert_non_null(strstr(why, "too large"));
	assert_false(pattern_is_good(slice_str("a(b"), why, sizeof(why)));
	assert_non_null(strstr(why, "at byte 3"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_matches), cmocka_unit_test(test_usual_ones_are_quick_enough),
		cmocka_unit_test(test_one_that_takes_too_long_is_blocked), cmocka_unit_test(test_how_large_one_can_be)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
