/* Builds text in a buffer of fixed size. Running out is remembered, not fatal: check text_ok() once at the end. */
#ifndef CAGE_BASE_TEXT_H
#define CAGE_BASE_TEXT_H

#include <stdint.h>

#include "core/base/slice.h"

struct text {
	char *ptr;
	size_t len, room;
	bool overflow;
};

static inline struct text text_in(char *buf, size_t room)
{
	return (struct text){.ptr = buf, .room = room};
}

static inline struct slice text_slice(const struct text *t)
{
	return slice_of(t->ptr, t->len);
}

static inline bool text_ok(const struct text *t)
{
	return !t->overflow;
}

static inline void text_put(struct text *t, struct slice s)
{
	if (s.len > t->room - t->len) {
		t->overflow = true;
		return;
	}
	if (s.len > 0)
		memcpy(t->ptr + t->len, s.ptr, s.len);
	t->len += s.len;
}

static inline void text_put_char(struct text *t, char c)
{
	if (t->len == t->room)
		t->overflow = true;
	else
		t->ptr[t->len++] = c;
}

void text_put_u64(struct text *t, uint64_t v);
void text_put_hex(struct text *t, const void *bytes, size_t n); /* lower case */
void text_put_hex64(struct text *t, uint64_t v);                /* always 16 digits: ids */

/* How many bytes at the beginning stand in a JSON string as they are. */
size_t text_plain_length(struct slice s);

/* The bytes as the inside of a JSON string: `"` and `\` escaped, anything outside 0x20..0x7e as \u00XX. */
void text_put_json(struct text *t, struct slice s);

#endif
