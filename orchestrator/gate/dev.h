/* The devices of a room. */
#ifndef CAGE_GATE_DEV_H
#define CAGE_GATE_DEV_H

#include "orchestrator/gate/plan.h"

int dev_plan(struct plan *plan);

/* Once all is in place: nothing can be added to /dev. */
int dev_close(void);

#endif
