/* What is told of a log that is looked at again and again, how long is waited between tries, and where a token may go. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "orchestrator/azure/arm.h"
#include "orchestrator/azure/log_window.h"
#include "orchestrator/azure/pages.h"

#define T(n) "2026-11-17T16:57:2" #n ".123456789Z "

static char told[4096];

static size_t room = SIZE_MAX; /* lines that are taken */

static bool tell(void *arg, struct slice line)
{
	(void)arg;
	if (room == 0)
		return false;
	room--;
	strncat(told, line.ptr, line.len);
	return true;
}

/* What a look tells that is new. */
static const char *look(struct log_window *w, const char *content, bool is_last)
{
	told[0] = '\0';
	assert_true(log_window_take(w, slice_str(content), is_last, tell, NULL));
	return told;
}

static void lines_are_told_once(void **state)
{
	(void)state;
	struct log_window w = {0};
	assert_string_equal(look(&w, T(1) "a\n" T(2) "b\n", false), "a\nb\n");
	assert_string_equal(look(&w, T(1) "a\n" T(2) "b\n", false), "");
	assert_string_equal(look(&w, T(2) "b\n" T(3) "b\n", false), "b\n");
	assert_string_equal(look(&w, "", false), "");
	assert_string_equal(look(&w, T(2) "b\n" T(3) "b\n" T(4) "c", false), "");
	assert_string_equal(look(&w, T(3) "b\n" T(4) "cd\n", false), "cd\n");
	assert_int_equal(w.gaps, 0);
	assert_string_equal(look(&w, T(6) "x\n" T(7) "y", true), "x\ny");
	assert_int_equal(w.gaps, 1);
	log_window_free(&w);
}

static void lines_without_a_time_are_told_as_they_are(void **state)
{
	(void)state;
	struct log_window w = {0};
	assert_string_equal(look(&w, "a b\n2026\n\nx", true), "a b\n2026\n\nx");
	log_window_free(&w);
}

/* It and all behind it come again; a gap is counted when something of what follows it is taken. */
static void a_line_that_can_not_be_taken(void **state)
{
	(void)state;
	struct log_window w = {0};
	const struct slice first = SLICE(T(1) "a\n" T(2) "b\n" T(3) "c\n"), other = SLICE(T(8) "x\n" T(9) "y");
	told[0] = '\0';
	room = 0;
	assert_false(log_window_take(&w, first, false, tell, NULL));
	room = 2;
	assert_false(log_window_take(&w, first, false, tell, NULL));
	room = 1;
	assert_true(log_window_take(&w, first, false, tell, NULL));
	assert_false(log_window_take(&w, other, true, tell, NULL));
	assert_int_equal(w.gaps, 0);
	room = SIZE_MAX;
	assert_true(log_window_take(&w, other, true, tell, NULL));
	assert_int_equal(w.gaps, 1);
	assert_string_equal(told, "a\nb\nc\nx\ny");
	log_window_free(&w);
}

/* Of lines that are all the same, the longest piece that both looks share is the one. */
static void repeated_lines(void **state)
{
	(void)state;
	struct log_window w = {0};
	assert_string_equal(look(&w, "a\na\na\n", false), "a\na\na\n");
	assert_string_equal(look(&w, "a\na\na\na\n", false), "a\n");
	assert_string_equal(look(&w, "a\na\nb\n", false), "b\n");
	log_window_free(&w);
}

static void pauses(void **state)
{
	(void)state;
	uint64_t ms = 0;
	assert_true(attempt_asked_ms("7", &ms) && ms == 7000);
	assert_true(attempt_asked_ms("61", &ms) && ms == LIMIT_ARM_WAIT_MS);
	assert_false(attempt_asked_ms("", &ms) || attempt_asked_ms("Wed, 21 Oct 2015 07:28:00 GMT", &ms));
	for (int i = 0; i < 100; i++) {
		assert_in_range(attempt_wait_ms(1, ""), 1000, 1250);
		assert_in_range(attempt_wait_ms(4, ""), 8000, 10000);
		assert_in_range(attempt_wait_ms(1, "7"), 7000, 8750);
		assert_in_range(attempt_wait_ms(1, "soon"), 1000, 1250);
		assert_in_range(attempt_wait_ms(1, "99999999999999999999"), 1000, 1250);
		assert_in_range(attempt_wait_ms(UINT_MAX, ""), LIMIT_ARM_WAIT_MS, LIMIT_ARM_WAIT_MS * 5 / 4);
		assert_in_range(attempt_wait_ms(1, "86400"), LIMIT_ARM_WAIT_MS, LIMIT_ARM_WAIT_MS * 5 / 4);
	}
}

static void places_for_a_token(void **state)
{
	(void)state;
	static const char *const good[] = {"https://management.azure.com", "https://h/p?q", "http://127.0.0.1:80/x",
					   "http://169.254.169.254/metadata"};
	static const char *const bad[] = {"",
					  "http://management.azure.com",
					  "http://127.0.0.1.evil.test/",
					  "http://127.0.0.1@evil.test/",
					  "https://",
					  "https:///x",
					  "https://a@b/",
					  "https://a/\n",
					  "https://a\\b",
					  "ftp://127.0.0.1/",
					  "file:///etc/passwd"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(web_url_is_safe(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(web_url_is_safe(bad[i]));
}

/* ---- lists ---- */

static void count(void *arg, const json_t *item)
{
	*(size_t *)arg += json_is_null(item);
}

/* What is wrong with the first page of a list of so many items, after so many pages. */
static const char *page(const char *text, size_t items, unsigned before)
{
	static struct pages p;
	size_t n = 0;
	json_t *answer = json_loads(text, 0, NULL), *list = json_object_get(answer, "value");
	for (size_t i = 0; i < items; i++)
		json_array_append_new(list, json_null());
	pages_begin(&p, "/first");
	assert_string_equal(p.next, "/first");
	p.n = before;
	const char *why = pages_take(&p, answer, count, &n);
	assert_true(why || n == items);
	json_decref(answer);
	return why;
}

static void lists_in_pages(void **state)
{
	(void)state;
	static char longest[LIMIT_ARM_URL + 100];
	assert_null(page("{\"value\": []}", 3, 0));
	assert_null(page("{\"value\": [], \"nextLink\": \"/x\"}", LIMIT_DEPLOY_ITEMS, 0));
	assert_string_equal(page("{\"value\": []}", LIMIT_DEPLOY_ITEMS + 1, 0), "it is too long");
	assert_string_equal(page("{\"value\": {}}", 0, 0), "a page of it is no list");
	assert_string_equal(page("{}", 0, 0), "a page of it is no list");
	assert_null(page("{\"value\": [], \"nextLink\": \"/x\"}", 0, LIMIT_ACI_PAGES - 2));
	assert_null(page("{\"value\": []}", 0, LIMIT_ACI_PAGES - 1));
	assert_string_equal(page("{\"value\": [], \"nextLink\": \"/x\"}", 0, LIMIT_ACI_PAGES - 1),
			    "it has too many pages");
	snprintf(longest, sizeof(longest), "{\"value\": [], \"nextLink\": \"/%0*d\"}", LIMIT_ARM_URL - 2, 0);
	assert_null(page(longest, 0, 0));
	snprintf(longest, sizeof(longest), "{\"value\": [], \"nextLink\": \"/%0*d\"}", LIMIT_ARM_URL - 1, 0);
	assert_string_equal(page(longest, 0, 0), "the address of its next page is too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_in_pages),
		cmocka_unit_test(lines_are_told_once),
		cmocka_unit_test(lines_without_a_time_are_told_as_they_are),
		cmocka_unit_test(a_line_that_can_not_be_taken),
		cmocka_unit_test(repeated_lines),
		cmocka_unit_test(pauses),
		cmocka_unit_test(places_for_a_token),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
