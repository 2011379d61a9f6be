/* Files that the agent has of its own, as copies: what a program must be able to change and nobody outside needs back. */
#ifndef CAGE_GATE_COPY_H
#define CAGE_GATE_COPY_H

/* Copies the files of a directory, and nothing below it, into the one at path, which is made. tree: as in tree.h. 0, or -1
 * with errno. */
int copy_files(int tree, const char *path);

#endif
