/* Letters of UTF-8, and what is none. */
#include "core/base/utf8_letter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void check(const char *bytes, size_t n, int want)
{
	assert_int_equal(utf8_letter(slice_of(bytes, n)), want);
}

static void letters(void **state)
{
	(void)state;
	check("", 1, 1); /* NUL is one */
	check("a", 1, 1);
	check("\x7f", 1, 1);
	check("\xc2\x80", 2, 2);
	check("\xef\xbf\xbf", 3, 3);
	check("\xed\x9f\xbf", 3, 3);
	check("\xf4\x8f\xbf\xbf", 4, 4);
}

static void none(void **state)
{
	(void)state;
	check("\x80", 1, 0);
	check("\xc1\xbf", 2, 0);         /* overlong */
	check("\xe0\x9f\xbf", 3, 0);     /* likewise */
	check("\xed\xa0\x80", 3, 0);     /* a surrogate */
	check("\xf4\x90\x80\x80", 4, 0); /* beyond U+10FFFF */
	check("\xf5\x80\x80\x80", 4, 0);
	check("\xff", 1, 0);
	check("\xc3(", 2, 0);
	check("\xc3", 1, -1); /* cut */
	check("\xf0\x9f\x90", 3, -1);
}

static void mended(void **state)
{
	(void)state;
	char text[] = "a\xff\xc3\xa9\xed\xa0\x80z\xf0\x9f";
	utf8_mend(text, sizeof(text) - 1);
	assert_string_equal(text, "a?\xc3\xa9???z??");
	utf8_mend(text, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(letters),
		cmocka_unit_test(none),
		cmocka_unit_test(mended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
