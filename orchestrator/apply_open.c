/* What a patch says of itself. It may be old, moved or edited, and is believed only where it is ours alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/slice.h"
#include "orchestrator/apply_private.h"

/* Reads all of a file of the patch. -1: it can't be read, or is too long; errno says why. */
static ssize_t read_file(const struct patch *p, const char *name, char *out, size_t room)
{
	char path[LIMIT_WORKSPACE_PATH + 16];
	struct stat st;
	size_t len = 0;
	ssize_t n = -1;
	snprintf(path, sizeof(path), "%s/%s", p->top, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -1;
	errno = EINVAL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		while ((n = read(fd, out + len, room - len)) > 0)
			len += (size_t)n;
	int error = len == room ? EFBIG : errno;
	close(fd);
	errno = error;
	return n == 0 && len < room ? (ssize_t)len : -1;
}

/* ---- the workspace ---- */

/* Who could write to it would choose what we change, and where. */
static bool is_ours(const char *top)
{
	struct stat st;
	return lstat(top, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_uid == geteuid() || st.st_uid == 0) &&
	       (st.st_mode & 077) == 0;
}

/* It had its real name, so that no part of it was a link. */
static int open_plainly(const char *path)
{
	int dir = path[0] == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	struct slice rest = slice_from(slice_str(path), 1);
	char name[256];
	while (dir >= 0 && rest.len > 0) {
		struct slice part = slice_cut(&rest, '/');
		bool fits = snprintf(name, sizeof(name), "%.*s", SLICE_FMT(part)) < (int)sizeof(name);
		int next = fits && strcmp(name, "..") != 0
				   ? openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
				   : -1;
		close(dir);
		dir = next;
	}
	return dir;
}

static bool find_workspace(struct patch *p)
{
	char dir[LIMIT_WORKSPACE_PATH];
	struct stat st;
	ssize_t n = read_file(p, "workspace", dir, sizeof(dir) - 1);
	if (n <= 0 || memchr(dir, '\0', (size_t)n))
		return false;
	dir[n] = '\0';
	path_shown(dir, p->shown);
	p->dir = open_plainly(dir);
	if (p->dir < 0 || fstat(p->dir, &st) != 0)
		return false;
	p->owner = (struct owner){st.st_uid, st.st_gid};
	return true;
}

static bool read_own(struct patch *p)
{
	ssize_t n = read_file(p, "policy", p->own, sizeof(p->own) - 1);
	if (n < 0 && errno != ENOENT)
		return false;
	if (n < 0)
		n = 0;
	p->own[n] = p->own[n + 1 < (ssize_t)sizeof(p->own) ? n + 1 : n] = '\0';
	return true;
}

/* ---- both ---- */

bool patch_open(struct patch *p, const char *path)
{
	char *top = realpath(path, NULL), room[LIMIT_SHOWN_PATH];
	const bool is_absent = !top && errno == ENOENT;
	*p = (struct patch){.dir = -1, .back = -1, .old_fd = -1, .new_fd = -1, .lent_fds = {-1, -1}};
	bool fits = top && snprintf(p->top, sizeof(p->top), "%s", top) < (int)sizeof(p->top);
	free(top);
	snprintf(p->base, sizeof(p->base), "%s/base", p->top);
	snprintf(p->files, sizeof(p->files), "%s/files", p->top);
	if (is_absent) {
		say("%s: there is no such patch; cage run says where it keeps them", path_shown(path, room));
		return false;
	}
	if (!fits || !find_workspace(p) || !read_own(p)) {
		say("%s is no patch of cage run, or its workspace is gone", path_shown(path, room));
		return false;
	}
	if (!is_ours(p->top)) {
		say("%s is not for you alone: it belongs to others, or is open to them", path_shown(path, room));
		return false;
	}
	p->back = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return p->back >= 0 && fchdir(p->dir) == 0 ? true : patch_failed(p->shown);
}

void patch_close(struct patch *p)
{
	if (p->back >= 0 && fchdir(p->back) != 0)
		say("%s", strerror(errno));
	if (p->back >= 0)
		close(p->back);
	if (p->dir >= 0)
		close(p->dir);
	words_free(&p->found.names);
	tree_free(&p->before);
	tree_free(&p->after);
}

/* Only one that is not there says that there are none. */
bool patch_read_conflicts(struct patch *p)
{
	char path[LIMIT_WORKSPACE_PATH + 16], room[LIMIT_SHOWN_PATH], *line = NULL;
	size_t size = 0;
	snprintf(path, sizeof(path), "%s/conflicts", p->top);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		if (fd >= 0)
			close(fd);
		return fd < 0 && errno == ENOENT ? true : patch_failed(path);
	}
	while (getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (p->conflicts++ < LIMIT_LISTED)
			say("%s", line_shown(line, room));
	}
	bool ok = !ferror(f) || patch_failed(path);
	free(line);
	fclose(f);
	return ok;
}
