/* Only the directory that is looked at is open. On the way down its directories are remembered by name, and which one it
 * was; the way up is "..", which counts if it leads to that one. */
#include "orchestrator/walk.h"

#include <dirent.h>
#include <fcntl.h>
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
	size_t at; /* of the one that we are in, or that comes next */
};

struct trail {
	const struct walk *walk;
	struct level *levels;
	size_t n, room;
	size_t remembered; /* bytes of names */
};

static bool remember(struct trail *t, const char *name)
{
	struct level *l = &t->levels[t->n - 1];
	const size_t len = strlen(name) + 1;
	if (t->remembered + len + t->n * sizeof(*l) > LIMIT_WALK)
		return false;
	if (l->len + len > l->room) {
		const size_t room = 2 * l->room + len;
		char *names = realloc(l->names, room);
		if (!names)
			return false;
		l->names = names;
		l->room = room;
	}
	memcpy(l->names + l->len, name, len);
	l->len += len;
	t->remembered += len;
	return true;
}

static bool meet(struct trail *t, int dir, const char *name)
{
	struct stat st;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return true;
	t->walk->before(dir, name, &st);
	if (S_ISDIR(st.st_mode))
		return remember(t, name);
	if (t->walk->after)
		t->walk->after(dir, name, &st);
	return true;
}

/* All that lies directly in it. */
static bool list(struct trail *t, int dir)
{
	int copy = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	DIR *entries = copy < 0 ? NULL : fdopendir(copy);
	bool ok = entries != NULL;
	if (!entries && copy >= 0)
		close(copy);
	for (struct dirent *e = ok ? readdir(entries) : NULL; e && ok; e = readdir(entries))
		ok = meet(t, dir, e->d_name);
	if (entries)
		closedir(entries);
	return ok;
}

static bool is_that(int dir, const struct level *l)
{
	struct stat st;
	return fstat(dir, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino;
}

static bool push(struct trail *t, int dir)
{
	struct stat st;
	if (t->n == t->room) {
		const size_t room = 2 * t->room + 16;
		struct level *levels = realloc(t->levels, room * sizeof(*levels));
		if (!levels)
			return false;
		t->levels = levels;
		t->room = room;
	}
	if (fstat(dir, &st) != 0)
		return false;
	t->levels[t->n++] = (struct level){.dev = st.st_dev, .ino = st.st_ino};
	return list(t, dir);
}

static void pop(struct trail *t)
{
	struct level *l = &t->levels[--t->n];
	t->remembered -= l->len;
	free(l->names);
}

/* The next of the directories in dir, opened and of the same file system; -1 if it can't be. */
static int open_next(const struct trail *t, int dir, const char *name)
{
	int fd = openat(dir, name, OPEN_AS);
	struct stat st;
	if (fd < 0 || (fstat(fd, &st) == 0 && st.st_dev == t->levels[0].dev))
		return fd;
	close(fd);
	return -1;
}

/* It is behind us. */
static void leave(struct trail *t, int dir)
{
	struct level *l = &t->levels[t->n - 1];
	const char *name = l->names + l->at;
	struct stat st;
	if (t->walk->after && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		t->walk->after(dir, name, &st);
	l->at += strlen(name) + 1;
}

/* One step down, or up, in which dir is closed. Returns the directory that is looked at then; -1 at the end. */
static int step(struct trail *t, int dir, bool *ok)
{
	struct level *l = &t->levels[t->n - 1];
	int next;
	if (l->at < l->len) {
		next = open_next(t, dir, l->names + l->at);
		if (next < 0) {
			leave(t, dir);
			return dir;
		}
		*ok = push(t, next);
	} else {
		pop(t);
		next = t->n > 0 ? openat(dir, "..", OPEN_AS) : -1;
		*ok = t->n == 0 || (next >= 0 && is_that(next, &t->levels[t->n - 1]));
		if (*ok && next >= 0)
			leave(t, next);
	}
	close(dir);
	return next;
}

bool walk_tree(const char *path, const struct walk *walk)
{
	struct trail t = {.walk = walk};
	int dir = open(path, OPEN_AS);
	bool ok = dir >= 0 && push(&t, dir);
	while (ok && dir >= 0)
		dir = step(&t, dir, &ok);
	if (dir >= 0)
		close(dir);
	while (t.n > 0)
		pop(&t);
	free(t.levels);
	return ok;
}
