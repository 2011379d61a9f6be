/* Which step of a workflow needs which. Only logic, so that a test can drive it. */
#ifndef CAGE_SERVICE_WORKFLOW_GRAPH_H
#define CAGE_SERVICE_WORKFLOW_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/limits.h"

/* A bit for each step. */
struct graph {
	size_t n;
	uint64_t needs[LIMIT_WORKFLOW_STEPS]; /* as it was asked for */
	uint64_t all[LIMIT_WORKFLOW_STEPS];   /* also what those need, and so on: graph_close() */
};

void graph_need(struct graph *g, size_t step, size_t needed);

/* Finds out `all`. */
void graph_close(struct graph *g);

/* After graph_close(): does it need the other, be it by way of others? Does it need itself? */
bool graph_reaches(const struct graph *g, size_t step, size_t needed);
bool graph_is_circular(const struct graph *g, size_t step);

#endif
