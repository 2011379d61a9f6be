/* A socket that never waits. */
#include "orchestrator/inside/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/limits.h"

static bool dial(int fd, uint16_t port)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	return connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 || errno == EINPROGRESS;
}

int link_open(struct link *l, uint16_t port)
{
	*l = (struct link){.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
	l->held = l->fd >= 0 ? malloc(LIMIT_INSIDE_WINDOW) : NULL;
	if (l->held && dial(l->fd, port))
		return 0;
	int why = errno;
	link_close(l);
	errno = why;
	return -1;
}

void link_close(struct link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	free(l->held);
	*l = (struct link){.fd = -1};
}

short link_events(const struct link *l, bool can_send)
{
	return (short)((l->n_held > 0 ? POLLOUT : 0) | (can_send && l->out == LINK_OPEN ? POLLIN : 0));
}

bool link_take(struct link *l, struct slice data)
{
	if (l->in != LINK_OPEN || data.len > LIMIT_INSIDE_WINDOW - l->n_held)
		return false;
	memcpy(l->held + l->n_held, data.ptr, data.len);
	l->n_held += data.len;
	return true;
}

static void end_if_given(struct link *l)
{
	if (l->in != LINK_ENDING || l->n_held > 0)
		return;
	shutdown(l->fd, SHUT_WR);
	l->in = LINK_ENDED;
}

void link_end(struct link *l)
{
	if (l->in == LINK_OPEN)
		l->in = LINK_ENDING;
	end_if_given(l);
}

ssize_t link_give(struct link *l)
{
	ssize_t n = l->n_held > 0 ? send(l->fd, l->held, l->n_held, MSG_NOSIGNAL) : 0;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	memmove(l->held, l->held + n, l->n_held - (size_t)n);
	l->n_held -= (size_t)n;
	end_if_given(l);
	return n;
}

ssize_t link_read(struct link *l, char *to, size_t room)
{
	ssize_t n = read(l->fd, to, room);
	if (n == 0)
		l->out = LINK_ENDED;
	return n;
}
