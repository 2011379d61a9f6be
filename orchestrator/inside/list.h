/* What FRAME_LIST is answered with. */
#ifndef CAGE_INSIDE_LIST_H
#define CAGE_INSIDE_LIST_H

/* A file in memory with the list of a directory in it; -1 with errno. */
int list_make(int root, const char *path);

#endif
