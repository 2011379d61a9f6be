/* Who starts next. Only logic: it knows no clock, no process and no file, so that a test can drive it.
 *
 * A sandbox may start when there is a place, no quota on one of its labels is used up, and the rate of starts allows it. Of those
 * that may, the values of the fair label take turns, and within one value the oldest goes first.
 *
 * Those that wait are kept in groups, each with one fair value and the same quotas: whether one of a group may start is the same for
 * all of it, so that a choice looks at groups and not at all that wait, and for each quota it is counted how many run. */
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

struct queue_group;
struct queue_tally;

/* A sandbox in the queue or on a place; embedded in its owner. */
struct queued {
	enum { QUEUE_NOWHERE, QUEUE_WAITING, QUEUE_PLACED } where;
	/* The value of that label of its owner; NULL: it has none. It may not change. */
	const char *(*label)(const struct queued *q, const char *name);
	/* of the queue */
	struct queued *next, *before; /* of its group, the oldest first */
	struct queue_group *group;
	uint64_t number; /* the order in which they came */
};

struct queue {
	const struct queue_rules *rules;
	struct queued **waiting; /* the oldest first */
	size_t n_waiting, room_waiting, n_placed;
	struct queue_group **groups; /* in the order of fair values */
	size_t n_groups, room_groups;
	struct queue_tally **tallies; /* how many run, for each quota and value */
	size_t n_tallies, room_tallies;
	uint64_t came;                    /* number of the last */
	char last[LIMIT_SERVE_LABEL + 1]; /* the fair value that had its turn */
	uint64_t tokens_us;               /* time that is saved up for starts */
	uint64_t filled_us;               /* when that was */
	uint64_t steps;                   /* groups that were looked at, for tests */
};

void queue_init(struct queue *q, const struct queue_rules *rules, uint64_t now_us);

/* What is in it is not touched, and is in no queue then. */
void queue_free(struct queue *q);

/* False: no memory. */
bool queue_add(struct queue *q, struct queued *item);

/* It has a place already: it was started before us. False: no memory. */
bool queue_place(struct queue *q, struct queued *item);

/* One that was taken onto a place could not start: it waits again, before all of its group. */
void queue_return(struct queue *q, struct queued *item);

/* Away from where it is. */
void queue_remove(struct queue *q, struct queued *item);

/* Takes the next one onto a place. NULL: none may start now; *wait_us: but for the rate one could, after that time. 0: not by
 * waiting. */
struct queued *queue_next(struct queue *q, uint64_t now_us, uint64_t *wait_us);

/* Would it be the next, if it came now? It is not added. */
bool queue_has_turn(struct queue *q, struct queued *item, uint64_t now_us);

/* How many are before it. */
size_t queue_before(const struct queue *q, const struct queued *item);

#endif
