/* Percent escapes: written in one way, read in any. */
#include "proxy/percent.h"

bool percent_is_unreserved(unsigned char c)
{
	unsigned char l = ascii_lower(c);
	return (l >= 'a' && l <= 'z') || ascii_is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

struct slice percent_encode(struct slice plain, struct arena *arena)
{
	static const char hex[] = "0123456789ABCDEF";
	char *out = arena_alloc(arena, 3 * plain.len);
	size_t n = 0;
	for (size_t i = 0; out && i < plain.len; i++) {
		unsigned char c = (unsigned char)plain.ptr[i];
		if (percent_is_unreserved(c)) {
			out[n++] = (char)c;
			continue;
		}
		out[n++] = '%';
		out[n++] = hex[c >> 4];
		out[n++] = hex[c & 15];
	}
	return slice_of(out, n);
}

/* The byte that the escape at s[i] stands for, or -1. */
static int escape_value(struct slice s, size_t i)
{
	if (s.ptr[i] != '%' || s.len - i < 3)
		return -1;
	int high = ascii_hex((unsigned char)s.ptr[i + 1]);
	int low = ascii_hex((unsigned char)s.ptr[i + 2]);
	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

struct slice percent_decode(struct slice coded, struct arena *arena)
{
	char *out = arena_alloc(arena, coded.len);
	size_t n = 0;
	for (size_t i = 0; out && i < coded.len; i++) {
		int value = escape_value(coded, i);
		if (value < 0) {
			out[n++] = coded.ptr[i] == '+' ? ' ' : coded.ptr[i];
			continue;
		}
		out[n++] = (char)value;
		i += 2;
	}
	return slice_of(out, n);
}
