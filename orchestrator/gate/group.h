/* The process group of CMD. */
#ifndef CAGE_GATE_GROUP_H
#define CAGE_GATE_GROUP_H

/* In the process that becomes CMD: a group of its own, in the foreground of the terminal if there is one. launcher: the handoff
 * socket, where it is said. 0, or -1 after it has said why not. */
int group_make(int launcher);

#endif
