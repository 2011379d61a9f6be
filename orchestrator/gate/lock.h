/* Locks the agent in and runs it, in one of the two modes. */
#ifndef CAGE_GATE_LOCK_H
#define CAGE_GATE_LOCK_H

#include "orchestrator/gate/options.h"

/* Each returns the exit code of cage-gate. */
int lock_netns(const struct options *options);
int lock_seccomp(const struct options *options);

#endif
