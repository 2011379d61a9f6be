/* openat2 for each step. */
#include "orchestrator/inside/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRIES 8 /* it may be changed by others while a path is looked up: then the kernel gives up */

static int open_beneath(int root, const char *path, uint64_t flags, mode_t mode)
{
	const uint64_t never_wait = flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY; /* a pipe, a terminal */
	struct open_how how = {.flags = flags | O_CLOEXEC | never_wait,
			       .mode = mode,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	long fd = -1;
	for (int i = 0; i < TRIES && fd < 0; i++) {
		fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (fd < 0 && errno != EAGAIN)
			break;
	}
	return (int)fd;
}

int beneath_open_dir(int root, const char *path)
{
	return open_beneath(root, path, O_RDONLY | O_DIRECTORY, 0);
}

int beneath_open_file(int root, const char *path)
{
	struct stat st;
	int fd = open_beneath(root, path, O_RDONLY, 0);
	if (fd < 0)
		return -1;
	bool is_known = fstat(fd, &st) == 0;
	if (is_known && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	errno = is_known && S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	return -1;
}

/* A directory of that name in dir, made if it is not there. */
static int step(int dir, const char *name)
{
	if (mkdirat(dir, name, 0755) != 0 && errno != EEXIST)
		return -1;
	return open_beneath(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* The directory that path lies in; its last word goes to out->name. A link on the way is not followed. */
static int open_parent(int root, const char *path, struct beneath_file *out)
{
	int dir = open_beneath(root, ".", O_PATH | O_DIRECTORY, 0);
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
	out->fd = open_beneath(out->dir, out->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
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
