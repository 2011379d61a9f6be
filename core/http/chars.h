/* The classes of bytes that HTTP/1 knows (RFC 9110, 5.6). */
#ifndef CAGE_HTTP_CHARS_H
#define CAGE_HTTP_CHARS_H

#include "core/base/slice.h"

enum char_class {
	CHAR_TOKEN = 1,  /* of methods and field names */
	CHAR_TARGET = 2, /* 0x21..0x7e */
	CHAR_VALUE = 4,  /* of field values: no control but the tab; 0x80..0xff are opaque */
	CHAR_DIGIT = 8,
	CHAR_BINARY = 16 /* 0 and 1: the minor versions there are */
};

extern const unsigned char http_chars[256];

static inline bool char_is(char c, enum char_class class)
{
	return http_chars[(unsigned char)c] & class;
}

/* How many bytes at the start of s are of that class. */
static inline size_t char_span(struct slice s, enum char_class class)
{
	size_t n = 0;
	while (n < s.len && char_is(s.ptr[n], class))
		n++;
	return n;
}

#endif
