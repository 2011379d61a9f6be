/* Memory that is freed all at once: alignment, limits, and both kinds of origin. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>

#include "core/base/arena.h"

static bool is_zero(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

static void heap_memory_is_zeroed_and_aligned(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, 1 << 20);
	for (int round = 0; round < 2; round++) {
		for (size_t n = 1; n < 300; n++) {
			char *p = arena_alloc(&a, n);
			assert_non_null(p);
			assert_int_equal((uintptr_t)p % 16, 0);
			assert_true(is_zero(p, n));
			memset(p, 0xff, n);
		}
		arena_reset(&a);
		assert_int_equal(a.used, 0);
	}
	arena_free(&a);
}

static void nothing_is_still_something(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, 100);
	assert_non_null(arena_alloc(&a, 0));
	assert_non_null(arena_array(&a, 0, 8));
	struct slice s = arena_dup(&a, SLICE_NONE);
	assert_non_null(s.ptr);
	assert_int_equal(s.len, 0);
	arena_free(&a);
}

static void heap_limit(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, 8192);
	assert_null(arena_alloc(&a, 8193));
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_alloc(&a, SIZE_MAX - 8));
	assert_non_null(arena_alloc(&a, 8176));
	assert_non_null(arena_alloc(&a, 16));
	assert_null(arena_alloc(&a, 1));
	assert_null(arena_dup(&a, SLICE("x")).ptr);
	arena_reset(&a);
	assert_non_null(arena_alloc(&a, 8192));
	arena_free(&a);
	assert_non_null(arena_alloc(&a, 8192));
	arena_free(&a);
}

static void arrays_do_not_overflow(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, SIZE_MAX);
	assert_null(arena_array(&a, SIZE_MAX / 2, 3));
	assert_null(arena_array(&a, SIZE_MAX / 16 + 2, 16));
	assert_non_null(arena_array(&a, 100, 24));
	arena_free(&a);
}

static void dup_copies(void **state)
{
	(void)state;
	struct arena a;
	char text[] = "a\0b";
	arena_init(&a, 1000);
	struct slice s = arena_dup(&a, slice_of(text, 3));
	text[0] = 'x';
	assert_true(slice_eq(s, SLICE("a\0b")));
	arena_free(&a);
}

static void region_is_all_there_is(void **state)
{
	(void)state;
	struct arena a;
	char *region = aligned_alloc(16, 1024);
	memset(region, 0, 1024);
	arena_init_region(&a, region, 1024);
	char *first = arena_alloc(&a, 1);
	assert_ptr_equal(first, region);
	assert_ptr_equal(arena_alloc(&a, 16), region + 16);
	assert_null(arena_alloc(&a, 1024 - 31));
	assert_ptr_equal(arena_alloc(&a, 1024 - 32), region + 32);
	assert_null(arena_alloc(&a, 1));
	arena_free(&a);
	region[0] = 'x';
	free(region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heap_memory_is_zeroed_and_aligned),
		cmocka_unit_test(nothing_is_still_something),
		cmocka_unit_test(heap_limit),
		cmocka_unit_test(arrays_do_not_overflow),
		cmocka_unit_test(dup_copies),
		cmocka_unit_test(region_is_all_there_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
