/* Copying, moving and removing below a root. Who made the names may be an agent: every step goes from one open directory to
 * the next, and none of them is a link. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/asked.h"
#include "orchestrator/holes.h"
#include "orchestrator/tree.h"

#define NAME_ROOM 4096
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) /* what has just become a pipe is not waited for */

static void close_fd(int fd)
{
	int error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
}

/* ---- ways ---- */

/* From one directory to one in it; the first is closed. */
static int step(int dir, const char *name)
{
	int next = dir < 0 ? -1 : openat(dir, name, DIR_FLAGS);
	close_fd(dir);
	return next;
}

/* The same, of a directory that is made if need be, with the mode of its model. */
static int step_making(int dir, const char *name, int model)
{
	struct stat st;
	bool made = dir >= 0 && mkdirat(dir, name, 0700) == 0;
	int next = step(dir, name);
	if (next < 0 || !made || (fstat(model, &st) == 0 && fchmod(next, (st.st_mode & 0777) | 0700) == 0))
		return next;
	close_fd(next);
	return -1;
}

/* The directories of one path below two roots. */
struct ends {
	int from, to;     /* to: -1 where there is but one root */
	const char *name; /* the last part of the path */
};

static void ends_close(struct ends *e)
{
	close_fd(e->from);
	close_fd(e->to);
	e->from = e->to = -1;
}

/* Where `to` is not NULL, the directories below it are made as they are below the other. False with errno. */
static bool ends_open(struct ends *e, const char *root, const char *to, const char *path)
{
	char name[NAME_ROOM];
	*e = (struct ends){.from = open(root, DIR_FLAGS), .to = to ? open(to, DIR_FLAGS) : -1};
	const char *slash;
	for (; (slash = strchr(path, '/')) != NULL && e->from >= 0; path = slash + 1) {
		if (snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path) >= (int)sizeof(name))
			break;
		e->from = step(e->from, name);
		if (to && e->from >= 0)
			e->to = step_making(e->to, name, e->from);
	}
	e->name = path;
	if (!slash && e->from >= 0 && (!to || e->to >= 0))
		return true;
	ends_close(e);
	return false;
}

/* ---- copies ---- */

static bool copy_piece(int from, int to, off_t at, off_t end)
{
	if (lseek(to, at, SEEK_SET) < 0)
		return false;
	while (at < end) {
		ssize_t n = sendfile(to, from, &at, (size_t)(end - at));
		if (n == 0)
			errno = EIO; /* it has become shorter */
		if (n <= 0)
			return false;
	}
	return true;
}

static bool copy_bytes(int from, int to, off_t size)
{
	if (ioctl(to, FICLONE, from) == 0)
		return true;
	int more = 1;
	for (off_t at = 0, end; at < size; at = end) {
		more = holes_skip(from, &at, &end);
		if (more <= 0 || at >= size)
			break;
		end = end < size ? end : size;
		if (!copy_piece(from, to, at, end))
			return false;
	}
	return more >= 0 && ftruncate(to, size) == 0;
}

static bool fill(int from, int to)
{
	struct stat st;
	if (from < 0 || to < 0 || fstat(from, &st) != 0)
		return false;
	struct timespec times[2] = {st.st_atim, st.st_mtim};
	return copy_bytes(from, to, st.st_size) && fchmod(to, st.st_mode & 0777) == 0 && futimens(to, times) == 0;
}

/* Written beside and renamed, so that it is there whole or not at all. Nobody has made a file of that name before. */
static bool copy_file(const struct ends *e)
{
	char tmp[32];
	uint64_t random = 0;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return false;
	snprintf(tmp, sizeof(tmp), ".cage-%016" PRIx64, random);
	int from = openat(e->from, e->name, FILE_FLAGS);
	int to = from < 0 ? -1 : openat(e->to, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok = fill(from, to);
	close_fd(from);
	close_fd(to);
	ok = ok && renameat(e->to, tmp, e->to, e->name) == 0;
	if (to >= 0 && !ok) {
		int error = errno;
		unlinkat(e->to, tmp, 0);
		errno = error;
	}
	return ok;
}

static bool copy_link(const struct ends *e)
{
	char target[NAME_ROOM];
	ssize_t n = readlinkat(e->from, e->name, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	unlinkat(e->to, e->name, 0);
	return symlinkat(target, e->to, e->name) == 0;
}

/* One that can be read and not entered is as closed as one that can't be read. */
static bool copy_dir(const struct ends *e)
{
	struct stat st;
	int model = openat(e->from, e->name, DIR_FLAGS);
	if (model >= 0 && fstatat(model, ".", &st, 0) != 0) {
		close_fd(model);
		return false;
	}
	int made = model < 0 ? -1 : step_making(fcntl(e->to, F_DUPFD_CLOEXEC, 0), e->name, model);
	close_fd(model);
	close_fd(made);
	return made >= 0;
}

static bool copy(const struct ends *e)
{
	struct stat st;
	if (fstatat(e->from, e->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	if (S_ISREG(st.st_mode))
		return copy_file(e);
	if (S_ISLNK(st.st_mode))
		return copy_link(e);
	if (S_ISDIR(st.st_mode))
		return copy_dir(e);
	return true; /* a socket or a device means nothing elsewhere */
}

bool entry_copy(const char *root, const char *to, const char *path)
{
	struct ends e;
	if (!ends_open(&e, root, to, path))
		return false;
	bool ok = copy(&e);
	ends_close(&e);
	return ok;
}

static size_t dir_length(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t)(slash - path) : 0;
}

/* Of those that are in one directory the way there is gone only once. */
static bool copy_next(const struct tree *t, size_t i, const char *to, struct ends *e)
{
	const char *path = t->list[i].path;
	const size_t len = dir_length(path);
	const bool is_near = i > 0 && len == dir_length(t->list[i - 1].path) &&
			     memcmp(path, t->list[i - 1].path, len) == 0 && e->from >= 0;
	if (!is_near) {
		ends_close(e);
		if (!ends_open(e, t->root, to, path))
			return false;
	}
	e->name = path + len + (len > 0);
	return copy(e);
}

/* Those that are marked as nothing. */
static void drop_left_out(struct tree *t)
{
	size_t kept = 0;
	for (size_t i = 0; i < t->n; i++) {
		if (t->list[i].kind == ENTRY_OTHER)
			free(t->list[i].path);
		else
			t->list[kept++] = t->list[i];
	}
	t->n = kept;
}

bool tree_copy(struct tree *t, const char *to, tree_left_out *left_out, void *arg, const char **failed)
{
	struct ends e = {.from = -1, .to = -1};
	bool ok = true;
	for (size_t i = 0; i < t->n && ok; i++) {
		*failed = t->list[i].path;
		errno = EINTR;
		ok = !is_asked_to_end() && copy_next(t, i, to, &e);
		if (ok || !left_out || errno != EACCES)
			continue;
		t->list[i].kind = ENTRY_OTHER;
		left_out(arg, *failed);
		ok = true;
	}
	int error = errno;
	ends_close(&e);
	drop_left_out(t);
	errno = error;
	return ok;
}

bool entry_save(const char *root, const char *to, const char *path)
{
	struct ends e;
	if (!ends_open(&e, root, to, path))
		return false;
	bool ok = linkat(e.from, e.name, e.to, e.name, 0) == 0 || copy(&e);
	ends_close(&e);
	return ok;
}

/* ---- moves ---- */

/* Some file systems can't refuse by themselves. */
static bool rename_to_new(const struct ends *e)
{
	struct stat st;
	if (renameat2(e->from, e->name, e->to, e->name, RENAME_NOREPLACE) == 0)
		return true;
	if (errno != EINVAL)
		return false;
	if (fstatat(e->to, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		errno = EEXIST;
	return errno == ENOENT && renameat(e->from, e->name, e->to, e->name) == 0;
}

/* A directory in the way is no more than an empty one. What is mounted in a tree is another file system. */
bool entry_move(const char *root, const char *to, const char *path, enum move_how how)
{
	struct ends e;
	if (!ends_open(&e, root, to, path))
		return false;
	unlinkat(e.to, e.name, AT_REMOVEDIR);
	bool ok = how == MOVE_OVER ? renameat(e.from, e.name, e.to, e.name) == 0 : rename_to_new(&e);
	if (!ok && errno == EXDEV)
		ok = copy(&e) && unlinkat(e.from, e.name, 0) == 0;
	ends_close(&e);
	return ok;
}

bool entry_remove(const char *root, const char *path)
{
	char dir[NAME_ROOM];
	struct ends e;
	bool ok = ends_open(&e, root, NULL, path);
	if (ok) {
		ok = unlinkat(e.from, e.name, 0) == 0 || errno == ENOENT;
		ends_close(&e);
	}
	snprintf(dir, sizeof(dir), "%s", path);
	for (char *slash; ok && (slash = strrchr(dir, '/')) != NULL;) {
		*slash = '\0';
		if (!ends_open(&e, root, NULL, dir))
			break;
		bool was_empty = unlinkat(e.from, e.name, AT_REMOVEDIR) == 0;
		ends_close(&e);
		if (!was_empty)
			break;
	}
	return ok;
}
