/* Making and removing the directory of a run. */
#include "orchestrator/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"

#define OPEN_DIRS 16

static bool make(char out[RUNDIR_PATH], const char *top, const char *name, mode_t mode)
{
	return snprintf(out, RUNDIR_PATH, "%s/%s", top, name) < RUNDIR_PATH && mkdir(out, 0700) == 0 &&
	       chmod(out, mode) == 0;
}

/* In /tmp, whatever TMPDIR says: the room has one of its own there, where the kit can be shown under the same name. */
bool rundir_make(struct rundir *d)
{
	*d = (struct rundir){.top = "/tmp/cage-run.XXXXXX"};
	if (mkdtemp(d->top) && chmod(d->top, 0711) == 0 && make(d->hidden, d->top, "private", 0700) &&
	    make(d->kit, d->top, "kit", 0755))
		return true;
	say("can't make %s: %s", d->top, strerror(errno));
	return false;
}

bool rundir_make_home(struct rundir *d, uid_t owner)
{
	return make(d->home, d->top, "home", 0700) && chown(d->home, owner, (gid_t)owner) == 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	remove(path); /* what can't be removed stays, and its directories with it */
	return 0;
}

static void open_up(int dir);

static void open_up_entry(int dir, const char *name)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	const mode_t needed = S_ISDIR(st.st_mode) ? 0700 : 0400;
	if ((S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) && (st.st_mode & needed) != needed &&
	    fchmodat(dir, name, (st.st_mode & 0777) | needed, 0) != 0)
		return; /* it stays as it is */
	if (S_ISDIR(st.st_mode))
		open_up(openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/* As deep as there are descriptors. Takes dir. */
static void open_up(int dir)
{
	DIR *list = dir < 0 ? NULL : fdopendir(dir);
	if (!list) {
		if (dir >= 0)
			close(dir);
		return;
	}
	for (struct dirent *e = readdir(list); e; e = readdir(list))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			open_up_entry(dir, e->d_name);
	closedir(list);
}

void tree_open_up(const char *path)
{
	if (geteuid() != 0)
		open_up(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void tree_remove(const char *path)
{
	tree_open_up(path);
	nftw(path, remove_one, OPEN_DIRS, FTW_PHYS | FTW_DEPTH);
}

void rundir_remove(struct rundir *d)
{
	if (d->top[0] && strstr(d->top, "XXXXXX") == NULL)
		tree_remove(d->top);
	*d = (struct rundir){0};
}
