/* The seccomp filter of the agent: which sockets it may ask for, and which modes of files. */
#ifndef CAGE_GATE_FILTER_H
#define CAGE_GATE_FILTER_H

/* Loads the filter of a network of the agent's own: families that a network namespace does not confine, other
 * architectures, other ways to a socket and files that change the user are refused. 0, or -1 with errno. */
int filter_load_own(void);

/* Loads that of a shared network: IPv4 sockets come from the supervisor, IPv6 is refused. Returns the descriptor that
 * the supervisor serves, or -1 with errno. */
int filter_load_supervised(void);

#endif
