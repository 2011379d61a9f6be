/* The read-only lookup table. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>

#include "core/base/map.h"

#define N 5000

static struct slice key_of(struct arena *a, int i)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "host-%d.test", i);
	struct slice s = arena_dup(a, slice_of(text, (size_t)n));
	assert_non_null(s.ptr);
	return s;
}

static void finds_what_was_added_and_nothing_else(void **state)
{
	(void)state;
	static int values[N];
	struct arena a;
	struct map m;
	arena_init(&a, 8 << 20);
	assert_int_equal(map_init(&m, &a, N), CAGE_OK);
	assert_null(map_get(&m, SLICE("host-1.test")));
	for (int i = 0; i < N; i++)
		assert_int_equal(map_add(&m, key_of(&a, i), &values[i]), CAGE_OK);
	for (int i = 0; i < N; i++) {
		assert_ptr_equal(map_get(&m, key_of(&a, i)), &values[i]);
		assert_null(map_get(&m, key_of(&a, N + i)));
	}
	assert_int_equal(map_add(&m, SLICE("one more"), values), CAGE_ELIMIT);
	assert_null(map_get(&m, SLICE("one more")));
	arena_free(&a);
}

static void empty_key_and_no_room(void **state)
{
	(void)state;
	struct arena a;
	struct map m;
	int value;
	arena_init(&a, 1 << 16);
	assert_int_equal(map_init(&m, &a, 1), CAGE_OK);
	assert_int_equal(map_add(&m, SLICE_NONE, &value), CAGE_OK);
	assert_ptr_equal(map_get(&m, SLICE("")), &value);
	assert_int_equal(map_init(&m, &a, 0), CAGE_OK);
	assert_int_equal(map_add(&m, SLICE("a"), &value), CAGE_ELIMIT);
	assert_null(map_get(&m, SLICE("a")));
	assert_int_equal(map_init(&m, &a, 1 << 20), CAGE_ENOMEM);
	arena_free(&a);
}

/* Equal bytes hash alike wherever they lie; lengths, tails and seeds count. */
static void hashing(void **state)
{
	(void)state;
	char buf[64] = {0};
	for (size_t len = 0; len < 40; len++) {
		memset(buf, 'a', sizeof(buf));
		uint64_t h = slice_hash(slice_of(buf, len), 1);
		assert_true(h == slice_hash(slice_of(buf + 1, len), 1));
		assert_true(h != slice_hash(slice_of(buf, len), 2));
		assert_true(h != slice_hash(slice_of(buf, len + 1), 1));
		for (size_t i = 0; i < len; i++) {
			buf[i] = 'b';
			assert_true(h != slice_hash(slice_of(buf, len), 1));
			buf[i] = 'a';
		}
	}
	assert_true(slice_hash(SLICE("\0"), 1) != slice_hash(SLICE("\0\0"), 1));
	assert_true(map_seed() != map_seed());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_was_added_and_nothing_else),
		cmocka_unit_test(empty_key_and_no_room),
		cmocka_unit_test(hashing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
