/* The last look before CMD runs: does what we built hold? */
#ifndef CAGE_GATE_SELFTEST_H
#define CAGE_GATE_SELFTEST_H

#include "orchestrator/gate/options.h"

/* Run by the process that becomes CMD, with everything in place. loopback: the index of lo. 0, or -1 after it has
 * said what does not hold. */
int selftest_run(enum gate_mode mode, unsigned loopback);

#endif
