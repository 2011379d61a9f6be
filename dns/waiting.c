/* A hash table of groups, as large as there may be groups. */
#include "dns/waiting.h"

#include <stdlib.h>

#include "core/base/map.h"

struct dns_waiting {
	struct dns_group **buckets;
	size_t mask, count, room, clients;
	uint64_t seed;
};

struct dns_waiting *dns_waiting_new(size_t groups, size_t clients)
{
	size_t n = 8;
	while (n < groups)
		n *= 2;
	struct dns_waiting *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->buckets = calloc(n, sizeof(struct dns_group *));
	if (!w->buckets) {
		free(w);
		return NULL;
	}
	w->mask = n - 1;
	w->room = groups;
	w->clients = clients;
	w->seed = map_seed();
	return w;
}

void dns_waiting_free(struct dns_waiting **wp)
{
	if (!*wp)
		return;
	free((*wp)->buckets);
	free(*wp);
	*wp = NULL;
}

static struct dns_group *find(struct dns_waiting *w, const struct dns_name *name, uint16_t type, uint64_t generation,
			      uint64_t hash)
{
	struct dns_group *g = w->buckets[(size_t)hash & w->mask];
	while (g && !(g->hash == hash && g->type == type && g->generation == generation && dns_name_eq(&g->name, name)))
		g = g->chain;
	return g;
}

static struct dns_group *group_new(struct dns_waiting *w, const struct dns_name *name, uint16_t type,
				   uint64_t generation, uint64_t hash)
{
	struct dns_group *g = w->count < w->room ? malloc(sizeof(*g)) : NULL;
	if (!g)
		return NULL;
	struct dns_group **bucket = &w->buckets[(size_t)hash & w->mask];
	g->name = *name;
	g->type = type;
	g->generation = generation;
	g->hash = hash;
	g->first = NULL;
	g->last = &g->first;
	g->count = 0;
	g->chain = *bucket;
	*bucket = g;
	w->count++;
	return g;
}

enum dns_join dns_waiting_place(struct dns_waiting *w, const struct dns_name *name, uint16_t type, uint64_t generation)
{
	uint64_t hash = slice_hash(dns_name_text(name), w->seed ^ type);
	const struct dns_group *g = find(w, name, type, generation, hash);
	if (g)
		return g->count < w->clients ? DNS_JOIN_MORE : DNS_JOIN_FULL;
	return w->count < w->room ? DNS_JOIN_FIRST : DNS_JOIN_FULL;
}

enum dns_join dns_waiting_join(struct dns_waiting *w, const struct dns_name *name, uint16_t type, uint64_t generation,
			       struct dns_waiter *waiter, struct dns_group **group)
{
	uint64_t hash = slice_hash(dns_name_text(name), w->seed ^ type);
	struct dns_group *g = find(w, name, type, generation, hash);
	if (!g)
		g = group_new(w, name, type, generation, hash);
	if (!g || g->count >= w->clients)
		return DNS_JOIN_FULL;
	waiter->next = NULL;
	*g->last = waiter;
	g->last = &waiter->next;
	g->count++;
	*group = g;
	return g->count == 1 ? DNS_JOIN_FIRST : DNS_JOIN_MORE;
}

void dns_waiting_take(struct dns_waiting *w, struct dns_group *group)
{
	struct dns_group **link = &w->buckets[(size_t)group->hash & w->mask];
	while (*link != group)
		link = &(*link)->chain;
	*link = group->chain;
	w->count--;
}

size_t dns_waiting_count(const struct dns_waiting *w)
{
	return w->count;
}
