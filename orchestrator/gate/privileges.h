/* What the agent may not keep: capabilities, and the ways to get them back. */
#ifndef CAGE_GATE_PRIVILEGES_H
#define CAGE_GATE_PRIVILEGES_H

#include <stdbool.h>
#include <sys/types.h>

/* Not to be looked into by anybody of the same uid. */
void privileges_hide(void);

/* Ends this process when its parent ends. Must be called again after each change of uid. */
void privileges_die_with_parent(void);

/* As root: gives up the groups and becomes uid, also outside of any namespace of ours. Others stay who they are. */
int privileges_become(uid_t uid);

/* No capabilities in any set, and none to be had by exec. 0, or -1 after it has said why not. */
int privileges_drop(void);

/* Whether privileges_drop has held. */
bool privileges_are_none(void);

#endif
