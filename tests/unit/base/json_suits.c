/* What is told as text, and what as base64. */
#include "core/base/json_suits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* after them */
#include <cmocka.h>

static void test_short(void **state)
{
	(void)state;
	assert_true(json_suits(SLICE_NONE) && json_suits(SLICE("text\n")) && json_suits(SLICE("\a")));
	assert_true(json_suits(SLICE("\x1b[31mred\x1b[0m")));
	assert_false(json_suits(SLICE("a\0b")) || json_suits(SLICE("\0")));
}

/* One kind of byte, and how many of them there are beside letters. */
static bool suits(char c, size_t share)
{
	static char bytes[10000];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i % 100 < share ? c : 'x';
	return json_suits(slice_of(bytes, sizeof(bytes)));
}

static void test_long(void **state)
{
	(void)state;
	static const char twice[] = "\b\t\n\f\r\"\\";
	for (size_t i = 0; twice[i]; i++)
		assert_true(suits(twice[i], 100));
	assert_true(suits('\x7f', 100) && suits('\xff', 100));
	assert_true(suits('\x01', 20) && suits('\x1b', 20) && suits('\v', 20));
	assert_false(suits('\x01', 21) || suits('\x1b', 21) || suits('\v', 21) || suits('\0', 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_short), cmocka_unit_test(test_long)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
