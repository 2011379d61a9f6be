/* Copying into the room. What it holds is limited where it goes to. */
#include "orchestrator/gate/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/gate/plan.h"

static int copy_bytes(int from, int to)
{
	enum { PIECE = 1 << 20 };
	ssize_t n;
	do {
		n = sendfile(to, from, NULL, PIECE);
	} while (n > 0);
	return (int)n;
}

static int copy_open(int from, int dir, const char *name)
{
	int to = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -1;
	int result = copy_bytes(from, to);
	int error = errno;
	close(to);
	errno = error;
	return result;
}

/* What is not a file is left out. */
static int copy_one(int source, int dir, const char *name)
{
	struct stat st;
	int from = openat(source, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (from < 0)
		return errno == ELOOP ? 0 : -1;
	int result = fstat(from, &st) == 0 && S_ISREG(st.st_mode) ? copy_open(from, dir, name) : 0;
	int error = errno;
	close(from);
	errno = error;
	return result;
}

static int copy_all(DIR *source, int dir)
{
	int result = 0;
	for (struct dirent *e = readdir(source); e && result == 0; e = readdir(source))
		result = copy_one(dirfd(source), dir, e->d_name);
	return result;
}

int copy_files(int tree, const char *path)
{
	int fd = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *source = fd < 0 ? NULL : fdopendir(fd);
	if (!source)
		return -1;
	int dir = plan_make_path(path, 1) < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = dir < 0 ? -1 : copy_all(source, dir);
	int error = errno;
	if (dir >= 0)
		close(dir);
	closedir(source);
	errno = error;
	return result;
}
