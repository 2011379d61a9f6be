/* What an image has in the agent's home and workspace is copied there when its container is made, and belongs to the image's user:
 * it is made the agent's before anything of it runs. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/pod/pod.h"
#include "orchestrator/walk.h"

struct of_agent {
	uid_t uid;
	dev_t dev; /* of what is made the agent's */
};

/* What is mounted there is this machine's. */
static int own(void *arg, const struct walk_at *at)
{
	const struct of_agent *o = arg;
	if (at->st->st_dev != o->dev)
		return S_ISDIR(at->st->st_mode) ? WALK_PASS : 0;
	return fchownat(at->dir, at->name, o->uid, o->uid, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

/* As the container sees it. -1: it has none of its own in memory, and errno is ENOENT; or it is a link, and errno is ELOOP, since what
 * was copied then is of another place, such as /sys, and was read with all rights; or it can't be known. */
static int open_in(int root, const char *path)
{
	const struct open_how how = {.flags = O_DIRECTORY | O_CLOEXEC,
				     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
	struct statfs fs;
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC)
		return fd;
	if (fd < 0)
		return -1;
	close(fd);
	errno = ENOENT;
	return -1;
}

static const char *why(int error)
{
	return error == ELOOP ? "it is a symbolic link, or below one; make it a directory there" : strerror(error);
}

static bool own_tree(const struct pod *p, int root, const char *path)
{
	char top[64];
	struct stat st;
	int fd = open_in(root, path);
	int error = fd >= 0 || errno == ENOENT ? 0 : errno;
	if (fd >= 0 && fstat(fd, &st) != 0)
		error = errno;
	snprintf(top, sizeof(top), "/proc/self/fd/%d/.", fd);
	if (fd >= 0 && error == 0) {
		struct of_agent to = {.uid = pod_uid(p, ROLE_AGENT), .dev = st.st_dev};
		const struct walk w = {.before = own, .arg = &to};
		error = walk_tree(top, &w);
	}
	if (fd >= 0)
		close(fd);
	if (error != 0)
		say("%s of the image can't be made the agent's: %s", path, why(error));
	return error == 0;
}

/* Whatever is asked for, runc gives it the mode that it has in the image. */
static bool open_tmp(int root)
{
	int fd = open_in(root, "/tmp");
	const bool ok = fd >= 0 ? fchmod(fd, 01777) == 0 : errno == ENOENT;
	if (!ok)
		say("/tmp of the image can't be opened to the agent: %s", why(errno));
	if (fd >= 0)
		close(fd);
	return ok;
}

bool home_own(const struct pod *p, pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const bool ok = root >= 0 && own_tree(p, root, POD_HOME) && own_tree(p, root, POD_WORKSPACE) && open_tmp(root);
	if (root < 0)
		say("%s: %s", path, strerror(errno));
	else
		close(root);
	return ok;
}
