/* What a room will have, in the order in which it is put there. Everything is got while the files of this machine can
 * still be seen, and placed when they can't any more, so that no path of the room leads out of it. */
#ifndef CAGE_GATE_PLAN_H
#define CAGE_GATE_PLAN_H

#include <stddef.h>
#include <sys/mount.h>

#include "core/base/limits.h"
#include "orchestrator/gate/copy.h"

enum piece_kind {
	PIECE_TREE, /* is put there */
	PIECE_COPY, /* its files will be, and it is not */
	PIECE_LINK
};

struct piece {
	enum piece_kind kind;
	char *path;
	const char *option; /* that asked for it, else NULL */
	int tree;           /* detached (mount_tree.h); -1: a symbolic link has none */
	char *link;         /* what that says, else NULL */
};

struct plan {
	struct piece pieces[LIMIT_ROOM_PIECES];
	size_t n;
	const char *option; /* that what is added next was asked for by; NULL: the room's own */
};

/* All return 0, or -1 after saying why not. A tree that is -1 is an error whose errno is said; it is owned otherwise. */
int plan_tree(struct plan *plan, int tree, const char *path);
int plan_copy(struct plan *plan, int tree, const char *path);
int plan_link(struct plan *plan, const char *text, const char *path);

/* A tree that nothing can be changed in, and that gives nobody rights. */
#define PLAN_WITHOUT_RIGHTS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
int plan_read_only(struct plan *plan, int tree, const char *path);

/* Puts all into the room that "/" is by now, with the directories that lead there. What is to be copied is added to *later.
 * 0, or the exit code after saying why not. */
int plan_place(const struct plan *plan, struct copies *later);

void plan_free(struct plan *plan);

/* Makes an empty file or directory at path, and all directories above, where they are missing. 0, or -1 with errno. */
int plan_make_path(const char *path, int is_directory);

#endif
