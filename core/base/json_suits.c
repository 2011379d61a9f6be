/* One pass over the bytes. */
#include "core/base/json_suits.h"

#define SHORT 256 /* bytes, of which it does not matter what they become */

static size_t length_of(char c)
{
	if (c == '"' || c == '\\' || (c >= '\b' && c <= '\r' && c != '\v'))
		return 2;
	return c >= 0 && c < ' ' ? 6 : 1;
}

bool json_suits(struct slice bytes)
{
	size_t n = 0;
	for (size_t i = 0; i < bytes.len; i++) {
		if (bytes.ptr[i] == '\0')
			return false;
		n += length_of(bytes.ptr[i]);
	}
	return n <= 2 * bytes.len || bytes.len <= SHORT;
}
