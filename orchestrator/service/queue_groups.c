/* Groups and tallies in sorted lists: both are found by halving. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/service/queue_private.h"

/* Room for one more. */
static bool grow(void **list, size_t n, size_t *room)
{
	size_t more = *room ? 2 * *room : 16;
	void *bigger = n < *room ? *list : realloc(*list, more * sizeof(void *));
	if (!bigger)
		return false;
	*room = n < *room ? *room : more;
	*list = bigger;
	return true;
}

/* ---- tallies ---- */

static int tally_compare(const struct queue_tally *t, const struct quota *quota, const char *value)
{
	return t->quota != quota ? (t->quota < quota ? -1 : 1) : strcmp(t->value, value);
}

static size_t tally_place(const struct queue *q, const struct quota *quota, const char *value)
{
	size_t low = 0, high = q->n_tallies;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (tally_compare(q->tallies[middle], quota, value) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct queue_tally *tally_take(struct queue *q, const struct quota *quota, const char *value)
{
	size_t at = tally_place(q, quota, value);
	if (at < q->n_tallies && tally_compare(q->tallies[at], quota, value) == 0)
		return q->tallies[at];
	struct queue_tally *t =
		grow((void **)&q->tallies, q->n_tallies, &q->room_tallies) ? calloc(1, sizeof(*t)) : NULL;
	if (!t)
		return NULL;
	t->quota = quota;
	strncpy(t->value, value, sizeof(t->value) - 1);
	memmove(q->tallies + at + 1, q->tallies + at, (q->n_tallies - at) * sizeof(*q->tallies));
	q->tallies[at] = t;
	q->n_tallies++;
	return t;
}

static void tally_drop_unused(struct queue *q, struct queue_tally *t)
{
	if (t->groups > 0)
		return;
	size_t at = tally_place(q, t->quota, t->value);
	q->n_tallies--;
	memmove(q->tallies + at, q->tallies + at + 1, (q->n_tallies - at) * sizeof(*q->tallies));
	free(t);
}

/* ---- which quotas are for one ---- */

static bool has_own(const struct queue_rules *r, const char *label, const char *value)
{
	for (size_t i = 0; i < r->n_quotas; i++)
		if (!r->quotas[i].any && strcmp(r->quotas[i].label, label) == 0 &&
		    strcmp(r->quotas[i].value, value) == 0)
			return true;
	return false;
}

static bool is_for(const struct queue_rules *r, const struct quota *quota, const char *value)
{
	return value && (quota->any ? !has_own(r, quota->label, value) : strcmp(value, quota->value) == 0);
}

/* Returns how many; SIZE_MAX: no memory. Those that were made are in no group yet. */
static size_t find_tallies(struct queue *q, const struct queued *item, struct queue_tally *out[LIMIT_SERVE_QUOTAS])
{
	size_t n = 0;
	bool ok = true;
	for (size_t i = 0; i < q->rules->n_quotas && ok; i++) {
		const struct quota *quota = &q->rules->quotas[i];
		const char *value = item->label(item, quota->label);
		if (!is_for(q->rules, quota, value))
			continue;
		out[n] = tally_take(q, quota, value);
		ok = out[n];
		n += ok;
	}
	for (size_t i = 0; i < n && !ok; i++)
		tally_drop_unused(q, out[i]);
	return ok ? n : SIZE_MAX;
}

/* ---- groups ---- */

struct group_key {
	const char *fair;
	struct queue_tally *tallies[LIMIT_SERVE_QUOTAS];
	size_t n;
};

static int group_compare(const struct queue_group *g, const struct group_key *key)
{
	int by_fair = strcmp(g->fair, key->fair);
	if (by_fair != 0 || g->n != key->n)
		return by_fair ? by_fair : g->n < key->n ? -1 : 1;
	return key->n ? memcmp(g->tallies, key->tallies, key->n * sizeof(key->tallies[0])) : 0;
}

static size_t group_place(const struct queue *q, const struct group_key *key)
{
	size_t low = 0, high = q->n_groups;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (group_compare(q->groups[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t group_after(const struct queue *q, const char *fair)
{
	size_t low = 0, high = q->n_groups;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (strcmp(q->groups[middle]->fair, fair) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct queue_group *group_make(struct queue *q, const struct group_key *key, size_t at)
{
	bool has_room = grow((void **)&q->groups, q->n_groups, &q->room_groups);
	struct queue_group *g = has_room ? calloc(1, sizeof(*g) + key->n * sizeof(g->tallies[0])) : NULL;
	if (!g)
		return NULL;
	strncpy(g->fair, key->fair, sizeof(g->fair) - 1);
	g->n = key->n;
	for (size_t i = 0; i < key->n; i++) {
		g->tallies[i] = key->tallies[i];
		g->tallies[i]->groups++;
	}
	memmove(q->groups + at + 1, q->groups + at, (q->n_groups - at) * sizeof(*q->groups));
	q->groups[at] = g;
	q->n_groups++;
	return g;
}

struct queue_group *group_join(struct queue *q, const struct queued *item)
{
	const char *fair = q->rules->fair[0] ? item->label(item, q->rules->fair) : NULL;
	struct group_key key = {.fair = fair ? fair : ""};
	key.n = find_tallies(q, item, key.tallies);
	if (key.n == SIZE_MAX)
		return NULL;
	size_t at = group_place(q, &key);
	bool is_there = at < q->n_groups && group_compare(q->groups[at], &key) == 0;
	struct queue_group *g = is_there ? q->groups[at] : group_make(q, &key, at);
	for (size_t i = 0; i < key.n && !g; i++)
		tally_drop_unused(q, key.tallies[i]);
	if (g)
		g->members++;
	return g;
}

void group_leave(struct queue *q, struct queue_group *g)
{
	struct group_key key = {.fair = g->fair, .n = g->n};
	if (--g->members > 0)
		return;
	if (g->n > 0)
		memcpy(key.tallies, g->tallies, g->n * sizeof(g->tallies[0]));
	size_t at = group_place(q, &key);
	q->n_groups--;
	memmove(q->groups + at, q->groups + at + 1, (q->n_groups - at) * sizeof(*q->groups));
	free(g);
	for (size_t i = 0; i < key.n; i++) {
		key.tallies[i]->groups--;
		tally_drop_unused(q, key.tallies[i]);
	}
}

void groups_free(struct queue *q)
{
	for (size_t i = 0; i < q->n_groups; i++)
		free(q->groups[i]);
	for (size_t i = 0; i < q->n_tallies; i++)
		free(q->tallies[i]);
	free(q->groups);
	free(q->tallies);
	q->groups = NULL;
	q->tallies = NULL;
	q->n_groups = q->room_groups = q->n_tallies = q->room_tallies = 0;
}
