/* Appending to a bounded buffer. */
#include "core/base/text.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

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
	char *out = t->ptr + t->len;
	for (size_t i = 0; i < n; i++) {
		out[2 * i] = hex_digits[b[i] >> 4];
		out[2 * i + 1] = hex_digits[b[i] & 15];
	}
	t->len += 2 * n;
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

#ifdef __SSE2__

#define AT_ONCE 16

/* One bit for each of the bytes that is not plain. Those beyond ASCII are negative. */
static unsigned not_plain(const char *bytes)
{
	__m128i b = _mm_loadu_si128((const __m128i *)bytes);
	__m128i below = _mm_cmplt_epi8(b, _mm_set1_epi8(0x20)), last = _mm_cmpeq_epi8(b, _mm_set1_epi8(0x7f));
	__m128i quote = _mm_cmpeq_epi8(b, _mm_set1_epi8('"')), backslash = _mm_cmpeq_epi8(b, _mm_set1_epi8('\\'));
	return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(below, last), _mm_or_si128(quote, backslash)));
}

#else

#define AT_ONCE 1

static unsigned not_plain(const char *byte)
{
	return !is_plain((unsigned char)*byte);
}

#endif

size_t text_plain_length(struct slice s)
{
	size_t i = 0;
	for (; s.len - i >= AT_ONCE; i += AT_ONCE) {
		unsigned others = not_plain(s.ptr + i);
		if (others)
			return i + (unsigned)__builtin_ctz(others);
	}
	while (i < s.len && is_plain((unsigned char)s.ptr[i]))
		i++;
	return i;
}

static void put_escaped(struct text *t, unsigned char c)
{
	if (c == '"' || c == '\\') {
		text_put_char(t, '\\');
		text_put_char(t, (char)c);
	} else {
		text_put(t, SLICE("\\u00"));
		text_put_hex(t, &c, 1);
	}
}

void text_put_json(struct text *t, struct slice s)
{
	while (s.len > 0) {
		size_t n = text_plain_length(s);
		text_put(t, slice_head(s, n));
		if (n < s.len)
			put_escaped(t, (unsigned char)s.ptr[n++]);
		s = slice_from(s, n);
	}
}
