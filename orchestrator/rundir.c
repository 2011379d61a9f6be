/* Making and removing the directory of a run. */
#include "orchestrator/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/walk.h"

static bool make(char out[RUNDIR_PATH], const char *top, const char *name, mode_t mode)
{
	return snprintf(out, RUNDIR_PATH, "%s/%s", top, name) < RUNDIR_PATH && mkdir(out, 0700) == 0 &&
	       chmod(out, mode) == 0;
}

/* In /tmp, whatever TMPDIR says: the room has one of its own there, where the kit can be shown under the same name. */
bool rundir_make(struct rundir *d)
{
	char top[RUNDIR_PATH] = "/tmp/cage-run.XXXXXX";
	*d = (struct rundir){.top = ""};
	if (mkdtemp(top)) {
		memcpy(d->top, top, sizeof(top));
		if (chmod(top, 0711) == 0 && make(d->hidden, top, "private", 0700) && make(d->kit, top, "kit", 0755) &&
		    make(d->view, top, "view", 0700))
			return true;
	}
	say("can't make %s: %s", top, strerror(errno));
	return false;
}

bool rundir_make_home(struct rundir *d, uid_t owner)
{
	return make(d->home, d->top, "home", 0700) && chown(d->home, owner, (gid_t)owner) == 0;
}

/* For root nothing has to be. */
static void open_up(int dir, const char *name, const struct stat *st)
{
	const mode_t needed = S_ISDIR(st->st_mode) ? 0700 : 0400;
	if (geteuid() == 0 || !(S_ISDIR(st->st_mode) || S_ISREG(st->st_mode)) || (st->st_mode & needed) == needed)
		return;
	if (fchmodat(dir, name, (st->st_mode & 0777) | needed, AT_SYMLINK_NOFOLLOW) != 0)
		return; /* it stays as it is */
}

/* What can't be removed stays, and its directories with it. */
static void remove_one(int dir, const char *name, const struct stat *st)
{
	unlinkat(dir, name, S_ISDIR(st->st_mode) ? AT_REMOVEDIR : 0);
}

static void open_up_top(const char *path)
{
	struct stat st;
	if (lstat(path, &st) == 0)
		open_up(AT_FDCWD, path, &st);
}

void tree_open_up(const char *path)
{
	static const struct walk opening = {.before = open_up};
	open_up_top(path);
	if (geteuid() != 0)
		walk_tree(path, &opening);
}

void tree_remove(const char *path)
{
	static const struct walk removing = {.before = open_up, .after = remove_one};
	open_up_top(path);
	walk_tree(path, &removing);
	if (rmdir(path) != 0 && errno == ENOTDIR)
		unlink(path);
}

void rundir_remove(struct rundir *d)
{
	if (d->top[0])
		tree_remove(d->top);
	*d = (struct rundir){0};
}
