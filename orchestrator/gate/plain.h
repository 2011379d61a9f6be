/* Files by names that have no link in them. */
#ifndef CAGE_GATE_PLAIN_H
#define CAGE_GATE_PLAIN_H

/* A descriptor that says which file it is and no more (O_PATH). -1 with errno: ELOOP where a part of the path is a link. */
int plain_open(const char *path);

/* Says errno of what was named, and of a link what can be done about it. -1. */
int plain_say(const char *path);

/* A directory to be listed, by its name in another tree: links lead where they would with that tree as the root. */
int plain_open_below(const char *root, const char *name);

#endif
