/* The last steps of the process that becomes CMD. */
#ifndef CAGE_GATE_AGENT_H
#define CAGE_GATE_AGENT_H

#include "orchestrator/gate/options.h"

/* Self-test, ready, limits, exec: with the filter loaded. Does not return. */
_Noreturn void agent_run(const struct options *options, const struct room_supplies *supplies, enum gate_mode mode,
			 unsigned loopback);

#endif
