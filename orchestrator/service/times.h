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

#endif
