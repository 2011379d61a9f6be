/* Text of others for a terminal: what would move the cursor, change colours or turn the order of letters is shown as an escape. */
#ifndef CAGE_CLIENT_SHOWN_H
#define CAGE_CLIENT_SHOWN_H

#include "core/base/slice.h"
#include "core/base/text.h"

/* Appends it. Bytes that are no UTF-8 are escaped too. */
void shown_put(struct text *t, struct slice s);

/* The same into a buffer, cut where it is full ("..." says so), and ended with NUL. room: at least 4. */
const char *shown(const char *s, char *out, size_t room);

/* How many places it takes on a terminal, each letter counted as one. */
size_t shown_width(const char *s);

#endif
