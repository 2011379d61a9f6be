/* Times and sizes as people read them. */
#ifndef CAGE_CLIENT_FORMAT_H
#define CAGE_CLIENT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FORMAT_TEXT 32

/* "41s", "12m", "3h", "5d"; "" where the time is none. time: RFC 3339 in UTC, maybe with a fraction of a second. */
const char *format_age(const char *time, int64_t now_s, char out[FORMAT_TEXT]);

/* "512 B", "1.5 MiB". */
const char *format_size(double bytes, char out[FORMAT_TEXT]);

/* "0.034 s", "2m 5s". */
const char *format_seconds(double seconds, char out[FORMAT_TEXT]);

/* Seconds since 1970. */
bool parse_time(const char *time, int64_t *seconds);

/* The other way: "2026-12-31T00:00:00Z". */
const char *format_time(int64_t seconds, char out[FORMAT_TEXT]);

#endif
