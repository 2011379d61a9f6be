/* The parent's life while the child runs. */
#ifndef CAGE_GATE_SUPERVISE_H
#define CAGE_GATE_SUPERVISE_H

#include <sys/types.h>

/* Blocks what supervise waits for. Called before the fork, so that nothing is missed. */
void supervise_prepare(void);

/* In a child that is to become CMD: signals as CMD expects them. */
void supervise_undo(void);

/* Passes signals on to the child, reaps whatever ends, serves the notifier (if not -1), tells the launcher (if not -1) when the
 * child is stopped, and returns with the child's exit code or 128 and its signal. */
int supervise(pid_t child, int notifier, int launcher);

/* The same of the room's first process, which ends by itself as CMD did: says so when it was killed. */
int supervise_room(pid_t first);

/* The gate outlives who started it until all in the room have ended and its cgroup is removed. */
void supervise_outlive_parent(void);

/* The gate, behind the others: ends what CMD has left. code, or EXIT_UNLOCKED after it has said that somebody is left. */
int supervise_end(int code);

#endif
