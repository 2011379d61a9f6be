/* The queue of bytes in blocks. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>

#include "core/base/fifo.h"

static char pattern[5 * FIFO_BLOCK];

static void fill_pattern(void)
{
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (char)(i * 31 + i / 251);
}

static void empty_fifo(void **state)
{
	(void)state;
	struct fifo f = {0};
	assert_int_equal(fifo_front(&f).len, 0);
	assert_int_equal(fifo_at(&f, 5).len, 0);
	assert_int_equal(fifo_put(&f, SLICE_NONE), CAGE_OK);
	fifo_drop(&f, 0);
	fifo_clear(&f);
	assert_int_equal(f.len, 0);
	assert_null(f.first);
}

/* Takes up to n bytes, which must be those of the pattern from *out on. */
static void take(struct fifo *f, size_t n, size_t *out)
{
	while (n > 0 && f->len > 0) {
		struct slice s = slice_head(fifo_front(f), n);
		assert_true(s.len > 0 && s.len <= f->len);
		assert_memory_equal(s.ptr, pattern + *out, s.len);
		fifo_drop(f, s.len);
		*out += s.len;
		n -= s.len;
	}
}

/* Puts and drops of every size around a block's. */
static void bytes_come_out_as_they_went_in(void **state)
{
	(void)state;
	static const size_t sizes[] = {1, 700, FIFO_BLOCK - 1, FIFO_BLOCK, FIFO_BLOCK + 1, 2 * FIFO_BLOCK + 5};
	fill_pattern();
	for (size_t p = 0; p < 6; p++) {
		for (size_t d = 0; d < 6; d++) {
			struct fifo f = {0};
			size_t in = 0, out = 0;
			for (int step = 0; step < 100 && in + sizes[p] <= sizeof(pattern); step++) {
				assert_int_equal(fifo_put(&f, slice_of(pattern + in, sizes[p])), CAGE_OK);
				in += sizes[p];
				take(&f, sizes[d], &out);
				assert_int_equal(f.len, in - out);
			}
			take(&f, SIZE_MAX, &out);
			assert_int_equal(out, in);
			assert_null(f.first);
			assert_null(f.last);
		}
	}
}

/* One drop over many blocks. */
static void large_drop(void **state)
{
	(void)state;
	struct fifo f = {0};
	size_t out = sizeof(pattern) - 3;
	fill_pattern();
	assert_int_equal(fifo_put(&f, slice_of(pattern, sizeof(pattern))), CAGE_OK);
	fifo_drop(&f, out);
	assert_int_equal(f.len, 3);
	take(&f, 3, &out);
	assert_int_equal(out, sizeof(pattern));
}

static void small_puts_share_a_block(void **state)
{
	(void)state;
	struct fifo f = {0};
	assert_int_equal(fifo_put(&f, SLICE("ab")), CAGE_OK);
	fifo_drop(&f, 1);
	assert_int_equal(fifo_put(&f, SLICE("cd")), CAGE_OK);
	assert_true(slice_eq(fifo_front(&f), SLICE("bcd")));
	assert_int_equal(f.len, 3);
	fifo_clear(&f);
}

static void reading_without_taking(void **state)
{
	(void)state;
	struct fifo f = {0};
	fill_pattern();
	size_t n = 2 * FIFO_BLOCK + 100;
	for (size_t i = 0; i < n; i += 1000)
		assert_int_equal(fifo_put(&f, slice_of(pattern + i, n - i < 1000 ? n - i : 1000)), CAGE_OK);
	fifo_drop(&f, 50);
	for (size_t at = 0; at < f.len; at += 97) {
		struct slice s = fifo_at(&f, at);
		assert_true(s.len > 0);
		assert_memory_equal(s.ptr, pattern + 50 + at, s.len);
	}
	assert_int_equal(fifo_at(&f, f.len).len, 0);
	assert_int_equal(f.len, n - 50);
	fifo_clear(&f);
	assert_int_equal(f.len, 0);
}

/* More blocks than are kept spare. */
static void many_blocks(void **state)
{
	(void)state;
	struct fifo f = {0};
	fill_pattern();
	for (int i = 0; i < 40; i++)
		assert_int_equal(fifo_put(&f, slice_of(pattern, sizeof(pattern))), CAGE_OK);
	assert_int_equal(f.len, 40 * sizeof(pattern));
	fifo_clear(&f);
	assert_int_equal(fifo_put(&f, SLICE("x")), CAGE_OK);
	assert_true(slice_eq(fifo_front(&f), SLICE("x")));
	fifo_clear(&f);
}

/* Whole blocks change hands without a copy; what is larger than asked for stays. */
static void blocks_move(void **state)
{
	(void)state;
	struct fifo from = {0}, to = {0};
	size_t out = 0;
	fill_pattern();
	assert_int_equal(fifo_move_block(&to, &from, SIZE_MAX), 0);
	assert_int_equal(fifo_put(&to, slice_of(pattern, 100)), CAGE_OK);
	assert_int_equal(fifo_put(&from, slice_of(pattern + 100, 2 * FIFO_BLOCK + 10)), CAGE_OK);
	const char *first = fifo_front(&from).ptr;
	assert_int_equal(fifo_move_block(&to, &from, FIFO_BLOCK - 1), 0);
	assert_int_equal(fifo_move_block(&to, &from, FIFO_BLOCK), FIFO_BLOCK);
	assert_ptr_equal(fifo_at(&to, 100).ptr, first);
	assert_int_equal(fifo_move_block(&to, &from, SIZE_MAX), FIFO_BLOCK);
	assert_int_equal(fifo_move_block(&to, &from, SIZE_MAX), 10);
	assert_null(from.first);
	assert_null(from.last);
	assert_int_equal(from.len, 0);
	assert_int_equal(fifo_put(&to, slice_of(pattern + 2 * FIFO_BLOCK + 110, 7)), CAGE_OK);
	assert_int_equal(to.len, 2 * FIFO_BLOCK + 117);
	take(&to, to.len, &out);
	assert_int_equal(out, 2 * FIFO_BLOCK + 117);
	assert_int_equal(fifo_put(&from, slice_of(pattern, 3)), CAGE_OK); /* usable again */
	fifo_clear(&from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_fifo),
		cmocka_unit_test(bytes_come_out_as_they_went_in),
		cmocka_unit_test(blocks_move),
		cmocka_unit_test(large_drop),
		cmocka_unit_test(small_puts_share_a_block),
		cmocka_unit_test(reading_without_taking),
		cmocka_unit_test(many_blocks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
