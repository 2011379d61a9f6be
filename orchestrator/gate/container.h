/* Where no mounts are allowed, the container around is the room. */
#ifndef CAGE_GATE_CONTAINER_H
#define CAGE_GATE_CONTAINER_H

#include "orchestrator/gate/room.h"

/* Restricts what can be opened, and checks that the rest is what was asked for: nothing has to be mounted, and what must
 * not be seen is not there. 0, or -1 after it has said why not. Called with the agent's uid. */
int container_enter(const struct room *room);

#endif
