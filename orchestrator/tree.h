/* Trees of files: listing, comparing and copying. Symbolic links are what they are, never where they lead. Directories
 * count only as the way to what is in them; sockets, devices and pipes don't count at all. */
#ifndef CAGE_ORCHESTRATOR_TREE_H
#define CAGE_ORCHESTRATOR_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

/* Whose something is to be. */
struct owner {
	uid_t uid;
	gid_t gid;
};

enum entry_kind { ENTRY_FILE, ENTRY_LINK, ENTRY_DIR, ENTRY_OTHER };

struct entry {
	char *path; /* below the root */
	enum entry_kind kind;
	struct timespec changed; /* by anybody, who can't make it look older */
	ino_t id;
};

/* What is in a tree that is read: all, or it can't be read; or what can be, without directories that can't. */
enum tree_of { TREE_OF_ALL, TREE_OF_READABLE };

struct tree {
	char root[4096];
	struct entry *list; /* sorted by path */
	size_t n, room;
	size_t n_bytes; /* of all paths */
	enum tree_of of_what;
	/* What was not changed later is as it was in any tree to compare with, if its directories are those that there were
	 * then, in the other tree: one that is moved takes old files with it. 0: not known. */
	struct timespec since;
	const struct tree *then;
};

/* False with a message: it can't be read, or there is too much of it. */
bool tree_read(struct tree *t, const char *root, enum tree_of of_what);
void tree_free(struct tree *t);

/* Takes out what does not stay. */
typedef bool tree_stays(void *arg, const char *path);
void tree_keep(struct tree *t, tree_stays *stays, void *arg);

/* tree_overlay.c: from the upper directory of an overlay, what it changed: before, of the lower directory, and after. False
 * with a message; both are to be freed. */
bool tree_read_overlay(const char *lower, const char *upper, struct tree *before, struct tree *after);

/* What both readers are made of: a walk below a directory of the root, and one entry. 0, or an errno. */
int tree_walk(struct tree *t, const char *path);
int tree_add(struct tree *t, const char *path, const struct stat *st);
bool tree_begin(struct tree *t, const char *root);
bool tree_end(struct tree *t, int error); /* sorts, or says what is wrong */

enum entry_kind entry_kind_of(mode_t mode);

/* Is a later than b? */
bool time_is_later(struct timespec a, struct timespec b);

enum change_kind { CHANGE_ADDED = 'A', CHANGE_MODIFIED = 'M', CHANGE_DELETED = 'D' };

/* Told of each file or link that differs; false: no more. */
typedef bool change_found(void *arg, enum change_kind kind, const char *path);

/* From one tree to another. False: it was told so. */
bool tree_compare(const struct tree *from, const struct tree *to, change_found *found, void *arg);

/* Are the things of that name below the two roots the same? Two that are not there are. */
bool entry_same(const char *root, const char *other, const char *path);

/* tree_copy.c. Nothing that leads out of a root is followed. False with errno. */

/* Copies a file, link or directory to the same name below another root, with the directories that lead there. */
bool entry_copy(const char *root, const char *to, const char *path);

/* The same for all of a tree. left_out: told of what we may not read, which is no part of the tree any more then; NULL: that
 * is a failure too. *failed: which one was not copied. */
typedef void tree_left_out(void *arg, const char *path);
bool tree_copy(struct tree *t, const char *to, tree_left_out *left_out, void *arg, const char **failed);

/* The same for a file or link, as a second name of it where that is possible. */
bool entry_save(const char *root, const char *to, const char *path);

/* Moves a file or link there: over one that is there, or only where there is none (EEXIST). */
enum move_how { MOVE_OVER, MOVE_NEW };
bool entry_move(const char *root, const char *to, const char *path, enum move_how how);

/* Removes it if it is there, and directories above it that are empty then. */
bool entry_remove(const char *root, const char *path);

#endif
