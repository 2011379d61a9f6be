/* A directory of this machine that the agent may change, while the changes are kept elsewhere. */
#ifndef CAGE_GATE_OVERLAY_H
#define CAGE_GATE_OVERLAY_H

#include <sys/types.h>

/* Both return a detached tree (mount_tree.h), or -1 with errno. */

/* Root, outside: the directory as if it belonged to the agent; its files do where their owner is the directory's. */
int overlay_lower(const char *dir, uid_t uid);

/* In the mount namespace of the room, before its root is changed: lower below state/upper. opened: the tree of state, where
 * root has opened it outside; -1: it is reached by its name. Takes both trees, and the working directory is another then. */
int overlay_make(int lower, int opened, const char *state);

#endif
