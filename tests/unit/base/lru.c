/* The cache that forgets what was used least recently. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>

#include "core/base/lru.h"

static int dropped[1000];

static void drop(void *value)
{
	dropped[*(int *)value]++;
}

static int values[1000];

static void fill_values(void)
{
	for (int i = 0; i < 1000; i++) {
		values[i] = i;
		dropped[i] = 0;
	}
}

static struct slice key_of(int i)
{
	static char text[16];
	return slice_of(text, (size_t)snprintf(text, sizeof(text), "k%d", i));
}

static void put(struct lru *l, int i)
{
	assert_int_equal(lru_put(l, key_of(i), &values[i]), CAGE_OK);
}

static void oldest_is_forgotten(void **state)
{
	(void)state;
	fill_values();
	struct lru *l = lru_new(3, drop);
	put(l, 1);
	put(l, 2);
	put(l, 3);
	assert_ptr_equal(lru_get(l, key_of(1)), &values[1]);
	put(l, 4);
	assert_null(lru_get(l, key_of(2)));
	assert_int_equal(dropped[2], 1);
	assert_int_equal(lru_count(l), 3);
	put(l, 5);
	assert_int_equal(dropped[3], 1);
	assert_ptr_equal(lru_get(l, key_of(1)), &values[1]);
	lru_free(&l);
	assert_null(l);
	for (int i = 1; i <= 5; i++)
		assert_int_equal(dropped[i], 1);
	lru_free(&l);
}

static void new_value_takes_the_place_of_the_old(void **state)
{
	(void)state;
	fill_values();
	struct lru *l = lru_new(2, drop);
	assert_int_equal(lru_put(l, SLICE("a"), &values[1]), CAGE_OK);
	assert_int_equal(lru_put(l, SLICE("b"), &values[2]), CAGE_OK);
	assert_int_equal(lru_put(l, SLICE("a"), &values[3]), CAGE_OK);
	assert_int_equal(dropped[1], 1);
	assert_int_equal(dropped[2], 0);
	assert_int_equal(lru_count(l), 2);
	assert_ptr_equal(lru_get(l, SLICE("a")), &values[3]);
	lru_free(&l);
}

static void taking_does_not_drop(void **state)
{
	(void)state;
	fill_values();
	struct lru *l = lru_new(2, drop);
	assert_null(lru_take(l, SLICE("a")));
	assert_int_equal(lru_put(l, SLICE_NONE, &values[1]), CAGE_OK);
	assert_ptr_equal(lru_take(l, SLICE("")), &values[1]);
	assert_null(lru_get(l, SLICE("")));
	assert_int_equal(lru_count(l), 0);
	lru_free(&l);
	assert_int_equal(dropped[1], 0);
}

/* Against a plain array that keeps the order of use. */
static void long_run(void **state)
{
	(void)state;
	int order[1001], n = 0;
	uint32_t rnd = 1;
	fill_values();
	struct lru *l = lru_new(50, drop);
	for (int step = 0; step < 20000; step++) {
		rnd = rnd * 1664525u + 1013904223u;
		int i = (int)(rnd >> 16) % 100, at = n;
		for (int k = 0; k < n; k++)
			if (order[k] == i)
				at = k;
		void *have = lru_get(l, key_of(i));
		assert_ptr_equal(have, at < n ? &values[i] : NULL);
		if (!have) {
			put(l, i);
			if (n == 50)
				at = 0;
			else
				at = n++;
		}
		memmove(order + at, order + at + 1, (size_t)(n - at - 1) * sizeof(order[0]));
		order[n - 1] = i;
		assert_int_equal(lru_count(l), n);
	}
	lru_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(oldest_is_forgotten),
		cmocka_unit_test(new_value_takes_the_place_of_the_old),
		cmocka_unit_test(taking_does_not_drop),
		cmocka_unit_test(long_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
