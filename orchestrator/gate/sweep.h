/* Ending all that the processes of a room have left, where no pid namespace does it. For the gate, and for cage when the
 * gate has died. */
#ifndef CAGE_GATE_SWEEP_H
#define CAGE_GATE_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* From now on orphans below this process become its children; what it has as children already is none of the room's. 0,
 * or -1 with errno. */
int sweep_begin(void);

/* Kills and reaps all below this process that has begun since, but for these children and what is below them. False when
 * somebody is left after some seconds. */
bool sweep_end(const pid_t *spared, size_t n);

#endif
