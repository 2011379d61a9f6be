/* Files that the agent has of its own, as copies: what a program must be able to change and nobody outside needs back. Who
 * started the gate may still be writing them while the room is made, so the places are found first, and filled later. */
#ifndef CAGE_GATE_COPY_H
#define CAGE_GATE_COPY_H

#include <stddef.h>
#include <sys/types.h>

#include "core/base/limits.h"

/* All descriptors are owned. */
struct copies {
	struct {
		int from, to; /* directories */
	} all[LIMIT_ROOM_FITTINGS];
	size_t n;
};

/* A new file in dir with what from still has to be read. mode: that of the file, whatever the mask of new files is. 0, or -1 with
 * errno. */
int copy_file(int from, int dir, const char *name, mode_t mode);

/* A directory whose files will be copied into the one at path, which is made. tree: as in mount_tree.h, borrowed. 0, or -1 with
 * errno. */
int copies_add(struct copies *copies, int tree, const char *path);

/* Copies the files of all, and nothing below, and forgets them. 0, or -1 with errno. */
int copies_fill(struct copies *copies);

#endif
