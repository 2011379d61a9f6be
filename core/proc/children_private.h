/* What the two halves of children.h share: making a process, and watching it. */
#ifndef CAGE_PROC_CHILDREN_PRIVATE_H
#define CAGE_PROC_CHILDREN_PRIVATE_H

#include "core/proc/children.h"
#include "core/proc/control.h"

static inline struct child *children_logger(struct children *c)
{
	return &c->list[0];
}

/* The log's ring of a worker; the first one is the master's own. */
static inline unsigned child_ring(const struct child *worker)
{
	return worker->index + 1;
}

/* Its pid, or -1 with errno. control: the child's end. Does not return in the child. */
pid_t child_fork(struct child *ch, int control);

#endif
