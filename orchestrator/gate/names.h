/* How names are found in a container that is the room, and so has no /etc of its own making. */
#ifndef CAGE_GATE_NAMES_H
#define CAGE_GATE_NAMES_H

#define NAMES_HOSTS 512

/* The hosts file of a room. */
void names_hosts(const char *hostname, char out[NAMES_HOSTS]);

/* The gate, before it gives up its rights (--names): resolv.conf and hosts of the container. What can't be changed is said, and no more:
 * a resolver that the agent reads of there is one that it can't reach. */
void names_write(void);

#endif
