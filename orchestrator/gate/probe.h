/* What this host allows. */
#ifndef CAGE_GATE_PROBE_H
#define CAGE_GATE_PROBE_H

#include "orchestrator/gate/options.h"

/* Whether this mode works here, which is tried in full. */
bool probe_holds(enum gate_mode mode);

/* The strongest mode that works here, MODE_AUTO for none. */
enum gate_mode probe_best(void);

/* Says that there is none, and of each why; returns the exit code. */
int probe_say_none(void);

/* Prints the mode that would be taken, and what the files of the room would be: "overlay" (the one of these options works),
 * "mounts" or "shared" (those of the container). Returns the exit code. */
int probe_choose(const struct options *options);

/* Prints all of it, with the mode of these options, or the strongest for auto; returns the exit code: whether an agent can
 * be locked in with that mode. */
int probe_print(const struct options *options);

#endif
