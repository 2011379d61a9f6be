/* Sockets with a path, which neither a network of its own, a read-only mount nor Landlock keeps an agent from. */
#ifndef CAGE_GATE_PATH_SOCKETS_H
#define CAGE_GATE_PATH_SOCKETS_H

#include <stddef.h>

#include "core/base/limits.h"

struct room;

/* Those that a room would show: where they are in it. */
struct path_sockets {
	char *paths[LIMIT_ROOM_SOCKETS];
	size_t n;
};

/* The gate: finds what others listen on below the trees that a room shows by itself; what is bound by name is meant. 0, or
 * -1 after it has said why not. */
int path_sockets_find(const struct room *room, struct path_sockets *out);

/* In the room: covers them. 0, or -1 after it has said why not. */
int path_sockets_hide(const struct path_sockets *sockets);

void path_sockets_free(struct path_sockets *sockets);

/* Where nothing can be covered: that there is none here that the agent could connect to, but those that are bound: agents
 * of keys, Docker's, desktops'. 0, or -1 after it has said which. Called with the agent's uid by a child of the gate, whose
 * network is looked at. */
int path_sockets_check(const struct room *room);

#endif
