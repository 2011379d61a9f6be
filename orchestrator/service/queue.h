/* Who starts next. Only logic: it knows no clock, no process and no file, so that a test can drive it.
 *
 * A sandbox may start when there is a place, no quota on one of its labels is used up, and the rate of starts allows it. Of those
 * that may, the values of the fair label take turns, and within one value the oldest goes first. */
#ifndef CAGE_SERVICE_QUEUE_H
#define CAGE_SERVICE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/limits.h"

/* At most so many of a value of a label run at the same time. */
struct quota {
	char label[LIMIT_SERVE_LABEL + 1];
	char value[LIMIT_SERVE_LABEL + 1];
	bool any; /* it is for each value by itself, of those that have none of their own */
	size_t running;
};

struct queue_rules {
	size_t running;                   /* places */
	uint64_t starts, period_us;       /* so many in a period; starts 0: no limit */
	char fair[LIMIT_SERVE_LABEL + 1]; /* the label whose values take turns; "": none */
	struct quota quotas[LIMIT_SERVE_QUOTAS];
	size_t n_quotas;
};

/* A sandbox in the queue or on a place; embedded in its owner. */
struct queued {
	struct queued *next;
	enum { QUEUE_NOWHERE, QUEUE_WAITING, QUEUE_PLACED } where;
	/* The value of that label of its owner; NULL: it has none. */
	const char *(*label)(const struct queued *q, const char *name);
};

struct queue {
	const struct queue_rules *rules;
	struct queued *waiting, *placed; /* the oldest first */
	size_t n_waiting, n_placed;
	char last[LIMIT_SERVE_LABEL + 1]; /* the fair value that had its turn */
	uint64_t tokens_us;               /* time that is saved up for starts */
	uint64_t filled_us;               /* when that was */
};

void queue_init(struct queue *q, const struct queue_rules *rules, uint64_t now_us);

void queue_add(struct queue *q, struct queued *item);

/* It has a place already: it was started before us. */
void queue_place(struct queue *q, struct queued *item);

/* Away from where it is. */
void queue_remove(struct queue *q, struct queued *item);

/* Takes the next one onto a place. NULL: none may start now; *wait_us: but for the rate one could, after that time. 0: not by
 * waiting. */
struct queued *queue_next(struct queue *q, uint64_t now_us, uint64_t *wait_us);

/* How many are before it. */
size_t queue_before(const struct queue *q, const struct queued *item);

#endif
