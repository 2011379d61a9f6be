/* Two lists and a bucket. */
#include "orchestrator/service/queue.h"

#include <stdio.h>
#include <string.h>

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

/* ---- lists ---- */

static void append(struct queued **list, struct queued *item)
{
	while (*list)
		list = &(*list)->next;
	item->next = NULL;
	*list = item;
}

static void take_out(struct queued **list, const struct queued *item)
{
	while (*list && *list != item)
		list = &(*list)->next;
	if (*list)
		*list = item->next;
}

void queue_add(struct queue *q, struct queued *item)
{
	append(&q->waiting, item);
	item->where = QUEUE_WAITING;
	q->n_waiting++;
}

void queue_place(struct queue *q, struct queued *item)
{
	append(&q->placed, item);
	item->where = QUEUE_PLACED;
	q->n_placed++;
}

void queue_remove(struct queue *q, struct queued *item)
{
	if (item->where == QUEUE_WAITING) {
		take_out(&q->waiting, item);
		q->n_waiting--;
	} else if (item->where == QUEUE_PLACED) {
		take_out(&q->placed, item);
		q->n_placed--;
	}
	item->where = QUEUE_NOWHERE;
	item->next = NULL;
}

size_t queue_before(const struct queue *q, const struct queued *item)
{
	size_t n = 0;
	for (const struct queued *i = q->waiting; i && i != item; i = i->next)
		n++;
	return n;
}

/* ---- quotas ---- */

static size_t count_placed(const struct queue *q, const char *label, const char *value)
{
	size_t n = 0;
	for (const struct queued *i = q->placed; i; i = i->next) {
		const char *have = i->label(i, label);
		n += have && strcmp(have, value) == 0;
	}
	return n;
}

static bool has_own(const struct queue_rules *r, const char *label, const char *value)
{
	for (size_t i = 0; i < r->n_quotas; i++)
		if (!r->quotas[i].any && strcmp(r->quotas[i].label, label) == 0 &&
		    strcmp(r->quotas[i].value, value) == 0)
			return true;
	return false;
}

static bool quota_allows(const struct queue *q, const struct quota *quota, const struct queued *item)
{
	const char *value = item->label(item, quota->label);
	if (!value)
		return true;
	if (quota->any ? has_own(q->rules, quota->label, value) : strcmp(value, quota->value) != 0)
		return true;
	return count_placed(q, quota->label, value) < quota->running;
}

static bool quotas_allow(const struct queue *q, const struct queued *item)
{
	for (size_t i = 0; i < q->rules->n_quotas; i++)
		if (!quota_allows(q, &q->rules->quotas[i], item))
			return false;
	return true;
}

/* ---- turns ---- */

static const char *fair_value(const struct queue *q, const struct queued *item)
{
	const char *value = q->rules->fair[0] ? item->label(item, q->rules->fair) : NULL;
	return value ? value : "";
}

/* Is a's turn before b's, when the last was that value's? The values go round in their order. */
static bool comes_first(const char *a, const char *b, const char *last)
{
	bool a_is_next = strcmp(a, last) > 0, b_is_next = strcmp(b, last) > 0;
	return a_is_next != b_is_next ? a_is_next : strcmp(a, b) < 0;
}

static struct queued *choose(struct queue *q)
{
	struct queued *best = NULL;
	for (struct queued *i = q->waiting; i; i = i->next)
		if ((!best || comes_first(fair_value(q, i), fair_value(q, best), q->last)) && quotas_allow(q, i))
			best = i;
	return best;
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
	struct queued *item = q->n_placed < q->rules->running ? choose(q) : NULL;
	*wait_us = 0;
	fill(q, now_us);
	if (item && q->tokens_us < cost) {
		*wait_us = cost - q->tokens_us;
		return NULL;
	}
	if (!item)
		return NULL;
	q->tokens_us -= cost;
	snprintf(q->last, sizeof(q->last), "%s", fair_value(q, item));
	queue_remove(q, item);
	queue_place(q, item);
	return item;
}
