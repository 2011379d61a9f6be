/* The files of a room where nothing can be mounted: the same places as elsewhere, held by Landlock. */
#ifndef CAGE_GATE_FILES_H
#define CAGE_GATE_FILES_H

#include <stdbool.h>

#include "orchestrator/gate/room.h"

/* Lets this process and its children open nothing but programs, the temporary places, the home, and what is bound to
 * where it is. *restricted: whether this kernel can. 0, or -1 after it has said why not. */
int files_restrict(const struct room *room, bool *restricted);

/* Whether path is in one of the places that can be written. */
bool files_are_writable(const struct room *room, const char *path);

#endif
