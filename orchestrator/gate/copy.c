/* Copying into the room. What it holds is limited where it goes to. */
#include "orchestrator/gate/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/gate/next_name.h"
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

int copy_file(int from, int dir, const char *name, mode_t mode)
{
	int to = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -1;
	int result = copy_bytes(from, to) < 0 || fchmod(to, mode) < 0 ? -1 : 0;
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
	int result = fstat(from, &st) == 0 && S_ISREG(st.st_mode) ? copy_file(from, dir, name, 0600) : 0;
	int error = errno;
	close(from);
	errno = error;
	return result;
}

static int copy_all(int from, int to)
{
	int copy = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *source = copy < 0 ? NULL : fdopendir(copy);
	if (!source) {
		int error = errno;
		if (copy >= 0)
			close(copy);
		errno = error;
		return -1;
	}
	int result = 0;
	struct dirent *e;
	while (result == 0 && (e = next_name(source)))
		result = copy_one(from, to, e->d_name);
	if (result == 0 && errno != 0)
		result = -1;
	int error = errno;
	closedir(source);
	errno = error;
	return result;
}

int copies_add(struct copies *copies, int tree, const char *path)
{
	if (copies->n == LIMIT_ROOM_FITTINGS) {
		errno = E2BIG;
		return -1;
	}
	int from = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from < 0)
		return -1;
	int to = plan_make_path(path, 1) < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to < 0) {
		int error = errno;
		close(from);
		errno = error;
		return -1;
	}
	copies->all[copies->n].from = from;
	copies->all[copies->n++].to = to;
	return 0;
}

int copies_fill(struct copies *copies)
{
	int result = 0, error = 0;
	for (size_t i = 0; i < copies->n; i++) {
		if (result == 0 && copy_all(copies->all[i].from, copies->all[i].to) < 0) {
			result = -1;
			error = errno;
		}
		close(copies->all[i].from);
		close(copies->all[i].to);
	}
	copies->n = 0;
	errno = error;
	return result;
}
