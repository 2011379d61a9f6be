/* Is a value in a text, in some form? The slow and simple way, for tests: from each byte on, the text is decoded for as
 * many bytes as the value has, and compared. */
#ifndef CAGE_TESTS_KNOWN_NAIVE_H
#define CAGE_TESTS_KNOWN_NAIVE_H

#include "core/base/slice.h"

/* Decodes one byte at the start of the text: how many bytes it is written with, 0 when there is none. */
typedef size_t naive_decode(struct slice text, unsigned char *out);

static inline size_t naive_hex(struct slice text, unsigned char *out)
{
	int high = text.len >= 2 ? ascii_hex((unsigned char)text.ptr[0]) : -1;
	int low = text.len >= 2 ? ascii_hex((unsigned char)text.ptr[1]) : -1;
	*out = (unsigned char)(high * 16 + low);
	return high >= 0 && low >= 0 ? 2 : 0;
}

static inline size_t naive_percent(struct slice text, unsigned char *out)
{
	if (text.len > 0 && text.ptr[0] == '%' && naive_hex(slice_from(text, 1), out))
		return 3;
	*out = text.len > 0 ? (unsigned char)text.ptr[0] : 0;
	return text.len > 0;
}

static inline size_t naive_form(struct slice text, unsigned char *out)
{
	size_t n = naive_percent(text, out);
	if (n == 1 && *out == '+')
		*out = ' ';
	return n;
}

static inline size_t naive_json(struct slice text, unsigned char *out)
{
	static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	if (text.len >= 6 && memcmp(text.ptr, "\\u00", 4) == 0 && naive_hex(slice_from(text, 4), out))
		return 6;
	const char *letter = text.len >= 2 && text.ptr[0] == '\\' && text.ptr[1] ? strchr(letters, text.ptr[1]) : NULL;
	*out = text.len > 0 ? (unsigned char)text.ptr[0] : 0;
	if (letter)
		*out = (unsigned char)bytes[letter - letters];
	return letter ? 2 : text.len > 0;
}

static inline size_t naive_raw(struct slice text, unsigned char *out)
{
	*out = text.len > 0 ? (unsigned char)text.ptr[0] : 0;
	return text.len > 0;
}

static inline bool naive_starts(struct slice text, struct slice value, naive_decode *decode)
{
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c;
		size_t n = decode(text, &c);
		if (n == 0 || c != (unsigned char)value.ptr[i])
			return false;
		text = slice_from(text, n);
	}
	return true;
}

/* Bit `i` of the base64 digits there, or -1. */
static inline int naive_bit(struct slice text, size_t i)
{
	int digit = i / 6 < text.len ? ascii_base64((unsigned char)text.ptr[i / 6]) : -1;
	return digit < 0 ? -1 : digit >> (5 - i % 6) & 1;
}

static inline bool naive_starts_base64(struct slice text, struct slice value, size_t skip)
{
	for (size_t i = 0; i < 8 * value.len; i++)
		if (naive_bit(text, skip + i) != ((unsigned char)value.ptr[i / 8] >> (7 - i % 8) & 1))
			return false;
	return true;
}

static inline bool naive_has(struct slice text, struct slice value)
{
	static naive_decode *const decoders[] = {naive_raw, naive_percent, naive_form, naive_json, naive_hex};
	for (size_t at = 0; at < text.len; at++) {
		struct slice rest = slice_from(text, at);
		for (size_t d = 0; d < sizeof(decoders) / sizeof(decoders[0]); d++)
			if (naive_starts(rest, value, decoders[d]))
				return true;
		for (size_t skip = 0; skip < 6; skip += 2)
			if (naive_starts_base64(rest, value, skip))
				return true;
	}
	return false;
}

#endif
