/* Entries in one allocation each, in two hash tables with chains, and in a list by age. */
#include "core/net/binding_table.h"

#include <stdlib.h>

#include "core/base/map.h"

#define SECOND_US 1000000u

struct entry {
	struct entry *next_name, *next_given; /* in their chains */
	struct entry *older, *newer;
	uint64_t until_us;
	uint8_t kind, n, name_len;
	char bytes[]; /* the name, then the addresses, 16 bytes each */
};

struct binding_table {
	size_t room, count, mask;
	uint64_t seed;
	struct entry *oldest, *newest;
	struct entry **names, **given; /* mask + 1 chains each */
};

/* ---- finding ---- */

static struct slice name_of(const struct entry *e)
{
	return slice_of(e->bytes, e->name_len);
}

static struct addr address_of(const struct entry *e, size_t i)
{
	struct addr a = {.family = e->kind == BINDING_V6 ? ADDR_V6 : ADDR_V4};
	memcpy(a.bytes, e->bytes + e->name_len + 16 * i, 16);
	return a;
}

static struct entry **name_chain(const struct binding_table *t, struct slice name)
{
	return &t->names[slice_hash(name, t->seed) & t->mask];
}

static struct entry **given_chain(const struct binding_table *t, const struct addr *a)
{
	return &t->given[slice_hash(slice_of(a->bytes, 4), t->seed) & t->mask];
}

static struct entry *find(const struct binding_table *t, enum binding_kind kind, struct slice name)
{
	struct entry *e = *name_chain(t, name);
	while (e && !(e->kind == kind && slice_eq(name_of(e), name)))
		e = e->next_name;
	return e;
}

static struct entry *find_given(const struct binding_table *t, const struct addr *a)
{
	struct entry *e = a->family == ADDR_V4 ? *given_chain(t, a) : NULL;
	while (e && memcmp(e->bytes + e->name_len, a->bytes, 4) != 0)
		e = e->next_given;
	return e;
}

static const struct entry *living(const struct entry *e, uint64_t now_us)
{
	return e && e->until_us > now_us ? e : NULL;
}

/* ---- changing ---- */

static void unlink_age(struct binding_table *t, struct entry *e)
{
	*(e->older ? &e->older->newer : &t->oldest) = e->newer;
	*(e->newer ? &e->newer->older : &t->newest) = e->older;
}

static void remove_entry(struct binding_table *t, struct entry *e)
{
	struct entry **at = name_chain(t, name_of(e));
	while (*at != e)
		at = &(*at)->next_name;
	*at = e->next_name;
	if (e->kind == BINDING_GIVEN) {
		struct addr a = address_of(e, 0);
		at = given_chain(t, &a);
		while (*at != e)
			at = &(*at)->next_given;
		*at = e->next_given;
	}
	unlink_age(t, e);
	t->count--;
	free(e);
}

static void add_entry(struct binding_table *t, struct entry *e)
{
	struct entry **chain = name_chain(t, name_of(e));
	e->next_name = *chain;
	*chain = e;
	if (e->kind == BINDING_GIVEN) {
		struct addr a = address_of(e, 0);
		chain = given_chain(t, &a);
		e->next_given = *chain;
		*chain = e;
	}
	e->older = t->newest;
	*(t->newest ? &t->newest->newer : &t->oldest) = e;
	t->newest = e;
	t->count++;
}

static struct entry *entry_new(const struct binding *b, uint64_t now_us)
{
	struct entry *e = calloc(1, sizeof(*e) + b->name.len + 16 * b->n);
	if (!e)
		return NULL;
	e->until_us = now_us + (uint64_t)b->life_s * SECOND_US;
	e->kind = (uint8_t)b->kind;
	e->n = (uint8_t)b->n;
	e->name_len = (uint8_t)b->name.len;
	memcpy(e->bytes, b->name.ptr, b->name.len);
	for (size_t i = 0; i < b->n; i++)
		memcpy(e->bytes + b->name.len + 16 * i, b->addrs[i].bytes, 16);
	return e;
}

enum cage_status binding_table_put(struct binding_table *t, const struct binding *b, uint64_t now_us)
{
	struct entry *before = find(t, b->kind, b->name);
	struct entry *other = b->kind == BINDING_GIVEN ? find_given(t, &b->addrs[0]) : NULL;
	bool is_full = !before && !other && t->count >= t->room;
	if (is_full && b->kind == BINDING_GIVEN && living(t->oldest, now_us))
		return CAGE_ELIMIT;
	struct entry *e = entry_new(b, now_us);
	if (!e)
		return CAGE_ENOMEM;
	if (is_full)
		remove_entry(t, t->oldest);
	if (before)
		remove_entry(t, before);
	if (other && other != before)
		remove_entry(t, other);
	add_entry(t, e);
	return CAGE_OK;
}

/* ---- asking ---- */

size_t binding_table_addresses(const struct binding_table *t, struct slice name, uint64_t now_us,
			       struct addr out[LIMIT_ANSWERS])
{
	const struct entry *v6 = living(find(t, BINDING_V6, name), now_us);
	const struct entry *v4 = living(find(t, BINDING_V4, name), now_us);
	size_t n = 0;
	for (size_t i = 0; i < LIMIT_ANSWERS; i++) {
		if (v6 && i < v6->n && n < LIMIT_ANSWERS)
			out[n++] = address_of(v6, i);
		if (v4 && i < v4->n && n < LIMIT_ANSWERS)
			out[n++] = address_of(v4, i);
	}
	return n;
}

static uint32_t life_of(const struct entry *e, uint64_t now_us)
{
	return (uint32_t)((e->until_us - now_us + SECOND_US - 1) / SECOND_US);
}

bool binding_table_given(const struct binding_table *t, struct slice name, uint64_t now_us, struct addr *out,
			 uint32_t *life_s)
{
	const struct entry *e = living(find(t, BINDING_GIVEN, name), now_us);
	if (!e)
		return false;
	*out = address_of(e, 0);
	*life_s = life_of(e, now_us);
	return true;
}

struct slice binding_table_name(const struct binding_table *t, const struct addr *given, uint64_t now_us)
{
	const struct entry *e = living(find_given(t, given), now_us);
	return e ? name_of(e) : SLICE_NONE;
}

void binding_table_each(const struct binding_table *t, uint64_t now_us,
			void (*each)(void *arg, const struct binding *b), void *arg)
{
	for (const struct entry *e = t->oldest; e; e = e->newer) {
		if (!living(e, now_us))
			continue;
		struct binding b = {.kind = (enum binding_kind)e->kind,
				    .name = name_of(e),
				    .life_s = life_of(e, now_us),
				    .n = e->n};
		for (size_t i = 0; i < e->n; i++)
			b.addrs[i] = address_of(e, i);
		each(arg, &b);
	}
}

/* ---- life ---- */

struct binding_table *binding_table_new(size_t room)
{
	struct binding_table *t = calloc(1, sizeof(*t));
	size_t chains = 8;
	while (chains < room)
		chains *= 2;
	if (!t)
		return NULL;
	*t = (struct binding_table){.room = room, .mask = chains - 1, .seed = map_seed()};
	t->names = calloc(chains, sizeof(struct entry *));
	t->given = calloc(chains, sizeof(struct entry *));
	if (!t->names || !t->given)
		binding_table_free(&t);
	return t;
}

void binding_table_free(struct binding_table **tp)
{
	struct binding_table *t = *tp;
	if (!t)
		return;
	*tp = NULL;
	while (t->oldest && t->names && t->given)
		remove_entry(t, t->oldest);
	free((void *)t->names);
	free((void *)t->given);
	free(t);
}
