/* One letter at a time: the first byte says how long it is, and what the second may be. */
#include "core/base/utf8_letter.h"

static size_t length_by(unsigned char first)
{
	return first < 0x80                     ? 1
	       : first >= 0xc2 && first <= 0xdf ? 2
	       : first >= 0xe0 && first <= 0xef ? 3
	       : first >= 0xf0 && first <= 0xf4 ? 4
						: 0;
}

int utf8_letter(struct slice bytes)
{
	const unsigned char *s = (const unsigned char *)bytes.ptr;
	const size_t len = length_by(s[0]);
	for (size_t i = 1; i < len; i++) {
		if (i == bytes.len)
			return -1;
		unsigned char low = 0x80, high = 0xbf;
		if (i == 1) {
			low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
			high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
		}
		if (s[i] < low || s[i] > high)
			return 0;
	}
	return (int)len;
}

void utf8_mend(char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		const int n = utf8_letter(slice_of(text + at, len - at));
		if (n <= 0)
			text[at] = '?';
		at += n > 0 ? (size_t)n : 1;
	}
}
