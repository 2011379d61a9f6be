/* Memory that is freed all at once: one arena per transaction, one per compiled policy. */
#ifndef CAGE_BASE_ARENA_H
#define CAGE_BASE_ARENA_H

#include <stddef.h>

#include "core/base/slice.h"
#include "core/base/status.h"

struct arena_chunk;

/* Bump allocation. Either over heap chunks that grow up to `limit`, or over one region that the caller owns. */
struct arena {
	char *next, *end;
	struct arena_chunk *chunks; /* NULL over a region */
	size_t used, limit;         /* bytes handed out, and how many may be */
};

void arena_init(struct arena *a, size_t limit);

/* All memory comes from region; it must be zeroed. arena_free leaves the region alone. */
void arena_init_region(struct arena *a, void *region, size_t size);

/* Zeroed, aligned for any type; NULL beyond the limit or without memory. n may be 0. */
void *arena_alloc(struct arena *a, size_t n) MUST_CHECK;

/* n elements of size bytes, checked against overflow. */
void *arena_array(struct arena *a, size_t n, size_t size) MUST_CHECK;

/* A copy of s; ptr is NULL only when there was no memory. */
struct slice arena_dup(struct arena *a, struct slice s) MUST_CHECK;

/* Forgets everything and keeps the first chunk. */
void arena_reset(struct arena *a);

void arena_free(struct arena *a);

/* Overwrites all of it, since it carried secrets. To be reset or freed then. */
void arena_cleanse(struct arena *a);

#endif
