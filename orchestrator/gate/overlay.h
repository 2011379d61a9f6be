/* A directory of this machine that the agent may change, while the changes are kept elsewhere. */
#ifndef CAGE_GATE_OVERLAY_H
#define CAGE_GATE_OVERLAY_H

#include <sys/types.h>

#include "orchestrator/gate/room.h"

/* Both return a detached tree (mount_tree.h), or -1. */

/* Root, outside: the directory as if it belonged to the agent; its files do where their owner is the directory's. -1: with
 * errno. */
int overlay_lower(const char *dir, uid_t uid);

/* In the mount namespace of the room, before its root is changed: the source below state/upper. lower, opened: the trees of
 * source and state, where root has opened them outside; -1: they are reached by their names. Takes both trees, and the working
 * directory is another then. -1: after it has said why not. */
int overlay_make(const struct fitting *f, int lower, int opened);

#endif
