/* Detached trees of files: made or copied first, put into place later. They need Linux 5.12. */
#ifndef CAGE_GATE_MOUNT_TREE_H
#define CAGE_GATE_MOUNT_TREE_H

#include <stddef.h>
#include <stdint.h>

/* All return a descriptor or 0, or -1 with errno. */

/* A copy of what is mounted at path, and below it. */
int mount_tree_clone(const char *path);

/* The same of what somebody else has named: no part of it may be a link (ELOOP), since who could change that would say what
 * is shown. */
int mount_tree_clone_plain(const char *path);

/* The same of what is open, if only by O_PATH: nobody can put something else in its place. */
int mount_tree_clone_open(int fd);

/* What a file system in memory may take. */
struct memory {
	size_t bytes, inodes;
};

/* An empty one. mode: octal, of its root directory. attributes: MOUNT_ATTR_... */
int mount_tree_tmpfs(struct memory most, const char *mode, uint64_t attributes);

/* A file system of the kernel's. settings: pairs of name and value, or NULL as the value of a flag; ends with NULL. */
int mount_tree_kernel(const char *type, const char *const *settings, uint64_t attributes);

/* Adds attributes to all of the tree, and cuts it off from what is mounted outside later. */
int mount_tree_restrict(int tree, uint64_t attributes);

/* Adds attributes to the mount at path only. */
int mount_tree_restrict_path(const char *path, uint64_t attributes);

/* Puts it over what is at path. */
int mount_tree_attach(int tree, const char *path);

#endif
