/* Random placeholders: the same for the same key, sandbox and secret, another one when any of them differs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/proc/placeholder.h"

static const unsigned char key_a[PLACEHOLDER_KEY] = {1}, key_b[PLACEHOLDER_KEY] = {2};

struct random {
	char text[PLACEHOLDER_RANDOM];
};

static struct random random_of(const char *id, const char *sandbox, const unsigned char *key)
{
	struct policy_secret s = {.id = slice_str(id)};
	struct random r;
	struct slice got = placeholder_of(&s, slice_str(sandbox), key, r.text);
	assert_ptr_equal(got.ptr, r.text);
	assert_int_equal(got.len, PLACEHOLDER_RANDOM);
	return r;
}

static void expect_other(struct random a, struct random b)
{
	assert_memory_not_equal(a.text, b.text, PLACEHOLDER_RANDOM);
}

static void a_written_one_is_itself(void **state)
{
	(void)state;
	struct policy_secret s = {.id = SLICE("k"), .placeholder = SLICE("{{KEY-1}}")};
	char room[PLACEHOLDER_RANDOM];
	assert_true(slice_eq(placeholder_of(&s, SLICE("a"), key_a, room), SLICE("{{KEY-1}}")));
}

static void random_ones(void **state)
{
	(void)state;
	struct random r = random_of("k", "a", key_a);
	assert_memory_equal(r.text, "cage-ph-", 8);
	for (size_t i = 8; i < sizeof(r.text); i++)
		assert_non_null(strchr("0123456789abcdef", r.text[i]));
	assert_memory_equal(random_of("k", "a", key_a).text, r.text, sizeof(r.text));
	expect_other(r, random_of("k", "b", key_a));
	expect_other(r, random_of("l", "a", key_a));
	expect_other(r, random_of("k", "a", key_b));
	expect_other(random_of("bc", "a", key_a), random_of("c", "ab", key_a));
}

static void the_key_is_kept(void **state)
{
	(void)state;
	char dir[] = "/tmp/cage-test-XXXXXX", path[64];
	unsigned char first[PLACEHOLDER_KEY], again[PLACEHOLDER_KEY];
	struct stat st;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/placeholder.key", dir);
	assert_true(placeholder_key_load(NULL, dir, first));
	assert_true(placeholder_key_load(NULL, dir, again));
	assert_memory_equal(first, again, sizeof(first));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(truncate(path, 5), 0);
	assert_false(placeholder_key_load(NULL, dir, again));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_written_one_is_itself),
		cmocka_unit_test(random_ones),
		cmocka_unit_test(the_key_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
