/* One byte at a time, so that whoever writes a text can do it in a single pass. */
#include "core/base/escape.h"

size_t escape_percent(unsigned char c, char out[ESCAPE_PERCENT])
{
	static const char hex[] = "0123456789ABCDEF";
	out[0] = (char)c;
	if (ascii_is_unreserved(c))
		return 1;
	out[0] = '%';
	out[1] = hex[c >> 4];
	out[2] = hex[c & 15];
	return 3;
}

size_t escape_json(unsigned char c, char out[ESCAPE_JSON])
{
	static const char hex[] = "0123456789abcdef";
	if (c < 0x20) {
		memcpy(out, "\\u00", 4);
		out[4] = hex[c >> 4];
		out[5] = hex[c & 15];
		return 6;
	}
	size_t n = 0;
	if (c == '"' || c == '\\')
		out[n++] = '\\';
	out[n++] = (char)c;
	return n;
}

int escape_percent_value(struct slice s, size_t i)
{
	if (s.ptr[i] != '%' || s.len - i < 3)
		return -1;
	int high = ascii_hex((unsigned char)s.ptr[i + 1]);
	int low = ascii_hex((unsigned char)s.ptr[i + 2]);
	return high < 0 || low < 0 ? -1 : high * 16 + low;
}
