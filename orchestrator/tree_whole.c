/* Walks that change what they meet. */
#include "orchestrator/tree_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/walk.h"

static void open_one(int dir, const char *name, const struct stat *st)
{
	const mode_t needed = S_ISDIR(st->st_mode) ? 0700 : 0400;
	if (!(S_ISDIR(st->st_mode) || S_ISREG(st->st_mode)) || (st->st_mode & needed) == needed)
		return;
	(void)!fchmodat(dir, name, (st->st_mode & 0777) | needed, AT_SYMLINK_NOFOLLOW); /* or it stays as it is */
}

static int open_up(void *arg, const struct walk_at *at)
{
	(void)arg;
	open_one(at->dir, at->name, at->st);
	return 0;
}

static void open_top(const char *path)
{
	struct stat st;
	if (lstat(path, &st) == 0)
		open_one(AT_FDCWD, path, &st);
}

/* What it does not reach can't be read later, and that is said then. */
void tree_open_up(const char *path)
{
	static const struct walk opening = {.before = open_up};
	open_top(path);
	(void)walk_tree(path, &opening);
}

static int give(void *arg, const struct walk_at *at)
{
	const struct owner *owner = arg;
	return fchownat(at->dir, at->name, owner->uid, owner->gid, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

bool tree_give(const char *path, const struct owner *owner)
{
	struct owner to = *owner;
	const struct walk giving = {.before = give, .arg = &to};
	int error = walk_tree(path, &giving);
	if (error == 0 && lchown(path, to.uid, to.gid) == 0)
		return true;
	errno = error != 0 ? error : errno;
	return false;
}

/* Its directories stay with it. */
static int remove_one(void *arg, const struct walk_at *at)
{
	(void)arg;
	unlinkat(at->dir, at->name, S_ISDIR(at->st->st_mode) ? AT_REMOVEDIR : 0);
	return 0;
}

void tree_remove(const char *path)
{
	static const struct walk removing = {.before = open_up, .after = remove_one};
	open_top(path);
	int error = walk_tree(path, &removing);
	if (rmdir(path) == 0 || errno == ENOENT || (errno == ENOTDIR && unlink(path) == 0))
		return;
	say("%s could not be removed whole: %s", path, strerror(error != 0 ? error : errno));
}
