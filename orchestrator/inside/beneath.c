/* Each name is looked up by itself: the call that could do it in one step is refused in a room (filter.c of the gate). */
#include "orchestrator/inside/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/limits.h"

#define NEVER_WAIT (O_NONBLOCK | O_NOCTTY) /* a pipe, a terminal */

/* A way from the root, name by name. The directories that it went through are kept open, so that ".." is where it came
 * from. */
struct way {
	int dirs[LIMIT_INSIDE_DEPTH];
	size_t n;
	char rest[2 * PATH_MAX]; /* what is still to go */
	int links, most_links;
};

static int fail(int error)
{
	errno = error;
	return -1;
}

static void way_end(struct way *w)
{
	int why = errno;
	while (w->n > 0)
		close(w->dirs[--w->n]);
	errno = why;
}

static int way_enter(struct way *w, int fd)
{
	if (fd < 0)
		return -1;
	if (w->n == LIMIT_INSIDE_DEPTH) {
		close(fd);
		return fail(ENAMETOOLONG);
	}
	w->dirs[w->n++] = fd;
	return 0;
}

static int way_begin(struct way *w, int root, const char *path)
{
	w->n = 0;
	w->links = 0;
	if (!path[0])
		return fail(ENOENT);
	if (snprintf(w->rest, sizeof(w->rest), "%s", path) >= PATH_MAX)
		return fail(ENAMETOOLONG);
	return path[0] == '/' ? fail(EXDEV) : way_enter(w, openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

static int way_go_up(struct way *w)
{
	if (w->n == 1)
		return fail(EXDEV);
	close(w->dirs[--w->n]);
	return 0;
}

/* What a link says comes before the rest. */
static int way_follow(struct way *w, const char *name)
{
	char target[PATH_MAX], all[sizeof(w->rest)];
	ssize_t n = readlinkat(w->dirs[w->n - 1], name, target, sizeof(target) - 1);
	if (n < 0)
		return -1;
	target[n] = '\0';
	if (++w->links > w->most_links)
		return fail(ELOOP);
	if (target[0] == '/')
		return fail(EXDEV);
	if (snprintf(all, sizeof(all), "%s%s", target, w->rest) >= (int)sizeof(all))
		return fail(ENAMETOOLONG);
	memcpy(w->rest, all, strlen(all) + 1);
	return 0;
}

/* Takes the next name off the rest; an empty one: that was all. */
static int way_next(struct way *w, char out[NAME_MAX + 1])
{
	size_t skip = strspn(w->rest, "/"), len = strcspn(w->rest + skip, "/"), end = skip + len;
	if (len > NAME_MAX)
		return fail(ENAMETOOLONG);
	memcpy(out, w->rest + skip, len);
	out[len] = '\0';
	memmove(w->rest, w->rest + end, strlen(w->rest + end) + 1);
	return 0;
}

/* One name on; what is no directory is left to who opens it. */
static int way_step(struct way *w, const char *name)
{
	struct stat st;
	if (strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0)
		return way_go_up(w);
	int fd = openat(w->dirs[w->n - 1], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	int looked = fstat(fd, &st), why = errno;
	if (looked == 0 && S_ISDIR(st.st_mode))
		return way_enter(w, fd);
	close(fd);
	if (looked < 0)
		return fail(why);
	if (S_ISLNK(st.st_mode))
		return way_follow(w, name);
	return w->rest[0] ? fail(ENOTDIR) : 1;
}

static int open_beneath(int root, const char *path, int flags, int most_links)
{
	struct way w = {.most_links = most_links};
	char name[NAME_MAX + 1] = ".";
	int at = way_begin(&w, root, path);
	while (at == 0 && (at = way_next(&w, name)) == 0 && name[0])
		at = way_step(&w, name);
	int fd =
		at < 0 ? -1 : openat(w.dirs[w.n - 1], at > 0 ? name : ".", flags | O_NOFOLLOW | O_CLOEXEC | NEVER_WAIT);
	way_end(&w);
	return fd;
}

int beneath_open_dir(int root, const char *path)
{
	return open_beneath(root, path, O_RDONLY | O_DIRECTORY, LIMIT_INSIDE_LINKS);
}

static int open_file(int root, const char *path, int most_links)
{
	struct stat st;
	int fd = open_beneath(root, path, O_RDONLY, most_links);
	if (fd < 0)
		return -1;
	bool is_known = fstat(fd, &st) == 0;
	if (is_known && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	errno = is_known && S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	return -1;
}

int beneath_open_file(int root, const char *path)
{
	return open_file(root, path, LIMIT_INSIDE_LINKS);
}

int beneath_open_plain(int root, const char *path)
{
	return open_file(root, path, 0);
}

static bool is_link(int dir, const char *name)
{
	struct stat st;
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* A directory of that name in dir, made if it is not there. A link leads elsewhere, wherever that is. */
static int step(int dir, const char *name)
{
	if (mkdirat(dir, name, 0755) != 0 && errno != EEXIST)
		return -1;
	int next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), why = errno;
	if (next < 0)
		errno = why == ENOTDIR && is_link(dir, name) ? EXDEV : why;
	return next;
}

/* The directory that path lies in; its last word goes to out->name. A link on the way is not followed. */
static int open_parent(int root, const char *path, struct beneath_file *out)
{
	int dir = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *at = path;
	while (dir >= 0) {
		size_t len = strcspn(at, "/");
		if (len == 0 || len >= sizeof(out->name)) {
			close(dir);
			errno = len == 0 ? EINVAL : ENAMETOOLONG;
			return -1;
		}
		memcpy(out->name, at, len);
		out->name[len] = '\0';
		if (strcmp(out->name, "..") == 0 || strcmp(out->name, ".") == 0) {
			close(dir);
			errno = EXDEV;
			return -1;
		}
		if (at[len] == '\0')
			return dir;
		int next = step(dir, out->name);
		close(dir);
		dir = next;
		at += len + 1;
	}
	return -1;
}

int beneath_create(int root, const char *path, struct beneath_file *out)
{
	static unsigned serial;
	*out = (struct beneath_file){.fd = -1, .dir = -1};
	out->dir = open_parent(root, path, out);
	if (out->dir < 0)
		return -1;
	snprintf(out->part, sizeof(out->part), ".cage-part.%ld.%u", (long)getpid(), serial++);
	out->fd = openat(out->dir, out->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (out->fd >= 0)
		return 0;
	beneath_drop(out);
	return -1;
}

int beneath_keep(struct beneath_file *f)
{
	int rc = renameat(f->dir, f->part, f->dir, f->name);
	int why = errno;
	if (rc == 0)
		f->part[0] = '\0';
	beneath_drop(f);
	errno = why;
	return rc;
}

void beneath_drop(struct beneath_file *f)
{
	int why = errno;
	if (f->part[0] && f->dir >= 0)
		unlinkat(f->dir, f->part, 0);
	if (f->fd >= 0)
		close(f->fd);
	if (f->dir >= 0)
		close(f->dir);
	*f = (struct beneath_file){.fd = -1, .dir = -1};
	errno = why;
}
