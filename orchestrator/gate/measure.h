/* What all processes of a room have used, as its cgroup has counted it, or else what is known of those that have ended. */
#ifndef CAGE_GATE_MEASURE_H
#define CAGE_GATE_MEASURE_H

#include "orchestrator/gate/cgroup.h"
#include "orchestrator/gate/handoff.h"

/* When the room has ended, and its cgroup is still there. */
void measure(const struct cgroup *cgroup, struct handoff_usage *out);

#endif
