/* Sockets with a path, which neither a network of its own nor Landlock keeps an agent from. */
#ifndef CAGE_GATE_SOCKETS_H
#define CAGE_GATE_SOCKETS_H

#include "orchestrator/gate/room.h"

/* That there is none here that the agent could connect to, but those that are bound: agents of keys, Docker's, desktops'.
 * 0, or -1 after it has said which. Called with the agent's uid by a child of the gate, whose network is looked at. */
int sockets_check(const struct room *room);

#endif
