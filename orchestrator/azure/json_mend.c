/* One pass. An escape keeps its length, so nothing has to move. */
#include "orchestrator/azure/json_mend.h"

#include <stdbool.h>

#include "core/base/slice.h"
#include "core/base/utf8_letter.h"

#define ESCAPE 6 /* "\u" and four digits */

/* The code unit of an escape with four digits; -1: it is none. */
static int unit_at(struct slice s)
{
	int unit = 0;
	if (s.len < ESCAPE || s.ptr[0] != '\\' || s.ptr[1] != 'u')
		return -1;
	for (size_t i = 2; i < ESCAPE; i++) {
		const int digit = ascii_hex((unsigned char)s.ptr[i]);
		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

static bool is_half(int unit, int which)
{
	return unit >= 0 && (unit & 0xfc00) == which;
}

/* How many bytes of it are done with; there is a backslash at its beginning. */
static size_t mend_escape(char *text, size_t len)
{
	const struct slice rest = slice_of(text, len);
	const int unit = unit_at(rest);
	if (unit < 0)
		return len < 2 ? 1 : 2;
	if (is_half(unit, 0xd800) && is_half(unit_at(slice_from(rest, ESCAPE)), 0xdc00))
		return 2 * (size_t)ESCAPE;
	if (unit == 0 || is_half(unit, 0xd800) || is_half(unit, 0xdc00))
		memcpy(text + 2, "fffd", 4);
	return ESCAPE;
}

/* Inside of a string, at whatever is not its end. */
static size_t mend_letter(char *text, size_t len)
{
	const int n = utf8_letter(slice_of(text, len));
	if (n <= 0 || (unsigned char)text[0] < 0x20)
		text[0] = '?';
	return n > 0 ? (size_t)n : 1;
}

void json_mend(char *text, size_t len)
{
	bool is_inside = false;
	for (size_t at = 0; at < len;) {
		if (text[at] == '"') {
			is_inside = !is_inside;
			at++;
		} else if (!is_inside) {
			at++;
		} else {
			at += text[at] == '\\' ? mend_escape(text + at, len - at) : mend_letter(text + at, len - at);
		}
	}
}
