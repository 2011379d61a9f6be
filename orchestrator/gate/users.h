/* The agent's own user namespace, inside that of the room. */
#ifndef CAGE_GATE_USERS_H
#define CAGE_GATE_USERS_H

#include <sys/types.h>

/* From root of the room's namespace, which the kernel wants for terminals, to uid in a namespace below, so that the
 * mounts and the network of the room belong to a namespace that the agent is not in. 0, or -1 after it has said why
 * not. */
int users_become(uid_t uid);

#endif
