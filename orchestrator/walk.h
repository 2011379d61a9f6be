/* A tree of files that somebody else may have made, and may be changing: nothing in it leads out of it. */
#ifndef CAGE_ORCHESTRATOR_WALK_H
#define CAGE_ORCHESTRATOR_WALK_H

#include <stdbool.h>
#include <sys/stat.h>

struct walk {
	/* What is called name in dir, links as such: before it is opened, if it is a directory. */
	void (*before)(int dir, const char *name, const struct stat *st);
	/* The same when all below it is done. NULL: not of interest. */
	void (*after)(int dir, const char *name, const struct stat *st);
};

/* All below the directory at path, however deep, with a handful of descriptors. Other file systems that are mounted there
 * are not entered, and directories that can't be opened are passed over. False when the tree was changed meanwhile, so
 * that the way back was lost, or it is too large to remember. */
bool walk_tree(const char *path, const struct walk *walk);

#endif
