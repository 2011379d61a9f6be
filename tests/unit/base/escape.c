/* Escapes of single bytes, each of them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "core/base/escape.h"

static void percent_and_back(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		char out[ESCAPE_PERCENT];
		size_t n = escape_percent((unsigned char)c, out);
		assert_int_equal(n, ascii_is_unreserved((unsigned char)c) ? 1 : 3);
		assert_int_equal(n == 1 ? (unsigned char)out[0] : escape_percent_value(slice_of(out, n), 0), c);
		for (size_t i = 1; i < n; i++)
			assert_false(out[i] >= 'a'); /* upper case */
	}
	assert_int_equal(escape_percent_value(SLICE("%4"), 0), -1);
	assert_int_equal(escape_percent_value(SLICE("%4g"), 0), -1);
	assert_int_equal(escape_percent_value(SLICE("a%4a"), 1), 'J');
	assert_int_equal(escape_percent_value(SLICE("a%4a"), 0), -1);
}

static void json_escapes(void **state)
{
	(void)state;
	char out[ESCAPE_JSON];
	assert_true(slice_eq(slice_of(out, escape_json('\n', out)), SLICE("\\u000a")));
	assert_true(slice_eq(slice_of(out, escape_json('"', out)), SLICE("\\\"")));
	assert_true(slice_eq(slice_of(out, escape_json('\\', out)), SLICE("\\\\")));
	assert_true(slice_eq(slice_of(out, escape_json('a', out)), SLICE("a")));
	assert_true(slice_eq(slice_of(out, escape_json(0xe9, out)), SLICE("\xe9")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percent_and_back),
		cmocka_unit_test(json_escapes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
