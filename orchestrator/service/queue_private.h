/* Between the files of the queue: groups of those that wait, and tallies of those that run. */
#ifndef CAGE_SERVICE_QUEUE_PRIVATE_H
#define CAGE_SERVICE_QUEUE_PRIVATE_H

#include "orchestrator/service/queue.h"

/* How many run of one value of a quota. */
struct queue_tally {
	const struct quota *quota;
	char value[LIMIT_SERVE_LABEL + 1];
	size_t placed;
	size_t groups; /* that have it; with none it goes */
};

/* Same fair value, same tallies. It is there as long as one of it waits or runs. */
struct queue_group {
	char fair[LIMIT_SERVE_LABEL + 1];
	struct queued *first, *last; /* that wait, the oldest first */
	size_t members;              /* that wait or run */
	size_t n;
	struct queue_tally *tallies[]; /* of the quotas that are for it, in their order */
};

/* The group of an item, which is made if there is none, with one member more; NULL: no memory. */
struct queue_group *group_join(struct queue *q, const struct queued *item);

/* One member less. */
void group_leave(struct queue *q, struct queue_group *g);

/* The first place in `groups` with a fair value above that. */
size_t group_after(const struct queue *q, const char *fair);

/* All of them, whoever is in them. */
void groups_free(struct queue *q);

#endif
