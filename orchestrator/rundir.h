/* The directory of one run: what is private to cage, and the env kit, which CMD may read. Removed at the end. */
#ifndef CAGE_ORCHESTRATOR_RUNDIR_H
#define CAGE_ORCHESTRATOR_RUNDIR_H

#include <stdbool.h>
#include <sys/types.h>

#define RUNDIR_PATH 64 /* short: sockets are in it */

struct rundir {
	char top[RUNDIR_PATH];    /* 0711; empty: there is none */
	char hidden[RUNDIR_PATH]; /* 0700: logs, sockets */
	char kit[RUNDIR_PATH];    /* 0755 */
	char view[RUNDIR_PATH];   /* 0700: around CMD's view of a workspace, which belongs to CMD's user */
	char home[RUNDIR_PATH];   /* 0700, of CMD, where the room can have none of its own; else empty */
};

/* False with a message. */
bool rundir_make(struct rundir *d);

/* A home for CMD. False with errno. */
bool rundir_make_home(struct rundir *d, uid_t owner);

void rundir_remove(struct rundir *d);

#endif
