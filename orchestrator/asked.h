/* Signals that ask a process to end, where they are blocked and wait until it can: before work that takes long it looks. */
#ifndef CAGE_ORCHESTRATOR_ASKED_H
#define CAGE_ORCHESTRATOR_ASKED_H

#include <signal.h>
#include <stdbool.h>

sigset_t asked_signals(void);

/* Is one of them waiting? */
bool is_asked_to_end(void);

/* Which one; 0: none. */
int asked_by(void);

#endif
