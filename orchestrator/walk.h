/* A tree of files that somebody else may have made, and may be changing: nothing in it leads out of it. */
#ifndef CAGE_ORCHESTRATOR_WALK_H
#define CAGE_ORCHESTRATOR_WALK_H

#include <sys/stat.h>

/* Something that is met, links as such. */
struct walk_at {
	int dir; /* that it is in */
	const char *name;
	const char *path; /* below the top, behind the prefix; until the next one is met */
	const struct stat *st;
};

enum walk_mounts { WALK_STAY, WALK_CROSS }; /* other file systems that are mounted there are left alone, or entered */

#define WALK_PASS (-1) /* of before: a directory is not entered */

struct walk {
	/* Files of a directory come before directories, and each of these before what is in it. An errno ends the walk. */
	int (*before)(void *arg, const struct walk_at *at);
	/* The same when all below it is done. NULL: not of interest. */
	int (*after)(void *arg, const struct walk_at *at);
	/* Of a directory that can't be opened or entered, or of something that can't be looked at, with its errno, which ends the
	 * walk if it is returned. NULL: it is passed over. */
	int (*closed)(void *arg, int error);
	void *arg;
	const char *prefix; /* of paths; NULL: none */
	enum walk_mounts mounts;
};

/* All below the directory at top, however deep, with a handful of descriptors. 0, or an errno: one that was returned; ESTALE: the
 * tree was changed meanwhile, so that the way back was lost; E2BIG: it is too large to remember. */
int walk_tree(const char *top, const struct walk *walk);

#endif
