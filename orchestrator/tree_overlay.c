/* Reading what was changed from the upper directory of an overlay, where the kernel has written it: a device 0/0 stands for
 * what was deleted, and a directory that hides the lower one of its name has an attribute that says so. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/tree.h"
#include "orchestrator/walk.h"

/* One walk through the upper directory. */
struct reading {
	struct tree *before, *after;
	char hiding[LIMIT_WORKSPACE_PATH]; /* the directory of the walk that hides the lower one, ... */
	size_t n_hiding;                   /* ... and its length; 0: none */
};

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* 1, 0, or -1 with errno. By its descriptor, since its name may be too long for a path. */
static int hides_lower(const struct walk_at *at)
{
	char value[2];
	int fd = openat(at->dir, at->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t n = fgetxattr(fd, "user.overlay.opaque", value, sizeof(value));
	int error = errno;
	close(fd);
	errno = error;
	if (n < 0)
		return error == ENODATA || error == ENOTSUP ? 0 : -1;
	return n > 0 && value[0] == 'y';
}

/* Is it below a directory of which nothing lower is to be seen? That was taken in whole already. */
static bool is_hidden(const struct reading *r, const char *path)
{
	return r->n_hiding > 0 && strncmp(path, r->hiding, r->n_hiding) == 0 && path[r->n_hiding] == '/';
}

enum lower { LOWER_NONE, LOWER_DIR, LOWER_OTHER, LOWER_ERROR };

static enum lower look_below(const struct reading *r, const char *path, struct stat *st)
{
	char lower[2 * LIMIT_WORKSPACE_PATH];
	snprintf(lower, sizeof(lower), "%s/%s", r->before->root, path);
	if (lstat(lower, st) != 0)
		return errno == ENOENT || errno == ENOTDIR ? LOWER_NONE : LOWER_ERROR;
	return S_ISDIR(st->st_mode) ? LOWER_DIR : LOWER_OTHER;
}

/* What lies there counts as it was. */
static int take_lower(const struct reading *r, const char *path, enum lower lower, const struct stat *st)
{
	int error = lower == LOWER_DIR || lower == LOWER_OTHER ? tree_add(r->before, path, st) : 0;
	return error != 0 || lower != LOWER_DIR ? error : tree_walk(r->before, path);
}

static int note_hiding(struct reading *r, const char *path)
{
	int n = snprintf(r->hiding, sizeof(r->hiding), "%s", path);
	r->n_hiding = n < (int)sizeof(r->hiding) ? (size_t)n : 0;
	return r->n_hiding > 0 ? 0 : ENAMETOOLONG;
}

/* Where both are directories only what is in them counts, and is met later, unless the upper one hides the other. */
static int compare_dirs(struct reading *r, const struct walk_at *at, enum lower *lower)
{
	int hides = *lower == LOWER_DIR ? hides_lower(at) : 1;
	if (hides < 0)
		return errno;
	if (hides > 0)
		return note_hiding(r, at->path);
	*lower = LOWER_NONE;
	return 0;
}

static int meet(void *arg, const struct walk_at *at)
{
	struct reading *r = arg;
	struct stat st;
	int error = is_whiteout(at->st) ? 0 : tree_add(r->after, at->path, at->st);
	if (error != 0 || is_hidden(r, at->path))
		return error;
	enum lower lower = look_below(r, at->path, &st);
	if (lower == LOWER_ERROR)
		return errno;
	if (S_ISDIR(at->st->st_mode))
		error = compare_dirs(r, at, &lower);
	return error != 0 ? error : take_lower(r, at->path, lower, &st);
}

static int closed(void *arg, int error)
{
	(void)arg;
	return error;
}

bool tree_read_overlay(const char *lower, const char *upper, struct tree *before, struct tree *after)
{
	struct reading r = {.before = before, .after = after};
	const struct walk walk = {.before = meet, .closed = closed, .arg = &r};
	*before = *after = (struct tree){0};
	if (!tree_begin(before, lower) || !tree_begin(after, upper))
		return false;
	return tree_end(after, walk_tree(upper, &walk)) && tree_end(before, 0);
}
