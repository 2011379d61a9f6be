/* What is waited for in one pass of the loop: every part of the keeper adds what it wants to know, each time anew. Whoever is
 * called looks whether the descriptor is still its own: another part may have closed it in the same pass. */
#ifndef CAGE_KEEPER_POLLS_H
#define CAGE_KEEPER_POLLS_H

#include <poll.h>

#include "core/base/limits.h"

struct keeper;

typedef void polled(struct keeper *k, void *arg, int fd, short events);

struct polls {
	nfds_t n;
	struct pollfd fds[LIMIT_KEEPER_POLLED];
	struct {
		polled *ready;
		void *arg;
	} who[LIMIT_KEEPER_POLLED];
};

/* Of fd -1 and of no events nothing is waited for: also not for its end. */
void polls_add(struct polls *p, int fd, short events, polled *ready, void *arg);

/* Waits, at most ms (-1: for ever), and calls those whose descriptors are ready. */
void polls_wait(struct keeper *k, int ms);

/* Closes *fd, which is -1 then. */
void fd_close(int *fd);

#endif
