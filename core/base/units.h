/* Sizes and times as people write them. */
#ifndef CAGE_BASE_UNITS_H
#define CAGE_BASE_UNITS_H

#include "core/base/slice.h"

/* "4096", "512B", "512KiB", "32MiB" or "1GiB", in bytes. */
bool units_size(struct slice text, uint64_t *bytes);

/* "30s", "10m", "24h" or "7d": from 1 second to max_s. */
bool units_duration(struct slice text, uint64_t max_s, uint64_t *seconds);

/* The seconds of one "s", "m", "h" or "d"; 0: it is none of them. */
uint64_t units_period(struct slice name);

#endif
