/* A gate that is started in a room: what a room is made by is refused there, to all that run in it. */
#ifndef CAGE_GATE_NESTED_H
#define CAGE_GATE_NESTED_H

#include <stdbool.h>

/* By what only the filter of a room answers. */
bool nested_is_in_room(void);

/* 0 where files can be opened by names without links, which each room with mounts needs; -1 after saying why not. */
int nested_check(void);

/* The same, where only a room is in the way. */
int nested_refuse(void);

#endif
