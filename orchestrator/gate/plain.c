/* openat2, which looks a name up as nobody can change it meanwhile. */
#include "orchestrator/gate/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/gate/say.h"

int plain_open(const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

int plain_say(const char *path)
{
	if (errno != ELOOP)
		return say_errno(path);
	say("%s: a part of it is a link: name what it leads to", path);
	return -1;
}

/* EAGAIN: somebody on this machine has renamed or mounted something while the kernel looked a name up that goes upwards. */
static int open_again(int dir, const char *name, const struct open_how *how)
{
	int fd = -1;
	for (int i = 0; i < LIMIT_ROOM_LOOKUPS; i++) {
		fd = (int)syscall(SYS_openat2, dir, name, how, sizeof(*how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd;
}

int plain_open_below(const char *root, const char *name)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -1;
	int fd = open_again(dir, name, &how);
	int error = errno;
	close(dir);
	errno = error;
	return fd;
}
