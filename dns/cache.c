/* Hash chains for finding, one doubly linked ring for the order of use. The answer and its name lie behind the entry. */
#include "dns/cache.h"

#include <stdlib.h>

#include "core/base/map.h"

struct entry {
	struct entry *chain;         /* next in the same bucket */
	struct entry *newer, *older; /* ring through cache.ring */
	uint64_t hash;
	uint64_t expires_us;
	uint32_t size; /* bytes of all of it */
	uint32_t name_at;
	uint16_t type;
	uint8_t name_len;
	char bytes[] __attribute__((aligned(8))); /* struct dns_answer, then the name */
};

struct dns_cache {
	struct entry **buckets;
	size_t mask, count, room, bytes, room_bytes;
	uint64_t seed, generation;
	struct entry ring; /* ring.older: the newest entry; ring.newer: the oldest */
};

struct dns_cache *dns_cache_new(size_t entries, size_t bytes)
{
	size_t n = 8;
	while (n < entries)
		n *= 2;
	struct dns_cache *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->buckets = calloc(n, sizeof(struct entry *));
	if (!c->buckets) {
		free(c);
		return NULL;
	}
	c->mask = n - 1;
	c->room = entries;
	c->room_bytes = bytes;
	c->seed = map_seed();
	c->ring.newer = c->ring.older = &c->ring;
	return c;
}

static void ring_remove(struct entry *e)
{
	e->newer->older = e->older;
	e->older->newer = e->newer;
}

static void ring_add_newest(struct dns_cache *c, struct entry *e)
{
	e->older = c->ring.older;
	e->newer = &c->ring;
	e->older->newer = e;
	c->ring.older = e;
}

static uint64_t hash_of(const struct dns_cache *c, const struct dns_name *name, uint16_t type)
{
	return slice_hash(dns_name_text(name), c->seed ^ type);
}

static struct entry **find(struct dns_cache *c, const struct dns_name *name, uint16_t type, uint64_t hash)
{
	struct entry **link = &c->buckets[(size_t)hash & c->mask];
	for (struct entry *e; (e = *link) != NULL; link = &e->chain)
		if (e->hash == hash && e->type == type &&
		    slice_eq(slice_of(e->bytes + e->name_at, e->name_len), dns_name_text(name)))
			break;
	return link;
}

static void drop(struct dns_cache *c, struct entry **link)
{
	struct entry *e = *link;
	*link = e->chain;
	ring_remove(e);
	c->count--;
	c->bytes -= e->size;
	free(e);
}

static void drop_oldest(struct dns_cache *c)
{
	struct entry **link = &c->buckets[(size_t)c->ring.newer->hash & c->mask];
	while (*link != c->ring.newer) {
		if (!*link)
			abort(); /* what is in the ring is in its bucket */
		link = &(*link)->chain;
	}
	drop(c, link);
}

static void make_empty(struct dns_cache *c)
{
	while (c->count > 0)
		drop_oldest(c);
}

void dns_cache_set_generation(struct dns_cache *c, uint64_t generation)
{
	if (generation == c->generation)
		return;
	make_empty(c);
	c->generation = generation;
}

const struct dns_answer *dns_cache_find(struct dns_cache *c, const struct dns_name *name, uint16_t type,
					uint64_t now_us, uint32_t *ttl)
{
	struct entry **link = find(c, name, type, hash_of(c, name, type));
	struct entry *e = *link;
	if (!e)
		return NULL;
	if (e->expires_us <= now_us) {
		drop(c, link);
		return NULL;
	}
	ring_remove(e);
	ring_add_newest(c, e);
	*ttl = (uint32_t)((e->expires_us - now_us + 999999) / 1000000);
	return (const struct dns_answer *)e->bytes;
}

static struct entry *entry_new(const struct dns_name *name, const struct dns_answer *a)
{
	size_t answer = dns_answer_size(a);
	struct entry *e = malloc(sizeof(*e) + answer + name->len);
	if (!e)
		return NULL;
	e->size = (uint32_t)(sizeof(*e) + answer + name->len);
	e->name_at = (uint32_t)answer;
	e->name_len = name->len;
	e->type = a->type;
	memcpy(e->bytes, a, answer);
	memcpy(e->bytes + answer, name->text, name->len);
	return e;
}

void dns_cache_put(struct dns_cache *c, const struct dns_name *name, const struct dns_answer *a, uint64_t generation,
		   uint64_t now_us)
{
	uint64_t hash = hash_of(c, name, a->type);
	struct entry **old = find(c, name, a->type, hash);
	if (generation != c->generation)
		return;
	if (*old)
		drop(c, old);
	struct entry *e = a->ttl > 0 && c->room > 0 ? entry_new(name, a) : NULL;
	if (!e)
		return;
	if (e->size > c->room_bytes) {
		free(e);
		return;
	}
	while (c->count >= c->room || c->bytes + e->size > c->room_bytes)
		drop_oldest(c);
	e->hash = hash;
	e->expires_us = now_us + (uint64_t)a->ttl * 1000000;
	struct entry **bucket = &c->buckets[(size_t)hash & c->mask];
	e->chain = *bucket;
	*bucket = e;
	ring_add_newest(c, e);
	c->count++;
	c->bytes += e->size;
}

size_t dns_cache_count(const struct dns_cache *c)
{
	return c->count;
}

size_t dns_cache_bytes(const struct dns_cache *c)
{
	return c->bytes;
}

void dns_cache_free(struct dns_cache **cp)
{
	struct dns_cache *c = *cp;
	if (!c)
		return;
	make_empty(c);
	free(c->buckets);
	free(c);
	*cp = NULL;
}
