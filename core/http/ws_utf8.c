/* The check of UTF-8. The first byte of a character says how many follow and, in four cases, narrows what the second may
 * be: that keeps out overlong forms, surrogates and what is beyond U+10FFFF at the first byte that is wrong. */
#include "core/http/ws_utf8.h"

#define HIGH_BITS 0x8080808080808080u

/* How many of the bytes are ASCII, in steps of eight. */
static size_t ascii_span(struct slice s)
{
	size_t n = 0;
	uint64_t word;
	while (s.len - n >= sizeof(word)) {
		memcpy(&word, s.ptr + n, sizeof(word));
		if (word & HIGH_BITS)
			break;
		n += sizeof(word);
	}
	return n;
}

static bool first_byte(struct utf8 *u, unsigned char c)
{
	if (c < 0x80)
		return true;
	if (c < 0xc2 || c > 0xf4)
		return false;
	u->left = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	u->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	u->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	return true;
}

static bool next_byte(struct utf8 *u, unsigned char c)
{
	if (c < u->low || c > u->high)
		return false;
	u->left--;
	u->low = 0x80;
	u->high = 0xbf;
	return true;
}

static bool take_byte(struct utf8 *u, unsigned char c)
{
	return u->left ? next_byte(u, c) : first_byte(u, c);
}

size_t utf8_span(struct utf8 *u, struct slice s)
{
	size_t n = 0;
	while (n < s.len) {
		if (u->left == 0)
			n += ascii_span(slice_from(s, n));
		if (n == s.len || !take_byte(u, (unsigned char)s.ptr[n]))
			break;
		n++;
	}
	return n;
}
