/* Borrowed bytes: comparing, searching, cutting, numbers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "core/base/slice.h"

#define assert_slice(s, text) assert_true(slice_eq((s), SLICE(text)))

static void equality(void **state)
{
	(void)state;
	assert_true(slice_eq(SLICE_NONE, SLICE("")));
	assert_true(slice_eq(SLICE("a\0b"), SLICE("a\0b")));
	assert_false(slice_eq(SLICE("a\0b"), SLICE("a\0c")));
	assert_false(slice_eq(SLICE("a"), SLICE("ab")));
	assert_true(slice_ieq(SLICE("HoSt-1"), SLICE("hOsT-1")));
	assert_false(slice_ieq(SLICE("@["), SLICE("`{")));
	assert_false(slice_ieq(SLICE("\xc0"), SLICE("\xe0")));
	assert_true(slice_eq_secret(SLICE("token"), SLICE("token")));
	assert_true(slice_eq_secret(SLICE_NONE, SLICE("")));
	assert_false(slice_eq_secret(SLICE("token"), SLICE("tokeN")));
	assert_false(slice_eq_secret(SLICE("token"), SLICE("toke")));
}

static void parts(void **state)
{
	(void)state;
	assert_slice(slice_from(SLICE("abc"), 1), "bc");
	assert_slice(slice_from(SLICE("abc"), 9), "");
	assert_slice(slice_from(SLICE_NONE, 1), "");
	assert_slice(slice_head(SLICE("abc"), 2), "ab");
	assert_slice(slice_head(SLICE("abc"), 9), "abc");
	assert_true(slice_starts(SLICE("abc"), SLICE("ab")) && slice_starts(SLICE_NONE, SLICE("")));
	assert_false(slice_starts(SLICE("abc"), SLICE("b")) || slice_starts(SLICE("a"), SLICE("ab")));
	assert_true(slice_ends(SLICE("abc"), SLICE("bc")) && slice_ends(SLICE("abc"), SLICE_NONE));
	assert_false(slice_ends(SLICE("abc"), SLICE("b")) || slice_ends(SLICE("c"), SLICE("bc")));
}

static void searching(void **state)
{
	(void)state;
	assert_int_equal(slice_find(SLICE("a.b.c"), '.'), 1);
	assert_int_equal(slice_rfind(SLICE("a.b.c"), '.'), 3);
	assert_int_equal(slice_find(SLICE("abc"), '.'), 3);
	assert_int_equal(slice_rfind(SLICE("abc"), '.'), 3);
	assert_int_equal(slice_find(SLICE_NONE, '.'), 0);
	assert_int_equal(slice_rfind(SLICE_NONE, '.'), 0);
	assert_int_equal(slice_find(SLICE("a\0b"), '\0'), 1);
}

static void trimming(void **state)
{
	(void)state;
	assert_slice(slice_trim(SLICE(" \t a b\t ")), "a b");
	assert_slice(slice_trim(SLICE(" \t ")), "");
	assert_slice(slice_trim(SLICE_NONE), "");
	assert_slice(slice_trim(SLICE("\na\r")), "\na\r");
}

static void cutting(void **state)
{
	(void)state;
	struct slice rest = SLICE("a,,b");
	assert_slice(slice_cut(&rest, ','), "a");
	assert_slice(slice_cut(&rest, ','), "");
	assert_slice(slice_cut(&rest, ','), "b");
	assert_int_equal(rest.len, 0);
	assert_slice(slice_cut(&rest, ','), "");
	rest = SLICE("a,");
	assert_slice(slice_cut(&rest, ','), "a");
	assert_int_equal(rest.len, 0);
}

static void numbers(void **state)
{
	(void)state;
	uint64_t v = 7;
	assert_true(slice_to_u64(SLICE("0"), 0, &v) && v == 0);
	assert_true(slice_to_u64(SLICE("0065535"), 65535, &v) && v == 65535);
	assert_true(slice_to_u64(SLICE("18446744073709551615"), UINT64_MAX, &v) && v == UINT64_MAX);
	static const char *const bad[] = {
		"", "+1", "-1", " 1", "1 ", "0x1", "1e3", "18446744073709551616", "99999999999999999999999"};
	v = 7;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(slice_to_u64(slice_str(bad[i]), UINT64_MAX, &v));
	assert_false(slice_to_u64(SLICE("65536"), 65535, &v));
	assert_false(slice_to_u64(SLICE("9"), 8, &v));
	assert_false(slice_to_u64(SLICE("1\0"), 100, &v));
	assert_int_equal(v, 7);
}

static void characters(void **state)
{
	(void)state;
	static const char digits[] = "0123456789abcdef";
	for (unsigned c = 0; c < 256; c++) {
		unsigned char b = (unsigned char)c;
		assert_int_equal(ascii_lower(b), c >= 'A' && c <= 'Z' ? c + 32 : c);
		assert_int_equal(ascii_is_digit(b), c >= '0' && c <= '9');
		const char *at = c ? strchr(digits, ascii_lower(b)) : NULL;
		assert_int_equal(ascii_hex(b), at ? at - digits : -1);
	}
}

static void slices_in_order(void **state)
{
	(void)state;
	assert_true(slice_compare(SLICE("a"), SLICE("b")) < 0 && slice_compare(SLICE("b"), SLICE("a")) > 0);
	assert_true(slice_compare(SLICE("a"), SLICE("ab")) < 0 && slice_compare(SLICE_NONE, SLICE("a")) < 0);
	assert_int_equal(slice_compare(SLICE("ab"), SLICE("ab")), 0);
	assert_true(slice_compare(SLICE("\x80"), SLICE("a")) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_in_order), cmocka_unit_test(equality),   cmocka_unit_test(parts),
		cmocka_unit_test(searching),       cmocka_unit_test(trimming),   cmocka_unit_test(cutting),
		cmocka_unit_test(numbers),         cmocka_unit_test(characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
