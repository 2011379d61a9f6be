/* Reading what was changed from the upper directory of an overlay, where the kernel has written it: a device 0/0 stands for
 * what was deleted, and a directory that hides the lower one of its name has an attribute that says so. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/tree.h"

#define OPEN_DIRS 32

/* One walk; nftw() has no argument for its function. */
static struct {
	struct tree *before, *after;
	char hiding[LIMIT_WORKSPACE_PATH]; /* the directory of the walk that hides the lower one, ... */
	size_t n_hiding;                   /* ... and its length; 0: none */
} now;

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static bool hides_lower(const char *path)
{
	char value[2];
	return lgetxattr(path, "user.overlay.opaque", value, sizeof(value)) > 0 && value[0] == 'y';
}

/* Is it below a directory of which nothing lower is to be seen? That was taken in whole already. */
static bool is_hidden(const char *path)
{
	return now.n_hiding > 0 && strncmp(path, now.hiding, now.n_hiding) == 0 && path[now.n_hiding] == '/';
}

static int take_lower(const char *path)
{
	struct stat st;
	char lower[2 * LIMIT_WORKSPACE_PATH];
	snprintf(lower, sizeof(lower), "%s/%s", now.before->root, path);
	if (lstat(lower, &st) != 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : errno;
	return S_ISDIR(st.st_mode) ? tree_walk(now.before, path) : tree_add(now.before, path, &st);
}

/* The same name of both is a directory of both: only what is in it counts, and is met later. */
static bool is_merged(const char *path, const char *upper)
{
	struct stat st;
	char lower[2 * LIMIT_WORKSPACE_PATH];
	snprintf(lower, sizeof(lower), "%s/%s", now.before->root, path);
	return !hides_lower(upper) && lstat(lower, &st) == 0 && S_ISDIR(st.st_mode);
}

static int meet(const char *upper, const struct stat *st, int type, struct FTW *walk)
{
	if (type == FTW_DNR || type == FTW_NS)
		return EACCES;
	if (walk->level == 0)
		return 0;
	const char *path = upper + strlen(now.after->root) + 1;
	int error = is_whiteout(st) ? 0 : tree_add(now.after, path, st);
	if (error != 0 || is_hidden(path) || (type == FTW_D && is_merged(path, upper)))
		return error;
	if (type == FTW_D) {
		int n = snprintf(now.hiding, sizeof(now.hiding), "%s", path);
		if (n >= (int)sizeof(now.hiding))
			return ENAMETOOLONG;
		now.n_hiding = (size_t)n;
	}
	return take_lower(path);
}

bool tree_read_overlay(const char *lower, const char *upper, struct tree *before, struct tree *after)
{
	*before = *after = (struct tree){0};
	if (!tree_begin(before, lower) || !tree_begin(after, upper))
		return false;
	now.before = before;
	now.after = after;
	now.n_hiding = 0;
	int error = nftw(upper, meet, OPEN_DIRS, FTW_PHYS);
	error = error < 0 ? errno : error;
	return tree_end(after, error) && tree_end(before, 0);
}
