/* Open addressing with linear probing, at most half full. */
#include "core/base/map.h"

#include <stdint.h>
#include <sys/random.h>

uint64_t map_seed(void)
{
	uint64_t seed = 0;
	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		__builtin_trap(); /* no randomness: nothing in here could be trusted */
	return seed;
}

static uint64_t mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93u;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93u;
	return h ^ (h >> 32);
}

uint64_t slice_hash(struct slice s, uint64_t seed)
{
	uint64_t h = seed ^ (s.len * 0x9e3779b97f4a7c15u);
	size_t i = 0;
	for (; i + 8 <= s.len; i += 8) {
		uint64_t w;
		memcpy(&w, s.ptr + i, 8);
		h = mix(h ^ w);
	}
	uint64_t tail = 0;
	if (i < s.len)
		memcpy(&tail, s.ptr + i, s.len - i);
	return mix(h ^ tail);
}

enum cage_status map_init(struct map *m, struct arena *a, size_t room)
{
	size_t n = 8;
	while (n < room * 2)
		n *= 2;
	*m = (struct map){.mask = n - 1, .room = room, .seed = map_seed()};
	m->slots = arena_array(a, n, sizeof(*m->slots));
	return m->slots ? CAGE_OK : CAGE_ENOMEM;
}

static struct map_slot *map_find(const struct map *m, struct slice key)
{
	size_t i = (size_t)slice_hash(key, m->seed) & m->mask;
	while (m->slots[i].value && !slice_eq(m->slots[i].key, key))
		i = (i + 1) & m->mask;
	return &m->slots[i];
}

void *map_get(const struct map *m, struct slice key)
{
	return m->count ? map_find(m, key)->value : NULL;
}

enum cage_status map_add(struct map *m, struct slice key, void *value)
{
	if (m->count >= m->room)
		return CAGE_ELIMIT;
	struct map_slot *slot = map_find(m, key);
	*slot = (struct map_slot){key, value};
	m->count++;
	return CAGE_OK;
}
