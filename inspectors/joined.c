/* Names and values of a form told apart, byte by byte. */
#include "inspectors/joined.h"

bool joined_applies(const struct message *head)
{
	const struct field *type = message_field(head, SLICE("content-type"));
	if (!type)
		return false;
	struct slice value = type->value;
	return slice_ieq(slice_trim(slice_cut(&value, ';')), SLICE("application/x-www-form-urlencoded"));
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
