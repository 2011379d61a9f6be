/* Bytes of programs as text: what is no UTF-8 becomes U+FFFD. A character may be cut by the end of a piece: its bytes are kept
 * for the next. */
#ifndef CAGE_SERVICE_UTF8_H
#define CAGE_SERVICE_UTF8_H

#include <event2/buffer.h>

#include "core/base/slice.h"

struct utf8_rest {
	char bytes[4];
	size_t n;
};

/* Adds what the bytes mean to out. */
void utf8_add(struct evbuffer *out, struct utf8_rest *rest, struct slice bytes);

/* There is no more to come. */
void utf8_end(struct evbuffer *out, struct utf8_rest *rest);

bool utf8_is_good(struct slice bytes);

#endif
