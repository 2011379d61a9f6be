/* Bytes as text, in pieces. */
#include "orchestrator/service/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after them */
#include <cmocka.h>

#define FAULT "\xef\xbf\xbd"

static void expect(const char *in, size_t n, size_t piece, const char *want)
{
	struct evbuffer *out = evbuffer_new();
	struct utf8_rest rest = {.n = 0};
	for (size_t at = 0; at < n; at += piece)
		utf8_add(out, &rest, slice_of(in + at, n - at < piece ? n - at : piece));
	utf8_end(out, &rest);
	size_t len = evbuffer_get_length(out);
	assert_int_equal(len, strlen(want));
	if (len > 0)
		assert_memory_equal(evbuffer_pullup(out, -1), want, len);
	evbuffer_free(out);
}

static void test_pieces(void **state)
{
	(void)state;
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"", ""},
		{"plain", "plain"},
		{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"a\xff"
		 "b",
		 "a" FAULT "b"},
		{"\xc0\x80", FAULT FAULT},
		{"\xe2\x82", FAULT},
		{"\xc3x", FAULT "x"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t piece = 1; piece < 12; piece++)
			expect(rows[i].in, strlen(rows[i].in), piece, rows[i].out);
}

static void test_good_and_bad(void **state)
{
	(void)state;
	assert_true(utf8_is_good(SLICE("")));
	assert_true(utf8_is_good(SLICE("\xc3\xa9")));
	assert_false(utf8_is_good(SLICE("\xc3")));
	assert_false(utf8_is_good(SLICE("\xed\xa0\x80")));     /* a surrogate */
	assert_false(utf8_is_good(SLICE("\xf4\x90\x80\x80"))); /* beyond U+10FFFF */
	assert_false(utf8_is_good(SLICE("\xe0\x80\x80")));     /* overlong */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces), cmocka_unit_test(test_good_and_bad)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
