/* Opening of pairs of sockets, and taking over of those that were opened by somebody else. */
#include "dns/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "dns/server.h"

#define PORT_TRIES 32 /* a port that is free for TCP may be taken for UDP */

static void close_keeping_errno(int fd)
{
	int error = errno;
	close(fd);
	errno = error;
}

static bool open_once(const struct listen_spec *spec, int *tcp, int *udp, struct addr_port *at)
{
	*tcp = listen_open(spec, false);
	if (*tcp < 0)
		return false;
	*udp = listen_address(*tcp, at) ? dns_udp_open(&at->addr, at->port, spec->is_by_link) : -1;
	if (*udp >= 0)
		return true;
	close_keeping_errno(*tcp);
	return false;
}

static bool open_pair(struct dns_sockets *s, const struct listen_spec *spec, struct addr_port *at)
{
	int tcp, udp;
	unsigned tries = spec->at.port == 0 ? PORT_TRIES : 1;
	while (!open_once(spec, &tcp, &udp, at))
		if (--tries == 0 || errno != EADDRINUSE)
			return false;
	s->tcp[s->n_tcp++] = tcp;
	s->udp[s->n_udp++] = udp;
	return true;
}

static bool adopt_udp(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static bool adopt(struct dns_sockets *s, const struct listen_spec *spec, struct addr_port *at)
{
	int type = 0;
	socklen_t len = sizeof(type);
	if (getsockopt(spec->fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0)
		return false;
	if (type == SOCK_STREAM ? listen_open(spec, false) < 0 : !adopt_udp(spec->fd))
		return false;
	errno = EINVAL;
	if (!listen_address(spec->fd, at) || at->port == 0 || (type != SOCK_STREAM && type != SOCK_DGRAM))
		return false;
	if (type == SOCK_STREAM)
		s->tcp[s->n_tcp++] = spec->fd;
	else
		s->udp[s->n_udp++] = spec->fd;
	return true;
}

bool dns_sockets_open(struct dns_sockets *s, const struct listen_spec *spec, struct addr_port *at)
{
	return spec->kind == LISTEN_FD ? adopt(s, spec, at) : open_pair(s, spec, at);
}

void dns_sockets_close(struct dns_sockets *s)
{
	for (size_t i = 0; i < s->n_udp; i++)
		close(s->udp[i]);
	for (size_t i = 0; i < s->n_tcp; i++)
		close(s->tcp[i]);
	s->n_udp = s->n_tcp = 0;
}
