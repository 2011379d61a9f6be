/* Hash chains for finding, one doubly linked ring for the order of use. */
#include "core/base/lru.h"

#include <stdlib.h>

#include "core/base/map.h"

struct entry {
	struct entry *chain;         /* next in the same bucket */
	struct entry *newer, *older; /* ring through lru.ring */
	void *value;
	uint64_t hash;
	size_t key_len;
	char key[];
};

struct lru {
	struct entry **buckets;
	size_t mask, count, room;
	uint64_t seed;
	void (*drop)(void *value);
	struct entry ring; /* ring.older: the newest entry; ring.newer: the oldest */
};

struct lru *lru_new(size_t room, void (*drop)(void *value))
{
	size_t n = 8;
	while (n < room)
		n *= 2;
	struct lru *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->buckets = calloc(n, sizeof(*l->buckets));
	if (!l->buckets) {
		free(l);
		return NULL;
	}
	l->mask = n - 1;
	l->room = room;
	l->seed = map_seed();
	l->drop = drop;
	l->ring.newer = l->ring.older = &l->ring;
	return l;
}

static struct entry **lru_find(struct lru *l, struct slice key, uint64_t hash)
{
	struct entry **link = &l->buckets[(size_t)hash & l->mask];
	while (*link && !((*link)->hash == hash && slice_eq(slice_of((*link)->key, (*link)->key_len), key)))
		link = &(*link)->chain;
	return link;
}

static void ring_remove(struct entry *e)
{
	e->newer->older = e->older;
	e->older->newer = e->newer;
}

static void ring_add_newest(struct lru *l, struct entry *e)
{
	e->older = l->ring.older;
	e->newer = &l->ring;
	e->older->newer = e;
	l->ring.older = e;
}

static void *lru_unlink(struct lru *l, struct entry **link)
{
	struct entry *e = *link;
	void *value = e->value;
	*link = e->chain;
	ring_remove(e);
	free(e);
	l->count--;
	return value;
}

void *lru_get(struct lru *l, struct slice key)
{
	struct entry *e = *lru_find(l, key, slice_hash(key, l->seed));
	if (!e)
		return NULL;
	ring_remove(e);
	ring_add_newest(l, e);
	return e->value;
}

void *lru_take(struct lru *l, struct slice key)
{
	struct entry **link = lru_find(l, key, slice_hash(key, l->seed));
	return *link ? lru_unlink(l, link) : NULL;
}

static void lru_drop_oldest(struct lru *l)
{
	struct entry *oldest = l->ring.newer;
	struct entry **link = lru_find(l, slice_of(oldest->key, oldest->key_len), oldest->hash);
	if (*link != oldest)
		abort(); /* what is in the ring is in its bucket */
	l->drop(lru_unlink(l, link));
}

enum cage_status lru_put(struct lru *l, struct slice key, void *value)
{
	void *old = lru_take(l, key);
	if (old)
		l->drop(old);
	struct entry *e = malloc(sizeof(*e) + key.len);
	if (!e) {
		l->drop(value);
		return CAGE_ENOMEM;
	}
	if (l->count >= l->room)
		lru_drop_oldest(l);
	e->value = value;
	e->hash = slice_hash(key, l->seed);
	e->key_len = key.len;
	if (key.len > 0)
		memcpy(e->key, key.ptr, key.len);
	struct entry **bucket = &l->buckets[(size_t)e->hash & l->mask];
	e->chain = *bucket;
	*bucket = e;
	ring_add_newest(l, e);
	l->count++;
	return CAGE_OK;
}

size_t lru_count(const struct lru *l)
{
	return l->count;
}

void lru_free(struct lru **lp)
{
	struct lru *l = *lp;
	if (!l)
		return;
	while (l->count > 0)
		lru_drop_oldest(l);
	free(l->buckets);
	free(l);
	*lp = NULL;
}
