/* What cage-fetch can be asked for. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>

#include "orchestrator/fetch/ask.h"

static void test_asked(void **state)
{
	struct ask a;
	const char *why;
	(void)state;
	assert_true(ask_parse(SLICE("{\"url\": \"https://a.test/x?y\", \"method\": \"PUT\", \"headers\": {\"X-A\": "
				    "\"b\", \"E\": \"\"},"
				    "\"body_base64\": \"AP8Q\", \"timeout_ms\": 5, \"max_bytes\": 6, \"proxy\": \"p\", "
				    "\"ca_file\": \"c\"}"),
			      &a, &why));
	assert_string_equal(a.url, "https://a.test/x?y");
	assert_string_equal(a.method, "PUT");
	assert_int_equal(a.body_len, 3);
	assert_memory_equal(a.body, "\x00\xff\x10", 3);
	assert_true(a.timeout_ms == 5 && a.max_bytes == 6 && json_object_size(a.headers) == 2);
	ask_free(&a);
	assert_true(ask_parse(SLICE("{\"url\": \"http://a\", \"body\": \"a\\u0000b\"}"), &a, &why));
	assert_string_equal(a.method, "GET");
	assert_int_equal(a.body_len, 3);
	ask_free(&a);
}

static void test_base64(void **state)
{
	static const struct {
		const char *text, *bytes; /* bytes NULL: refused */
	} all[] = {{"", ""},       {"YQ==", "a"},     {"YWI=", "ab"}, {"YWJj", "abc"}, {"YWJjZA==", "abcd"},
		   {"YQ", NULL},   {"YQ=", NULL},     {"Y===", NULL}, {"YW-_", NULL},  {"Y Q=", NULL},
		   {"====", NULL}, {"YQ==YQ==", NULL}};
	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char text[128];
		struct ask a;
		const char *why;
		int n = snprintf(text, sizeof(text), "{\"url\": \"http://a\", \"body_base64\": \"%s\"}", all[i].text);
		assert_true(ask_parse(slice_of(text, (size_t)n), &a, &why) == (all[i].bytes != NULL));
		if (all[i].bytes)
			assert_true(slice_eq(slice_of(a.body, a.body_len), slice_str(all[i].bytes)));
		ask_free(&a);
	}
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"url\": 1}",
		"{\"url\": \"\"}",
		"{\"url\": \"ftp://a\"}",
		"{\"url\": \"file:///etc/passwd\"}",
		"{\"url\": \"http://a b\"}",
		"{\"url\": \"http://a\\u0000\"}",
		"{\"url\": \"http://a\\r\\n\"}",
		"{\"url\": \"http://a\", \"url\": \"http://b\"}",
		"{\"url\": \"http://a\", \"method\": \"get\"}",
		"{\"url\": \"http://a\", \"method\": \"CONNECT\"}",
		"{\"url\": \"http://a\", \"method\": \"A B\"}",
		"{\"url\": \"http://a\", \"headers\": {\"a b\": \"c\"}}",
		"{\"url\": \"http://a\", \"headers\": {\"\": \"c\"}}",
		"{\"url\": \"http://a\", \"headers\": {\"a\": \"b\\nc: d\"}}",
		"{\"url\": \"http://a\", \"headers\": {\"a\": \"b\\u0000\"}}",
		"{\"url\": \"http://a\", \"headers\": {\"a\": 1}}",
		"{\"url\": \"http://a\", \"headers\": []}",
		"{\"url\": \"http://a\", \"body\": 1}",
		"{\"url\": \"http://a\", \"body\": \"a\", \"body_base64\": \"YQ==\"}",
		"{\"url\": \"http://a\", \"timeout_ms\": 0}",
		"{\"url\": \"http://a\", \"timeout_ms\": -1}",
		"{\"url\": \"http://a\", \"timeout_ms\": 600001}",
		"{\"url\": \"http://a\", \"max_bytes\": 1.5}",
		"{\"url\": \"http://a\", \"proxy\": \"\"}",
		"{\"url\": \"http://a\", \"redirects\": 1}",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ask a;
		const char *why;
		assert_false(ask_parse(slice_str(bad[i]), &a, &why));
		ask_free(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_asked), cmocka_unit_test(test_base64),
					   cmocka_unit_test(test_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
