/* Who waits, who has a place, and a bucket. */
#include "orchestrator/service/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/service/queue_private.h"

static uint64_t bucket_size(const struct queue_rules *r)
{
	return r->period_us;
}

/* What one start costs of the time that is saved up. */
static uint64_t cost_of_start(const struct queue_rules *r)
{
	return r->starts ? r->period_us / r->starts : 0;
}

void queue_init(struct queue *q, const struct queue_rules *rules, uint64_t now_us)
{
	*q = (struct queue){.rules = rules, .tokens_us = bucket_size(rules), .filled_us = now_us};
}

void queue_free(struct queue *q)
{
	groups_free(q);
	free(q->waiting);
	q->waiting = NULL;
	q->n_waiting = q->room_waiting = q->n_placed = 0;
}

/* ---- those that wait, in the order in which they came ---- */

static bool has_room_to_wait(struct queue *q)
{
	size_t room = q->room_waiting ? 2 * q->room_waiting : 64;
	if (q->n_waiting + q->n_placed < q->room_waiting) /* one with a place may have to wait again */
		return true;
	struct queued **bigger = realloc(q->waiting, room * sizeof(struct queued *));
	if (!bigger)
		return false;
	q->waiting = bigger;
	q->room_waiting = room;
	return true;
}

static size_t place_in_waiting(const struct queue *q, const struct queued *item)
{
	size_t low = 0, high = q->n_waiting;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (q->waiting[middle]->number < item->number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void begin_to_wait(struct queue *q, struct queued *item)
{
	size_t at = place_in_waiting(q, item);
	memmove(q->waiting + at + 1, q->waiting + at, (q->n_waiting - at) * sizeof(struct queued *));
	q->waiting[at] = item;
	q->n_waiting++;
	item->where = QUEUE_WAITING;
}

static void end_to_wait(struct queue *q, struct queued *item)
{
	size_t at = place_in_waiting(q, item);
	struct queue_group *g = item->group;
	q->n_waiting--;
	memmove(q->waiting + at, q->waiting + at + 1, (q->n_waiting - at) * sizeof(struct queued *));
	*(item->before ? &item->before->next : &g->first) = item->next;
	*(item->next ? &item->next->before : &g->last) = item->before;
	item->next = item->before = NULL;
}

size_t queue_before(const struct queue *q, const struct queued *item)
{
	return place_in_waiting(q, item);
}

/* ---- places ---- */

static void take_place(struct queue *q, struct queued *item)
{
	for (size_t i = 0; i < item->group->n; i++)
		item->group->tallies[i]->placed++;
	q->n_placed++;
	item->where = QUEUE_PLACED;
}

static void leave_place(struct queue *q, struct queued *item)
{
	for (size_t i = 0; i < item->group->n; i++)
		item->group->tallies[i]->placed--;
	q->n_placed--;
}

/* ---- in and out ---- */

static bool join(struct queue *q, struct queued *item)
{
	item->next = item->before = NULL;
	item->group = has_room_to_wait(q) ? group_join(q, item) : NULL;
	if (item->group)
		item->number = ++q->came;
	return item->group;
}

bool queue_add(struct queue *q, struct queued *item)
{
	if (!join(q, item))
		return false;
	item->before = item->group->last;
	*(item->before ? &item->before->next : &item->group->first) = item;
	item->group->last = item;
	begin_to_wait(q, item);
	return true;
}

bool queue_place(struct queue *q, struct queued *item)
{
	if (!join(q, item))
		return false;
	take_place(q, item);
	return true;
}

void queue_return(struct queue *q, struct queued *item)
{
	struct queue_group *g = item->group;
	leave_place(q, item);
	item->next = g->first;
	*(g->first ? &g->first->before : &g->last) = item;
	g->first = item;
	begin_to_wait(q, item);
}

void queue_remove(struct queue *q, struct queued *item)
{
	if (item->where == QUEUE_NOWHERE)
		return;
	if (item->where == QUEUE_WAITING)
		end_to_wait(q, item);
	else
		leave_place(q, item);
	item->where = QUEUE_NOWHERE;
	group_leave(q, item->group);
	item->group = NULL;
}

/* ---- turns ---- */

static bool quotas_allow(const struct queue_group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->tallies[i]->placed >= g->tallies[i]->quota->running)
			return false;
	return true;
}

/* The oldest that may start of the fair value that begins there; *end: behind its groups. */
static struct queued *choose_of(struct queue *q, size_t from, size_t *end)
{
	struct queued *best = NULL;
	size_t i = from;
	for (; i < q->n_groups && strcmp(q->groups[i]->fair, q->groups[from]->fair) == 0; i++) {
		struct queued *oldest = q->groups[i]->first;
		q->steps++;
		if (oldest && (!best || oldest->number < best->number) && quotas_allow(q->groups[i]))
			best = oldest;
	}
	*end = i;
	return best;
}

/* The values go round in their order, from behind the one that had its turn. */
static struct queued *choose(struct queue *q)
{
	const size_t start = group_after(q, q->last);
	struct queued *found = NULL;
	for (size_t i = start; i < q->n_groups && !found;)
		found = choose_of(q, i, &i);
	for (size_t i = 0; i < start && !found;)
		found = choose_of(q, i, &i);
	return found;
}

static void fill(struct queue *q, uint64_t now_us)
{
	if (now_us > q->filled_us)
		q->tokens_us += now_us - q->filled_us;
	q->filled_us = now_us;
	if (q->tokens_us > bucket_size(q->rules))
		q->tokens_us = bucket_size(q->rules);
}

struct queued *queue_next(struct queue *q, uint64_t now_us, uint64_t *wait_us)
{
	const uint64_t cost = cost_of_start(q->rules);
	struct queued *item = q->n_placed < q->rules->running && q->n_waiting > 0 ? choose(q) : NULL;
	*wait_us = 0;
	fill(q, now_us);
	if (item && q->tokens_us < cost) {
		*wait_us = cost - q->tokens_us;
		return NULL;
	}
	if (!item)
		return NULL;
	q->tokens_us -= cost;
	snprintf(q->last, sizeof(q->last), "%s", item->group->fair);
	end_to_wait(q, item);
	take_place(q, item);
	return item;
}

/* Whoever waits while there is a place and time is saved up waits for a quota, so that nobody is overtaken. */
bool queue_has_turn(struct queue *q, struct queued *item, uint64_t now_us)
{
	fill(q, now_us);
	if (q->n_placed >= q->rules->running || q->tokens_us < cost_of_start(q->rules) || !join(q, item))
		return false;
	bool is_free = quotas_allow(item->group) && !item->group->first;
	group_leave(q, item->group);
	item->group = NULL;
	return is_free;
}
