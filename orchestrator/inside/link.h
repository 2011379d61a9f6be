/* A connection of the sandbox's own loopback, for who connects to a port that was published. Both directions end by
 * themselves; what comes in is held until the program takes it, within the window of frame.h. */
#ifndef CAGE_INSIDE_LINK_H
#define CAGE_INSIDE_LINK_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/base/slice.h"

enum link_side {
	LINK_OPEN,
	LINK_ENDING, /* there is no more to come, but some is held */
	LINK_ENDED
};

struct link {
	int fd;             /* -1: none */
	enum link_side in;  /* to the program */
	enum link_side out; /* from it */
	char *held;         /* LIMIT_INSIDE_WINDOW bytes, for it */
	size_t n_held;
};

/* 0, or -1 with errno. Whether somebody listens is seen later. */
int link_open(struct link *l, uint16_t port);
void link_close(struct link *l);

/* What poll() has to wait for; can_send: the keeper takes more. */
short link_events(const struct link *l, bool can_send);

/* Holds more for the program. False: that is more than the window. */
bool link_take(struct link *l, struct slice data);
void link_end(struct link *l);

/* Gives the program what it takes. How many bytes that were; -1 with errno. */
ssize_t link_give(struct link *l);

/* Reads from it as read() does; at its end that side has ended. */
ssize_t link_read(struct link *l, char *to, size_t room);

static inline bool link_is_over(const struct link *l)
{
	return l->in == LINK_ENDED && l->out == LINK_ENDED;
}

#endif
