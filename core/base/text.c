/* Appending to a bounded buffer. */
#include "core/base/text.h"

static const char hex_digits[] = "0123456789abcdef";

void text_put_u64(struct text *t, uint64_t v)
{
	char digits[20];
	size_t at = sizeof(digits);
	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	text_put(t, slice_of(digits + at, sizeof(digits) - at));
}

void text_put_hex(struct text *t, const void *bytes, size_t n)
{
	const unsigned char *b = bytes;
	if (n > (t->room - t->len) / 2) {
		t->overflow = true;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		t->ptr[t->len++] = hex_digits[b[i] >> 4];
		t->ptr[t->len++] = hex_digits[b[i] & 15];
	}
}

void text_put_hex64(struct text *t, uint64_t v)
{
	unsigned char bytes[8];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(v >> (56 - 8 * i));
	text_put_hex(t, bytes, sizeof(bytes));
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c <= 0x7e && c != '"' && c != '\\';
}

void text_put_json(struct text *t, struct slice s)
{
	size_t from = 0;
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		if (is_plain(c))
			continue;
		text_put(t, slice_of(s.ptr + from, i - from));
		from = i + 1;
		if (c == '"' || c == '\\') {
			text_put_char(t, '\\');
			text_put_char(t, (char)c);
		} else {
			text_put(t, SLICE("\\u00"));
			text_put_hex(t, &c, 1);
		}
	}
	text_put(t, slice_from(s, from));
}
