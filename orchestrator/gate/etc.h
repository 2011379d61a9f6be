/* /etc of a room: a file system of its own in memory, with what everybody may read of the machine's and some files that are
 * the room's. Nothing there is mounted over a name of the machine's, so what is put in its place outside later is not seen. */
#ifndef CAGE_GATE_ETC_H
#define CAGE_GATE_ETC_H

#include "orchestrator/gate/plan.h"
#include "orchestrator/gate/room.h"

/* While the files of the machine can be seen. What has a hidden path in it (--hide) is left out. 0, or -1 after it has said
 * why not. */
int etc_plan(struct plan *plan, const struct room *room);

/* In the room, when all is in place. */
int etc_close(void);

#endif
