/* UTF-8 that arrives in pieces (RFC 3629): no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#ifndef CAGE_HTTP_WS_UTF8_H
#define CAGE_HTTP_WS_UTF8_H

#include "core/base/slice.h"

/* Where a text stands; all zero at its start. */
struct utf8 {
	unsigned char left;      /* bytes that the character at hand still needs */
	unsigned char low, high; /* what the next of them may be */
};

/* How many bytes at the start of s go on with the text. When that is not all, the next one is wrong, and will be wrong
 * again. */
size_t utf8_span(struct utf8 *u, struct slice s);

/* Is no character open? */
static inline bool utf8_is_whole(const struct utf8 *u)
{
	return u->left == 0;
}

#endif
