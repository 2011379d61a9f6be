/* Percent escapes: written in one way, read in any. */
#include "proxy/percent.h"

#include "core/base/escape.h"

struct slice percent_encode(struct slice plain, struct arena *arena)
{
	char *out = arena_alloc(arena, ESCAPE_PERCENT * plain.len);
	size_t n = 0;
	for (size_t i = 0; out && i < plain.len; i++)
		n += escape_percent((unsigned char)plain.ptr[i], out + n);
	return slice_of(out, n);
}

struct slice percent_decode(struct slice coded, struct arena *arena)
{
	char *out = arena_alloc(arena, coded.len);
	size_t n = 0;
	for (size_t i = 0; out && i < coded.len; i++) {
		int value = escape_percent_value(coded, i);
		if (value < 0) {
			out[n++] = coded.ptr[i] == '+' ? ' ' : coded.ptr[i];
			continue;
		}
		out[n++] = (char)value;
		i += 2;
	}
	return slice_of(out, n);
}
