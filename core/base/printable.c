/* Byte by byte: what is no UTF-8 has no meaning to a terminal, but for control characters. */
#include "core/base/printable.h"

#include <stdbool.h>

static bool is_control(unsigned char before, unsigned char c)
{
	return c < ' ' || c == 0x7f || (before == 0xc2 && c >= 0x80 && c < 0xa0);
}

void make_printable(char *text, size_t len)
{
	unsigned char before = 0;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (is_control(before, c))
			text[i] = '?';
		before = c;
	}
}
