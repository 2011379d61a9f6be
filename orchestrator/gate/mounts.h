/* The files of a room. */
#ifndef CAGE_GATE_MOUNTS_H
#define CAGE_GATE_MOUNTS_H

#include "orchestrator/gate/room.h"

/* Leaves this process in a mount namespace that holds the room and nothing else. Of the supplies, trees are used, and
 * copies are found, to be filled later. 0, or the exit code after it has said why not. */
int mounts_make(const struct room *room, struct room_supplies *supplies);

#endif
