/* Makes the listening sockets and hands them out. */
#include "orchestrator/gate/listeners.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "orchestrator/gate/say.h"
#include "orchestrator/gate/watch.h"

#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif

/* One row for each socket: where it listens, and for whom. */
struct place {
	enum handoff_kind kind;
	int family;
	int type;
	in_addr_t address; /* of IPv4, in host order; IPv6 is always any */
	in_port_t port;
};

static const struct place own_network[] = {
	{HANDOFF_PROXY, AF_INET, SOCK_STREAM, INADDR_LOOPBACK, 8080},
	{HANDOFF_CAPTURED, AF_INET, SOCK_STREAM, INADDR_ANY, 80},
	{HANDOFF_CAPTURED, AF_INET, SOCK_STREAM, INADDR_ANY, 443},
	{HANDOFF_DNS_UDP, AF_INET, SOCK_DGRAM, INADDR_ANY, 53},
	{HANDOFF_DNS_TCP, AF_INET, SOCK_STREAM, INADDR_ANY, 53},
	{HANDOFF_CAPTURED, AF_INET6, SOCK_STREAM, 0, 80},
	{HANDOFF_CAPTURED, AF_INET6, SOCK_STREAM, 0, 443},
	{HANDOFF_DNS_UDP, AF_INET6, SOCK_DGRAM, 0, 53},
	{HANDOFF_DNS_TCP, AF_INET6, SOCK_STREAM, 0, 53},
};

static const struct place shared_network[] = {
	{HANDOFF_PROXY, AF_INET, SOCK_STREAM, INADDR_LOOPBACK, 8080},
	{HANDOFF_DNS_TCP, AF_INET, SOCK_STREAM, INADDR_LOOPBACK, 53},
	{HANDOFF_CAPTURED, AF_INET, SOCK_STREAM, INADDR_LOOPBACK, 80},
	{HANDOFF_CAPTURED, AF_INET, SOCK_STREAM, INADDR_LOOPBACK, 443},
};

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
_Static_assert(ROWS(own_network) + 1 <= GATE_LISTENERS, "room for the watch too");

static int bind_place(int fd, const struct place *place)
{
	const int yes = 1;
	if (place->family == AF_INET6) {
		struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(place->port)};
		/* FREEBIND: an answer may come from each address that is asked, though no device has it. */
		if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) < 0 ||
		    setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &yes, sizeof(yes)) < 0)
			return -1;
		return bind(fd, (struct sockaddr *)&any, sizeof(any));
	}
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(place->port)};
	address.sin_addr.s_addr = htonl(place->address);
	return bind(fd, (struct sockaddr *)&address, sizeof(address));
}

/* is_shared: connections of an earlier run that linger must not keep us from the port. In a network of its own there are
 * none, and without SO_REUSEADDR the port stays ours also when the socket has stopped listening. */
static int open_place(int fd, const struct place *place, bool is_shared)
{
	const int yes = 1;
	if (is_shared && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0)
		return -1;
	if (bind_place(fd, place) < 0)
		return -1;
	return place->type == SOCK_STREAM ? listen(fd, SOMAXCONN) : 0;
}

static int make_socket(const struct place *place, bool is_shared)
{
	int fd = socket(place->family, place->type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || open_place(fd, place, is_shared) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int add(struct listeners *out, enum handoff_kind kind, int fd)
{
	if (fd < 0)
		return -1;
	out->all[out->n++] = (struct listener){kind, fd};
	return 0;
}

int listeners_make(struct listeners *out, bool has_ipv6)
{
	out->n = 0;
	for (size_t i = 0; i < ROWS(own_network); i++) {
		const struct place *place = &own_network[i];
		if (place->family == AF_INET6 && !has_ipv6)
			continue;
		if (add(out, place->kind, make_socket(place, false)) < 0)
			return say_errno("listener of the room's network");
	}
	if (add(out, HANDOFF_WATCH, watch_socket()) < 0)
		return say_errno("watch on the room's network");
	return 0;
}

/* A port below 1024 that an ordinary user may not have is left out: nobody listens there, so it is refused. The proxy's
 * own is what the agent lives by. */
int listeners_make_shared(struct listeners *out)
{
	out->n = 0;
	for (size_t i = 0; i < ROWS(shared_network); i++) {
		const struct place *place = &shared_network[i];
		if (add(out, place->kind, make_socket(place, true)) < 0 && place->kind == HANDOFF_PROXY)
			return say_errno("127.0.0.1:8080");
	}
	return 0;
}

int listeners_hand_over(const struct listeners *listeners, int handoff)
{
	for (size_t i = 0; i < listeners->n; i++)
		if (handoff_send(handoff, listeners->all[i].kind, listeners->all[i].fd) < 0)
			return say_errno("handoff to the launcher");
	return handoff_send(handoff, HANDOFF_END, -1) < 0 ? say_errno("handoff to the launcher") : 0;
}

int listeners_await_go(int handoff)
{
	if (handoff_await_go(handoff) == 0)
		return 0;
	if (errno != ECANCELED)
		say("the launcher did not say go");
	return -1;
}

static unsigned port_of(int fd)
{
	struct sockaddr_in address = {0};
	socklen_t len = sizeof(address);
	return getsockname(fd, (struct sockaddr *)&address, &len) == 0 ? ntohs(address.sin_port) : 0;
}

bool listeners_own_port(const struct listeners *listeners, unsigned port)
{
	for (size_t i = 0; i < listeners->n; i++)
		if (port_of(listeners->all[i].fd) == port)
			return true;
	for (size_t i = 0; i < ROWS(shared_network) && listeners->n == 0; i++)
		if (shared_network[i].port == port)
			return true;
	return false;
}
