/* What the two halves of children.h share: making a process, and watching it. */
#ifndef CAGE_PROXY_CHILDREN_PRIVATE_H
#define CAGE_PROXY_CHILDREN_PRIVATE_H

#include "proxy/children.h"
#include "proxy/control.h"

static inline struct child *children_logger(struct children *c)
{
	return &c->list[0];
}

static inline struct child *children_signer(struct children *c)
{
	return &c->list[1];
}

/* The log's ring of a worker; the first one is the master's own. */
static inline unsigned child_ring(const struct child *worker)
{
	return worker->index + 1;
}

static inline bool child_is_running(const struct child *ch)
{
	return ch->state == CHILD_STARTING || ch->state == CHILD_READY || ch->state == CHILD_RELOADING;
}

/* Sends a message to a child that runs; ends one that does not listen. */
void child_tell(struct child *ch, const struct control *msg, int fd);

/* Its pid, or -1 with errno. control: the child's end. Does not return in the child. */
pid_t child_fork(struct child *ch, int control);

#endif
