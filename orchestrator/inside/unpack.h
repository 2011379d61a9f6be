/* Files that an agent begins with, in a container that no keeper can speak to. */
#ifndef CAGE_INSIDE_UNPACK_H
#define CAGE_INSIDE_UNPACK_H

#include <stdbool.h>

/* From the file `path` to below the current directory. False with errno: not all of them are there. */
bool unpack(const char *path);

#endif
