/* Forms of names. They become parts of an address as they are, so no letter of them means anything there. */
#include "orchestrator/ship/forms.h"

#include "core/base/limits.h"

static bool is_of(struct slice text, const char *letters)
{
	for (size_t i = 0; i < text.len; i++)
		if (!strchr(letters, text.ptr[i]) || text.ptr[i] == '\0')
			return false;
	return text.len > 0;
}

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool skip(struct slice *text, struct slice head)
{
	if (!slice_starts(*text, head))
		return false;
	*text = slice_from(*text, head.len);
	return true;
}

bool ship_endpoint_is_good(struct slice text)
{
	if (text.len >= LIMIT_ARM_URL / 2)
		return false;
	if (skip(&text, SLICE("http://127.0.0.1:")))
		return is_of(text, DIGITS);
	return skip(&text, SLICE("https://")) && is_of(text, LETTERS DIGITS ".-:[]");
}

bool ship_rule_is_good(struct slice text)
{
	return skip(&text, SLICE("dcr-")) && text.len == 32 && is_of(text, DIGITS "abcdefABCDEF");
}

bool ship_stream_is_good(struct slice text)
{
	return text.len <= LIMIT_SHIP_STREAM && skip(&text, SLICE("Custom-")) && is_of(text, LETTERS DIGITS "-_");
}
