/* Times as the API has them. */
#ifndef CAGE_SERVICE_TIMES_H
#define CAGE_SERVICE_TIMES_H

#include <jansson.h>
#include <stdint.h>

#include "core/base/clock.h"

static inline json_t *time_json(int64_t us)
{
	char text[CLOCK_TEXT];
	clock_format((uint64_t)us, text);
	return json_stringn(text, sizeof(text));
}

/* 0: that time has not come. */
static inline void put_time(json_t *out, const char *key, int64_t us)
{
	if (us > 0)
		json_object_set_new(out, key, time_json(us));
}

#endif
