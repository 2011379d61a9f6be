/* Files in /etc that are the room's own. */
#ifndef CAGE_GATE_ETC_H
#define CAGE_GATE_ETC_H

#include "orchestrator/gate/room.h"

/* In the room, while its root can still be written. 0, or -1 after it has said why not. */
int etc_make(const struct room *room);

#endif
