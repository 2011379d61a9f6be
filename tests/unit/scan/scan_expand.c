/* Patterns that also match what JSON strings make of quotes and line ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "inspectors/scan/expand.h"

static void assert_expanded(const char *pattern, const char *expected)
{
	struct arena arena;
	arena_init(&arena, 65536);
	struct slice got = pattern_expand(slice_str(pattern), &arena);
	if (!slice_eq(got, slice_str(expected)))
		fail_msg("%s became %.*s", pattern, SLICE_FMT(got));
	arena_free(&arena);
}

static void plain_patterns_stay(void **state)
{
	(void)state;
	assert_expanded("ghp_[A-Za-z0-9]{36}", "ghp_[A-Za-z0-9]{36}");
	assert_expanded("a\\.b\\\\c[\"'\\s]", "a\\.b\\\\c[\"'\\s]");
	assert_expanded("[^\"'\\]]x", "[^\"'\\]]x");
	assert_expanded("[]\"]x", "[]\"]x");
}

static void quotes_and_blanks_may_be_escaped(void **state)
{
	(void)state;
	assert_expanded("\"key\"", "(?:\\\\{0,3}\")key(?:\\\\{0,3}\")");
	assert_expanded("x[\"']?\\s{0,3}", "x(?:\\\\{0,3}[\"'])?(?:\\s|\\\\{1,3}[nrt]){0,3}");
}

static void a_word_may_begin_behind_an_escape(void **state)
{
	(void)state;
	assert_expanded("\\bAKIA\\b", "(?:\\b|\\\\[nrt])(AKIA\\b)");
	assert_expanded("\\bpw=(x)", "(?:\\b|\\\\[nrt])pw=(x)");
	assert_expanded("\\bpw=\\((?:x)", "(?:\\b|\\\\[nrt])(pw=\\((?:x))");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_patterns_stay),
		cmocka_unit_test(quotes_and_blanks_may_be_escaped),
		cmocka_unit_test(a_word_may_begin_behind_an_escape),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
