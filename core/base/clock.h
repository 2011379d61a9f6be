/* Time: wall clock for the log and for expiry, monotonic for everything that waits. */
#ifndef CAGE_BASE_CLOCK_H
#define CAGE_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/slice.h"

uint64_t clock_wall_us(void); /* since 1970, UTC */
int64_t clock_wall_s(void);   /* the same in seconds, for expiry */
uint64_t clock_mono_us(void);

#define CLOCK_TEXT 27 /* "2026-11-16T04:03:41.123456Z" */

/* Writes RFC 3339 with microseconds, exactly CLOCK_TEXT bytes, no NUL. */
void clock_format(uint64_t wall_us, char out[CLOCK_TEXT]);

/* Reads "2026-12-31T00:00:00Z" (UTC only) to seconds since 1970. */
bool clock_parse(struct slice text, int64_t *seconds);

#endif
