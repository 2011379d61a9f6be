/* In a file of its own, since programs that are linked with nothing else need it too. */
#include "core/base/standard_fds.h"

#include <fcntl.h>
#include <unistd.h>

/* The lowest one that is free is what open() gives. */
int standard_fds_open(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return -1;
	return 0;
}
