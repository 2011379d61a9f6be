/* Also to a descriptor that does not wait by itself. */
#include "core/base/write_all.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

bool write_all(int fd, const char *bytes, size_t n)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	while (n > 0) {
		ssize_t done = write(fd, bytes, n);
		if (done < 0 && errno == EAGAIN)
			poll(&p, 1, -1);
		else if (done < 0 && errno != EINTR)
			return false;
		if (done > 0) {
			bytes += done;
			n -= (size_t)done;
		}
	}
	return true;
}
