/* What a log comes to: rows with all that says what was blocked, so many of them, and nothing that a terminal would obey. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/summary.h"

enum { MANY = LIMIT_SUMMARY_ROWS + 5 };

static char log_name[64];

static FILE *log_file(void)
{
	snprintf(log_name, sizeof(log_name), "/tmp/cage-summary.XXXXXX");
	int fd = mkostemp(log_name, O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	assert_non_null(f);
	return f;
}

static struct summary read_log(FILE *f)
{
	struct summary s = {0};
	assert_int_equal(fclose(f), 0);
	assert_true(summary_read(&s, log_name, 0));
	unlink(log_name);
	return s;
}

static void blocked(FILE *f, const char *event, const char *rest)
{
	fprintf(f, "{\"event\":\"%s\",\"decision\":\"block\",\"enforced\":true,%s}\n", event, rest);
}

static void rows_say_what_was_tried(void **state)
{
	(void)state;
	FILE *f = log_file();
	const char *deleted =
		"\"reason\":\"method.not_allowed\",\"method\":\"DELETE\",\"host\":\"api.test\",\"path\":\"/v1/x\"";
	blocked(f, "request", deleted);
	blocked(f, "request", deleted);
	blocked(f, "request",
		"\"reason\":\"method.not_allowed\",\"method\":\"DELETE\",\"host\":\"api.test\",\"path\":\"/v1/y\"");
	blocked(f, "connect", "\"reason\":\"host.not_allowed\",\"method\":\"CONNECT\",\"host\":\"evil.test\"");
	blocked(f, "connect", "\"reason\":\"connect.captured\",\"address\":\"192.0.2.1\",\"port\":22");
	blocked(f, "dns", "\"reason\":\"host.not_allowed\",\"method\":\"A\",\"host\":\"evil.test\"");
	struct summary s = read_log(f);
	assert_int_equal(s.n_rows, 5);
	assert_string_equal(s.rows[0].what, "method.not_allowed DELETE api.test/v1/x");
	assert_int_equal(s.rows[0].n, 2);
	assert_string_equal(s.rows[1].what, "method.not_allowed DELETE api.test/v1/y");
	assert_string_equal(s.rows[2].what, "host.not_allowed evil.test");
	assert_string_equal(s.rows[3].what, "connect.captured 192.0.2.1:22");
	assert_string_equal(s.rows[4].what, "host.not_allowed evil.test (dns)");
	assert_int_equal(s.exchanges[VERDICT_BLOCKED], 5);
}

static void rows_are_bounded(void **state)
{
	(void)state;
	char rest[128];
	FILE *f = log_file();
	for (int i = 0; i < MANY; i++) {
		snprintf(rest, sizeof(rest),
			 "\"reason\":\"path.not_allowed\",\"method\":\"GET\",\"host\":\"a.test\",\"path\":\"/%d\"", i);
		blocked(f, "request", rest);
	}
	struct summary s = read_log(f);
	assert_int_equal(s.n_rows, LIMIT_SUMMARY_ROWS);
	assert_int_equal(s.others, MANY - LIMIT_SUMMARY_ROWS);
}

/* The longest ones are cut, and say so. */
static void long_rows_are_cut(void **state)
{
	(void)state;
	char path[4 * LIMIT_SUMMARY_PATH], host[LIMIT_HOST + 1], rest[8 * LIMIT_SUMMARY_PATH + LIMIT_HOST];
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	memset(host, 'h', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	snprintf(rest, sizeof(rest),
		 "\"reason\":\"external.unavailable\",\"method\":\"%.200s\",\"host\":\"%s\",\"path\":\"/%s\"", path,
		 host, path);
	FILE *f = log_file();
	blocked(f, "request", rest);
	struct summary s = read_log(f);
	assert_int_equal(s.n_rows, 1);
	assert_true(strlen(s.rows[0].what) < LIMIT_SUMMARY_TEXT - 1);
	assert_non_null(strstr(s.rows[0].what, host));
	assert_string_equal(s.rows[0].what + strlen(s.rows[0].what) - 6, "ppp...");
}

static void nothing_moves_the_cursor(void **state)
{
	(void)state;
	FILE *f = log_file();
	blocked(f, "request",
		"\"reason\":\"path.not_allowed\",\"method\":\"G\\u009bT\",\"host\":\"a\\u001b[2Jb\","
		"\"path\":\"/\\u0000\\n\\u007f\\u00e9x\"");
	struct summary s = read_log(f);
	assert_int_equal(s.n_rows, 1);
	for (const char *c = s.rows[0].what; *c; c++)
		assert_true(*c >= ' ' && *c <= '~');
	assert_int_equal(s.exchanges[VERDICT_BLOCKED], 1);
	assert_int_equal(s.exchanges[VERDICT_FAILED], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_say_what_was_tried),
		cmocka_unit_test(rows_are_bounded),
		cmocka_unit_test(long_rows_are_cut),
		cmocka_unit_test(nothing_moves_the_cursor),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
