/* Only the directory that is looked at is open. On the way down its directories are remembered by name, and which one it
 * was; the way up is "..", which counts if it leads to that one. */
#include "orchestrator/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/limits.h"

#define OPEN_AS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A directory on the way down. */
struct level {
	dev_t dev;
	ino_t ino;
	char *names; /* of directories in it, one behind the other with their zeros */
	size_t len, room;
	size_t at;       /* of the one that we are in, or that comes next */
	size_t path_len; /* of its own path */
};

struct trail {
	const struct walk *walk;
	struct level *levels;
	size_t n, room;
	size_t remembered; /* bytes of names */
	char *path;        /* of what was met last */
	size_t path_room;
};

static struct level *here(const struct trail *t)
{
	return &t->levels[t->n - 1];
}

/* ---- what is met ---- */

static int set_path(struct trail *t, size_t from, const char *name)
{
	const size_t len = strlen(name), slash = from > 0;
	if (from + slash + len + 1 > t->path_room) {
		const size_t room = 2 * t->path_room + len + 2;
		char *path = realloc(t->path, room);
		if (!path)
			return ENOMEM;
		t->path = path;
		t->path_room = room;
	}
	if (slash)
		t->path[from] = '/';
	memcpy(t->path + from + slash, name, len + 1);
	return 0;
}

static int tell(struct trail *t, int (*told)(void *, const struct walk_at *), int dir, const char *name,
		const struct stat *st)
{
	int error = told ? set_path(t, here(t)->path_len, name) : 0;
	const struct walk_at at = {dir, name, t->path, st};
	return error != 0 || !told ? error : told(t->walk->arg, &at);
}

static int remember(struct trail *t, const char *name)
{
	struct level *l = here(t);
	const size_t len = strlen(name) + 1;
	if (t->remembered + len + t->n * sizeof(*l) > LIMIT_WALK)
		return E2BIG;
	if (l->len + len > l->room) {
		const size_t room = 2 * l->room + len;
		char *names = realloc(l->names, room);
		if (!names)
			return ENOMEM;
		l->names = names;
		l->room = room;
	}
	memcpy(l->names + l->len, name, len);
	l->len += len;
	t->remembered += len;
	return 0;
}

static int tell_closed(const struct trail *t, int error)
{
	return t->walk->closed ? t->walk->closed(t->walk->arg, error) : 0;
}

/* What is gone meanwhile is not met. */
static int meet(struct trail *t, int dir, const char *name)
{
	struct stat st;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : tell_closed(t, errno);
	if (S_ISDIR(st.st_mode))
		return remember(t, name);
	int error = tell(t, t->walk->before, dir, name, &st);
	return error > 0 ? error : tell(t, t->walk->after, dir, name, &st);
}

static int meet_all(struct trail *t, int dir, DIR *entries)
{
	int error = 0;
	while (error == 0) {
		errno = 0;
		const struct dirent *e = readdir(entries);
		if (!e)
			return errno; /* none at its end */
		error = meet(t, dir, e->d_name);
	}
	return error;
}

/* All that lies directly in it. */
static int list(struct trail *t, int dir)
{
	int copy = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	DIR *entries = copy < 0 ? NULL : fdopendir(copy);
	int error = entries ? meet_all(t, dir, entries) : errno;
	if (entries)
		closedir(entries);
	else if (copy >= 0)
		close(copy);
	return error;
}

/* ---- ways ---- */

static bool is_that(int dir, const struct level *l)
{
	struct stat st;
	return fstat(dir, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino;
}

static int push(struct trail *t, int dir, const struct stat *st, size_t path_len)
{
	if (t->n == t->room) {
		const size_t room = 2 * t->room + 16;
		struct level *levels = realloc(t->levels, room * sizeof(*levels));
		if (!levels)
			return ENOMEM;
		t->levels = levels;
		t->room = room;
	}
	t->levels[t->n++] = (struct level){.dev = st->st_dev, .ino = st->st_ino, .path_len = path_len};
	return list(t, dir);
}

static void pop(struct trail *t)
{
	t->remembered -= here(t)->len;
	free(here(t)->names);
	t->n--;
}

/* It is behind us. */
static int leave(struct trail *t, int dir)
{
	struct level *l = here(t);
	const char *name = l->names + l->at;
	struct stat st;
	l->at += strlen(name) + 1;
	if (!t->walk->after || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return 0;
	return tell(t, t->walk->after, dir, name, &st);
}

/* One that can be read and not entered shows names, and nothing of what they are; not even the way back. -1 with errno. */
static int enter(int dir, const char *name, struct stat *st)
{
	int fd = openat(dir, name, OPEN_AS);
	if (fd < 0 || fstatat(fd, ".", st, 0) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* The next of the directories in dir; -1: it is passed over, or the walk ends. */
static int open_next(struct trail *t, int dir, struct stat *st, int *error)
{
	const char *name = here(t)->names + here(t)->at;
	*error = fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) == 0 ? tell(t, t->walk->before, dir, name, st) : WALK_PASS;
	if (*error == WALK_PASS || (*error == 0 && !S_ISDIR(st->st_mode))) {
		*error = 0;
		return -1;
	}
	int fd = *error == 0 ? enter(dir, name, st) : -1;
	if (fd < 0 && *error == 0)
		*error = tell_closed(t, errno);
	if (fd < 0 || t->walk->mounts == WALK_CROSS || st->st_dev == t->levels[0].dev)
		return fd;
	close(fd);
	return -1;
}

/* In which dir is closed. */
static int go_up(struct trail *t, int dir, int *error)
{
	pop(t);
	int above = t->n > 0 ? openat(dir, "..", OPEN_AS) : -1;
	close(dir);
	if (t->n == 0)
		return -1;
	*error = above >= 0 && is_that(above, here(t)) ? leave(t, above) : ESTALE;
	return above;
}

/* One step down, or up. Returns the directory that is looked at then; -1 at the end. */
static int step(struct trail *t, int dir, int *error)
{
	if (here(t)->at == here(t)->len)
		return go_up(t, dir, error);
	struct stat st;
	int next = open_next(t, dir, &st, error);
	if (next < 0) {
		if (*error == 0)
			*error = leave(t, dir);
		return dir;
	}
	const char *name = here(t)->names + here(t)->at;
	*error = set_path(t, here(t)->path_len, name);
	if (*error == 0)
		*error = push(t, next, &st, strlen(t->path));
	close(dir);
	return next;
}

int walk_tree(const char *top, const struct walk *walk)
{
	struct trail t = {.walk = walk};
	const char *prefix = walk->prefix ? walk->prefix : "";
	struct stat st;
	int dir = enter(AT_FDCWD, top, &st);
	int error = dir < 0 ? errno : set_path(&t, 0, prefix);
	if (error == 0)
		error = push(&t, dir, &st, strlen(prefix));
	while (error == 0 && dir >= 0)
		dir = step(&t, dir, &error);
	if (dir >= 0)
		close(dir);
	while (t.n > 0)
		pop(&t);
	free(t.levels);
	free(t.path);
	return error;
}
