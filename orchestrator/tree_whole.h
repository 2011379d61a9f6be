/* What is done to a whole tree that somebody else has made: nothing in it leads elsewhere. */
#ifndef CAGE_ORCHESTRATOR_TREE_WHOLE_H
#define CAGE_ORCHESTRATOR_TREE_WHOLE_H

#include <stdbool.h>

#include "orchestrator/tree.h"

/* Makes all of it readable for its owner, whatever CMD did there. What can't be is left. */
void tree_open_up(const char *path);

/* Root gives it to somebody, the top too. False with errno. */
bool tree_give(const char *path, const struct owner *owner);

/* Removes it, if it is there. What can't be removed is left, and that is said. */
void tree_remove(const char *path);

#endif
