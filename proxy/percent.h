/* Percent escapes, for what cage itself writes into queries and forms. */
#ifndef CAGE_PROXY_PERCENT_H
#define CAGE_PROXY_PERCENT_H

#include "core/base/arena.h"
#include "core/base/slice.h"

/* Unreserved bytes plain, all others as %XX in upper case. In the arena; ptr NULL without memory. */
struct slice percent_encode(struct slice plain, struct arena *arena);

/* Escapes and, as in a form, '+' for a blank; what is no whole escape stays as it is. */
struct slice percent_decode(struct slice coded, struct arena *arena);

#endif
