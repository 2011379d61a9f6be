/* Written whole or not at all. */
#include "orchestrator/gate/write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int write_text(const char *path, const char *text)
{
	const size_t len = strlen(text);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t n = write(fd, text, len);
	int error = n < 0 ? errno : EIO;
	close(fd);
	errno = error;
	return n == (ssize_t)len ? 0 : -1;
}
