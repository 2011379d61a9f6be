/* A lookup table from bytes to a pointer, built once and then only read: rules by host, pins by name.
 * Lives in an arena, so it is shared read-only between processes with the policy it belongs to. */
#ifndef CAGE_BASE_MAP_H
#define CAGE_BASE_MAP_H

#include "core/base/arena.h"
#include "core/base/slice.h"
#include "core/base/status.h"

struct map_slot {
	struct slice key;
	void *value; /* NULL: the slot is free */
};

struct map {
	struct map_slot *slots;
	size_t mask;
	size_t count, room; /* entries, and how many fit */
	uint64_t seed;
};

/* Random for each table, so that nobody can prepare names that collide. */
uint64_t map_seed(void);

uint64_t slice_hash(struct slice s, uint64_t seed);

/* Room for `room` entries. */
enum cage_status map_init(struct map *m, struct arena *a, size_t room) MUST_CHECK;

/* The value, or NULL. */
void *map_get(const struct map *m, struct slice key);

/* Sets a key that is not in the table yet. Key bytes are borrowed: they live as long as the map. value is not NULL. */
enum cage_status map_add(struct map *m, struct slice key, void *value) MUST_CHECK;

#endif
