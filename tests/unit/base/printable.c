/* What a terminal would obey is not shown to it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "core/base/printable.h"

static void assert_printable(const char *text, const char *expected)
{
	char copy[64];
	size_t len = strlen(text);
	memcpy(copy, text, len + 1);
	make_printable(copy, len);
	assert_string_equal(copy, expected);
}

static void text_stays(void **state)
{
	(void)state;
	assert_printable("", "");
	assert_printable("/tmp/a b~", "/tmp/a b~");
	assert_printable("/home/j\xc3\xb6rg/\xe6\x96\x87", "/home/j\xc3\xb6rg/\xe6\x96\x87");
	assert_printable("\xc2\xa0\xc2\xbf", "\xc2\xa0\xc2\xbf"); /* the first behind the control characters */
	assert_printable("\xe4\x82\x9b", "\xe4\x82\x9b");         /* a 9b that is part of another character */
}

static void control_characters_go(void **state)
{
	(void)state;
	assert_printable("a\x1b[2Jb", "a?[2Jb");
	assert_printable("\x1b]0;title\x07", "?]0;title?");
	assert_printable("line\r\nnext\tword\x7f", "line??next?word?");
	assert_printable("\xc2\x9b"
			 "2J",
			 "\xc2?2J");
	assert_printable("\xc2\x80\xc2\x9f", "\xc2?\xc2?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(text_stays), cmocka_unit_test(control_characters_go)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
