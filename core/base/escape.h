/* Escapes of single bytes, as everybody here writes and reads them. */
#ifndef CAGE_BASE_ESCAPE_H
#define CAGE_BASE_ESCAPE_H

#include "core/base/slice.h"

#define ESCAPE_PERCENT 3
#define ESCAPE_JSON 6

/* Letters, digits, '-', '.', '_' and '~'. */
static inline bool ascii_is_unreserved(unsigned char c)
{
	unsigned char l = ascii_lower(c);
	return (l >= 'a' && l <= 'z') || ascii_is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

/* An unreserved byte plain, all others as %XX in upper case; how many bytes that made. */
size_t escape_percent(unsigned char c, char out[ESCAPE_PERCENT]);

/* For a JSON string: quotes, backslashes and controls. Bytes beyond ASCII are the text's own encoding, and stay. */
size_t escape_json(unsigned char c, char out[ESCAPE_JSON]);

/* The byte that the percent escape at s[i] stands for, or -1 when there is no whole escape. */
int escape_percent_value(struct slice s, size_t i);

#endif
