/* What a run has used: counted from its decision logs, and priced. */
#ifndef CAGE_SERVICE_MEASURE_H
#define CAGE_SERVICE_MEASURE_H

#include <jansson.h>

#include "core/base/slice.h"
#include "orchestrator/keeper/result.h"
#include "orchestrator/service/config.h"

/* For a process of its own, since logs may be long: counts those of a directory and writes one line of JSON.
 * 1: they could not be read as a whole. */
int measure_count(const char *dir, const void *with);

/* Has a log of it reached its bound? */
bool measure_log_is_full(struct slice counted);

/* The usage of a run: `counted` is what that wrote, or nothing if it failed. A new object, as openapi.yaml has it, and
 * `gb_seconds`. */
json_t *measure_usage(const struct config *c, const json_t *spec, const struct result *r, struct slice counted);

#endif
