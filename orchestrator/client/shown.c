/* Showing text. UTF-8 is read strictly; what is left as it is are letters and signs. */
#include "orchestrator/client/shown.h"

#include <stdio.h>

/* How many bytes the UTF-8 sequence at the beginning has, with its code point; 0: it is none. */
static size_t take_letter(struct slice s, uint32_t *out)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char c = (unsigned char)s.ptr[0];
	size_t n = c < 0x80 ? 1 : (c & 0xe0) == 0xc0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : (c & 0xf8) == 0xf0 ? 4 : 0;
	uint32_t v = n == 1 ? c : c & (0xffu >> (n + 1));
	if (n == 0 || n > s.len)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (((unsigned char)s.ptr[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | ((unsigned char)s.ptr[i] & 0x3f);
	}
	*out = v;
	return v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff) ? 0 : n;
}

/* Controls, line and paragraph separators, what joins nothing or turns the direction of writing, and tags. */
static bool is_harmful(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
	       (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

static void put_escaped(struct text *t, uint32_t c, bool is_byte)
{
	char out[16];
	int n = snprintf(out, sizeof(out), is_byte || c < 0x80 ? "\\x%02x" : "\\u{%x}", (unsigned)c);
	text_put(t, slice_of(out, (size_t)n));
}

static size_t put_letter(struct text *t, struct slice s)
{
	uint32_t c = 0;
	size_t n = take_letter(s, &c);
	if (n == 0)
		put_escaped(t, (unsigned char)s.ptr[0], true);
	else if (is_harmful(c))
		put_escaped(t, c, false);
	else
		text_put(t, slice_head(s, n));
	return n ? n : 1;
}

void shown_put(struct text *t, struct slice s)
{
	while (s.len > 0 && text_ok(t))
		s = slice_from(s, put_letter(t, s));
}

const char *shown(const char *text, char *out, size_t room)
{
	struct text t = text_in(out, room - 4); /* a letter is written whole or not at all, so the cut is between two */
	struct slice s = slice_str(text);
	shown_put(&t, s);
	memcpy(out + t.len, text_ok(&t) ? "" : "...", text_ok(&t) ? 1 : 4);
	return out;
}

size_t shown_width(const char *s)
{
	size_t n = 0;
	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}
