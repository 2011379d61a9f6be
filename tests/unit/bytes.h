/* Bytes that grow, for tests that collect what was said to them. Behind cmocka.h. */
#ifndef CAGE_TESTS_BYTES_H
#define CAGE_TESTS_BYTES_H

#include <stdlib.h>

#include "core/base/slice.h"

struct bytes {
	char *ptr;
	size_t len, room;
};

static inline void bytes_add(struct bytes *b, struct slice s)
{
	if (b->len + s.len > b->room) {
		b->room = 2 * (b->len + s.len) + 64;
		b->ptr = realloc(b->ptr, b->room);
		assert_non_null(b->ptr);
	}
	if (s.len > 0)
		memcpy(b->ptr + b->len, s.ptr, s.len);
	b->len += s.len;
}

static inline void bytes_add_char(struct bytes *b, char c)
{
	bytes_add(b, slice_of(&c, 1));
}

static inline void bytes_fill(struct bytes *b, char c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes_add_char(b, c);
}

static inline struct slice bytes_slice(const struct bytes *b)
{
	return slice_of(b->ptr, b->len);
}

static inline void bytes_free(struct bytes *b)
{
	free(b->ptr);
	*b = (struct bytes){0};
}

#endif
