/* Metrics of a container group, as Azure Monitor tells them: averages and peaks of minutes, or of longer steps where it runs for long.
 * They come minutes late, have holes, and none of a resource has to be there; so what is made of them is an estimate.
 *
 *	CpuUsage                              millicores, of a container
 *	MemoryUsage                           bytes, of a container
 *	NetworkBytesReceivedPerSecond         bytes in a second, of the group: it has no dimension, so that it is asked for apart
 *	NetworkBytesTransmittedPerSecond */
#ifndef CAGE_AZURE_METRICS_H
#define CAGE_AZURE_METRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/limits.h"

enum metric_name { METRIC_CPU, METRIC_MEMORY, METRIC_RECEIVED, METRIC_SENT, METRICS };

/* What is asked for in one call. */
enum metrics_part { METRICS_CONTAINER, METRICS_NETWORK, METRICS_PARTS };

struct metric {
	uint64_t seconds; /* of which something is known; 0: of none */
	double sum;       /* each average times its seconds */
	double peak;
};

struct metrics {
	struct metric of[METRICS];
};

/* From then until then, in microseconds since 1970. */
struct metrics_span {
	uint64_t from_us, to_us;
};

/* resource: path of the group, without a version. False: it is too long. */
bool metrics_path(const char *resource, const char *container, enum metrics_part part, struct metrics_span span,
		  char out[LIMIT_ARM_URL]);

/* All that is good of an answer. What tells of less time than what is known already changes nothing. */
void metrics_take(struct metrics *m, const json_t *answer, struct metrics_span span);

/* ---- what they come to ---- */

static inline bool metrics_have(const struct metrics *m, enum metric_name name)
{
	return m->of[name].seconds > 0;
}

uint64_t metrics_cpu_us(const struct metrics *m);
uint64_t metrics_memory_average(const struct metrics *m);

/* METRIC_MEMORY: bytes. */
uint64_t metrics_peak(const struct metrics *m, enum metric_name name);

/* METRIC_RECEIVED, METRIC_SENT: bytes. */
uint64_t metrics_total(const struct metrics *m, enum metric_name name);

#endif
