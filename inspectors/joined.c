/* Names and values of a form told apart, byte by byte. */
#include "inspectors/joined.h"

bool joined_applies(struct slice start)
{
	unsigned char c = start.len > 0 ? (unsigned char)start.ptr[0] : 0;
	return ascii_is_digit(c) || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') || c == '_' || c == '%';
}

struct slice joined_next(struct joined *j, struct slice *rest)
{
	while (rest->len > 0) {
		bool in_value = j->state == JOINED_VALUE;
		size_t at = slice_find(*rest, in_value ? '&' : '=');
		struct slice part = slice_head(*rest, at);
		if (at < rest->len)
			j->state = in_value ? JOINED_NAME : JOINED_VALUE;
		*rest = slice_from(*rest, at < rest->len ? at + 1 : at);
		if (in_value && part.len > 0)
			return part;
	}
	return SLICE_NONE;
}
