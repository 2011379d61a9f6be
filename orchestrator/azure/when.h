/* Times as Azure writes them: RFC 3339 in UTC, with or without a fraction of a second. */
#ifndef CAGE_AZURE_WHEN_H
#define CAGE_AZURE_WHEN_H

#include "core/base/slice.h"

/* To microseconds since 1970. "2026-11-17T19:00:00Z", "...:00.1234567Z" or "...+00:00". */
bool when_parse(struct slice text, uint64_t *wall_us);

#define WHEN_TEXT 21 /* "2026-11-17T19:00:00Z" and a NUL */

void when_format(uint64_t wall_us, char out[WHEN_TEXT]);

#endif
