/* Baits of cage verify: sockets and a file of this machine that are there to be reached, which no probe in a room may do. What
 * arrives is seen outside, whatever the probe itself was told. */
#ifndef CAGE_ORCHESTRATOR_BAITS_H
#define CAGE_ORCHESTRATOR_BAITS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "orchestrator/room_kind.h"

enum bait {
	BAIT_TCP,       /* on loopback: "127.0.0.1:4711" */
	BAIT_TCP_OTHER, /* on another address of this machine */
	BAIT_UDP,
	BAIT_UDP_OTHER,
	BAIT_PATH,     /* a socket with a path */
	BAIT_ABSTRACT, /* a socket with an abstract name */
	BAIT_FILE,     /* a file that all can read */
	BAITS
};

#define BAIT_NONE '-' /* begins the name of one that could not be laid, or must not be: behind it is the reason */
#define BAIT_NAME 128

struct baits {
	int fds[BAITS];
	bool is_bitten[BAITS];
	char names[BAITS][BAIT_NAME];
	char apart[32]; /* a directory of its own for the file; empty: there is none */
};

/* What the room shares with this machine it has to be kept from; what this kernel has no means for is left out. dir: where
 * the path and the file are, reachable for all; /run instead for a file that the room would share. False with a message. */
bool baits_lay(struct baits *b, const char *dir, const struct room_kind *kind);

/* For poll(), and what came of it. */
void baits_watch(const struct baits *b, struct pollfd p[BAITS]);
void baits_look(struct baits *b, const struct pollfd p[BAITS]);

void baits_remove(struct baits *b);

/* For people. */
const char *bait_describe(enum bait bait);

#endif
