/* Base64 as RFC 4648 has it, in its one spelling: with its padding, without blanks, and no bits left over. */
#ifndef CAGE_BASE_BASE64_H
#define CAGE_BASE_BASE64_H

#include "core/base/slice.h"

/* How much room so many digits need at most. */
#define BASE64_ROOM(digits) ((digits) / 4 * 3)

bool base64_is_good(struct slice text);

/* False: it is none, or too long for the room. */
bool base64_read(struct slice text, void *out, size_t room, size_t *n);

/* How many digits so many bytes are. */
#define BASE64_DIGITS(bytes) (((bytes) + 2) / 3 * 4)

/* Writes BASE64_DIGITS(bytes.len), and no NUL. */
void base64_write(struct slice bytes, char *out);

#endif
