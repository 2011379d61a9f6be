/* A network of the agent's own: loopback and nothing else, where every address is this machine. */
#ifndef CAGE_GATE_NETNS_H
#define CAGE_GATE_NETNS_H

#include <stdbool.h>
#include <sys/types.h>

/* Addresses of the room's own beside those of loopback, 192.0.2.2 and 2001:db8::2. Like the sinkhole's they are nobody's. */
#define NETNS_OWN_IPV4 0xc0000202u
#define NETNS_OWN_IPV6_FIRST 0x20010db8u
#define NETNS_OWN_IPV6_LAST 2u

/* Starts a child in new namespaces, all that the room can have, and says in *namespaces which. Returns as fork does. The
 * child must call netns_join first, and the parent netns_map. */
pid_t netns_fork(unsigned *namespaces);

/* Parent: gives the child's user namespace the one user it has: its root, uid outside. 0 or -1. */
int netns_map(pid_t child, uid_t uid);

/* Root: the same for a user and group of other ids inside, both of them uid outside. 0 or -1. */
int netns_map_ids(pid_t child, uid_t user, gid_t group, uid_t uid);

/* Child, once mapped: becomes root of its own namespaces. 0 or -1. */
int netns_join(void);

/* Child: loopback up with the room's own addresses, and routes that make every address local. *has_ipv6: whether this kernel has it. 0 or -1. */
int netns_set_up(bool *has_ipv6);

/* Whether only loopback is here, and foreign addresses are local. */
bool netns_is_closed(void);

#endif
