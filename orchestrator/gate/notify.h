/* The supervisor of mode seccomp: answers each socket() of the agent with a socket that can't leave loopback. */
#ifndef CAGE_GATE_NOTIFY_H
#define CAGE_GATE_NOTIFY_H

#include <sys/types.h>

/* Before the first answer: sockets belong to the agent, not to root. 0, or -1 after it has said why not. */
int notify_prepare(int notifier, uid_t agent);

/* Answers one question. */
void notify_serve(int notifier);

/* Behind the last one: files are reached by who runs the gate again, such as its cgroup. */
void notify_end(void);

#endif
