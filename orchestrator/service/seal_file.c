/* NAME.sealed in the directory of secrets. */
#include "orchestrator/service/seal_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/write_all.h"

#define SUFFIX ".sealed"
#define FILE_NAME (LIMIT_SANDBOX + sizeof(SUFFIX)) /* names have the bounds of ids */

static const struct slice suffix = WORD(SUFFIX);

/* -1 with errno. */
static int open_dir(const char *state_dir)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/" SEAL_DIR, state_dir) < (int)sizeof(path))
		return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	errno = ENAMETOOLONG;
	return -1;
}

static int make_dir(const char *state_dir)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/" SEAL_DIR, state_dir) < (int)sizeof(path) && mkdir(path, 0700) != 0 &&
	    errno != EEXIST)
		return -1;
	return open_dir(state_dir);
}

static enum seal_result failed(const char *name, int dir)
{
	int error = errno;
	if (dir >= 0)
		close(dir);
	if (error == ENOENT)
		return SEAL_NONE;
	say("the secret %s: %s", name, strerror(error));
	return SEAL_FAILED;
}

/* It has a name of its own until it is whole: there may be several of us. */
static bool write_part(int dir, const char *part, struct slice sealed)
{
	int fd = openat(dir, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	bool ok = write_all(fd, sealed.ptr, sealed.len) && fsync(fd) == 0;
	int error = errno;
	close(fd);
	errno = error;
	return ok;
}

bool seal_file_write(const char *state_dir, const char *name, struct slice sealed)
{
	char file[FILE_NAME], part[32];
	int dir = make_dir(state_dir);
	snprintf(file, sizeof(file), "%s" SUFFIX, name);
	snprintf(part, sizeof(part), "part.%d", (int)getpid());
	bool ok = dir >= 0 && write_part(dir, part, sealed) && renameat(dir, part, dir, file) == 0 && fsync(dir) == 0;
	if (!ok) {
		say("the secret %s can't be written: %s", name, strerror(errno));
		if (dir >= 0)
			unlinkat(dir, part, 0);
	}
	if (dir >= 0)
		close(dir);
	return ok;
}

static bool read_whole(int fd, char *out, size_t room, size_t *len)
{
	char more;
	*len = 0;
	while (*len < room) {
		ssize_t n = read(fd, out + *len, room - *len);
		if (n <= 0)
			return n == 0;
		*len += (size_t)n;
	}
	errno = EFBIG;
	return read(fd, &more, 1) == 0;
}

enum seal_result seal_file_read(const char *state_dir, const char *name, char *out, size_t room, size_t *len)
{
	char file[FILE_NAME];
	int dir = open_dir(state_dir);
	snprintf(file, sizeof(file), "%s" SUFFIX, name);
	int fd = dir >= 0 ? openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (fd < 0)
		return failed(name, dir);
	close(dir);
	if (!read_whole(fd, out, room, len))
		return failed(name, fd);
	close(fd);
	return SEAL_FOUND;
}

enum seal_result seal_file_remove(const char *state_dir, const char *name)
{
	char file[FILE_NAME];
	int dir = open_dir(state_dir);
	snprintf(file, sizeof(file), "%s" SUFFIX, name);
	if (dir < 0 || unlinkat(dir, file, 0) != 0 || fsync(dir) != 0)
		return failed(name, dir);
	close(dir);
	return SEAL_FOUND;
}

static int is_sealed(const struct dirent *e)
{
	struct slice name = slice_str(e->d_name);
	return slice_ends(name, suffix) && seal_name_is_good(slice_head(name, name.len - suffix.len));
}

/* In the order of bytes: the locale has no say. */
static int in_order(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void tell(int dir, const char *file, void (*each)(void *arg, const char *name, int64_t changed_s), void *arg)
{
	struct stat st;
	char name[FILE_NAME];
	if (fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return; /* it was just removed */
	snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - suffix.len), file);
	each(arg, name, st.st_mtim.tv_sec);
}

bool seal_list(const char *state_dir, void (*each)(void *arg, const char *name, int64_t changed_s), void *arg)
{
	struct dirent **found = NULL;
	int dir = open_dir(state_dir);
	int n = dir < 0 ? -1 : scandirat(dir, ".", &found, is_sealed, in_order);
	if (n < 0)
		return failed(SEAL_DIR, dir) == SEAL_NONE; /* there is none yet */
	for (int i = 0; i < n; i++) {
		tell(dir, found[i]->d_name, each, arg);
		free(found[i]);
	}
	free(found);
	close(dir);
	return true;
}
