/* Options are put where their rows say, and what is wrong is refused. */
#include "core/base/option_table.h"

#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "core/base/slice.h"
#include "core/base/usage.h"

struct wishes {
	const char *first, *second;
	bool is_set;
	size_t taken;
};

static const char *take(void *place, const char *value)
{
	size_t *n = place;
	++*n;
	return slice_eq(slice_str(value), SLICE("bad")) ? "expected good" : NULL;
}

static const struct option_row rows[] = {{"first", OPTION_TEXT, offsetof(struct wishes, first), NULL},
					 {"second", OPTION_TEXT, offsetof(struct wishes, second), NULL},
					 {"set", OPTION_FLAG, offsetof(struct wishes, is_set), NULL},
					 {"take", OPTION_TAKEN, offsetof(struct wishes, taken), take}};

static int parse(struct wishes *w, bool ends_at_word, const char *const *words)
{
	static char text[16][32];
	static char *argv[16];
	const struct option_table t = {"test", "usage: test\n", "--help lists all options", rows, 4, ends_at_word};
	int n = 0;
	for (; words[n]; n++) {
		snprintf(text[n], sizeof(text[n]), "%s", words[n]);
		argv[n] = text[n];
	}
	argv[n] = NULL;
	optind = 0;
	*w = (struct wishes){.second = "usual"};
	return option_table_read(&t, n, argv, w);
}

#define WORDS(...) ((const char *const[]){"test", __VA_ARGS__, NULL})

static void each_goes_to_its_place(void **state)
{
	struct wishes w;
	(void)state;
	assert_int_equal(parse(&w, false, WORDS("--first", "a", "--set", "--take=x", "--take", "y")), OPTIONS_GO_ON);
	assert_string_equal(w.first, "a");
	assert_string_equal(w.second, "usual");
	assert_true(w.is_set);
	assert_int_equal(w.taken, 2);
	assert_string_equal(option_text(&rows[1], &w), "usual");
}

static void words_end_them_or_not(void **state)
{
	struct wishes w;
	(void)state;
	assert_int_equal(parse(&w, true, WORDS("--first", "a", "word", "--set")), OPTIONS_GO_ON);
	assert_false(w.is_set);
	assert_int_equal(optind, 3);
	assert_int_equal(parse(&w, false, WORDS("--first", "a", "word", "--set")), OPTIONS_GO_ON);
	assert_true(w.is_set);
}

static void what_is_wrong_ends_it(void **state)
{
	struct wishes w;
	(void)state;
	assert_int_equal(parse(&w, false, WORDS("--take", "bad", "--set")), USAGE_WRONG);
	assert_false(w.is_set);
	assert_int_equal(parse(&w, false, WORDS("--none")), USAGE_WRONG);
	assert_int_equal(parse(&w, false, WORDS("--first")), USAGE_WRONG);
	assert_int_equal(parse(&w, false, WORDS("--set=1")), USAGE_WRONG);
	assert_int_equal(parse(&w, false, WORDS("-x")), USAGE_WRONG);
}

static void texts_that_were_asked_for(void **state)
{
	struct wishes w;
	(void)state;
	assert_int_equal(parse(&w, false, WORDS("--help", "--set")), 0);
	assert_int_equal(parse(&w, false, WORDS("-h")), 0);
	assert_int_equal(parse(&w, false, WORDS("--version")), 0);
	assert_false(w.is_set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_goes_to_its_place),
		cmocka_unit_test(words_end_them_or_not),
		cmocka_unit_test(what_is_wrong_ends_it),
		cmocka_unit_test(texts_that_were_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
