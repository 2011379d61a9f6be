/* TCP: other devices, other addresses, sockets that had another life before. */
#include "tests/gate/attack.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MPTCP = 262, SMC = 256, MARK = 36, TO_IFINDEX = 62 };

static int tcp4(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
}

static int tcp6(void)
{
	return socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
}

static enum verdict direct(const struct target *t)
{
	return try_connect4(tcp4(), t);
}

static enum verdict to_address(const struct target *t, const char *text)
{
	struct target other = *t;
	inet_pton(AF_INET, text, &other.peer);
	return direct(&other);
}

static enum verdict metadata(const struct target *t)
{
	return to_address(t, "169.254.169.254");
}

static enum verdict metadata_azure(const struct target *t)
{
	return to_address(t, "168.63.129.16");
}

/* Sets an option and connects. A refused option is no reason to stop. */
static enum verdict with_option(const struct target *t, int level, int name, const void *value, size_t len)
{
	int fd = tcp4();
	setsockopt(fd, level, name, value, (socklen_t)len);
	return try_connect4(fd, t);
}

static enum verdict no_device(const struct target *t)
{
	return with_option(t, SOL_SOCKET, SO_BINDTODEVICE, "", 0);
}

static enum verdict no_index(const struct target *t)
{
	const int none = 0;
	return with_option(t, SOL_SOCKET, TO_IFINDEX, &none, sizeof(none));
}

static enum verdict other_index(const struct target *t)
{
	return with_option(t, SOL_SOCKET, TO_IFINDEX, &t->device, sizeof(t->device));
}

static enum verdict marked(const struct target *t)
{
	const int one = 1;
	return with_option(t, SOL_SOCKET, MARK, &one, sizeof(one));
}

static enum verdict transparent(const struct target *t)
{
	const int one = 1;
	return with_option(t, IPPROTO_IP, IP_TRANSPARENT, &one, sizeof(one));
}

static enum verdict unicast_if(const struct target *t)
{
	const unsigned device = htonl((unsigned)t->device);
	return with_option(t, IPPROTO_IP, IP_UNICAST_IF, &device, sizeof(device));
}

static enum verdict source_routed(const struct target *t)
{
	unsigned char route[12] = {131, 11, 4};
	memcpy(route + 3, &t->peer, 4);
	memcpy(route + 7, &t->peer, 4);
	return with_option(t, IPPROTO_IP, IP_OPTIONS, route, sizeof(route));
}

static enum verdict repaired(const struct target *t)
{
	const int one = 1;
	return with_option(t, IPPROTO_TCP, TCP_REPAIR, &one, sizeof(one));
}

static enum verdict upper_layer(const struct target *t)
{
	return with_option(t, IPPROTO_TCP, TCP_ULP, "smc", 3);
}

static void bind_to(int fd, struct in_addr address)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = address};
	const int one = 1;
	setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one));
	(void)bind(fd, (struct sockaddr *)&own, sizeof(own));
}

static enum verdict bound_outside(const struct target *t)
{
	int fd = tcp4();
	bind_to(fd, t->own);
	return try_connect4(fd, t);
}

/* A socket that was connected, and is not any more. */
static int used_before(void)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(1)};
	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = tcp4();
	(void)connect(fd, (struct sockaddr *)&here, sizeof(here));
	disconnect(fd);
	return fd;
}

static enum verdict reconnected(const struct target *t)
{
	return try_connect4(used_before(), t);
}

static enum verdict rebound(const struct target *t)
{
	int fd = used_before();
	bind_to(fd, t->own);
	return try_connect4(fd, t);
}

static int listening(struct sockaddr_in *where)
{
	socklen_t len = sizeof(*where);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	listen(fd, 5);
	getsockname(fd, (struct sockaddr *)where, &len);
	where->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return fd;
}

static enum verdict listener_reused(const struct target *t)
{
	struct sockaddr_in where;
	int fd = listening(&where);
	shutdown(fd, SHUT_RDWR);
	disconnect(fd);
	bind_to(fd, t->own);
	return try_connect4(fd, t);
}

static enum verdict accepted_reused(const struct target *t)
{
	struct sockaddr_in where;
	int listener = listening(&where), client = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(client, (struct sockaddr *)&where, sizeof(where)) < 0)
		return SHUT;
	int fd = accept(listener, NULL, NULL);
	disconnect(fd);
	return try_connect4(fd, t);
}

static enum verdict fast_open(const struct target *t)
{
	struct sockaddr_in peer = to_peer(t);
	int fd = tcp4();
	sendto(fd, "leak", 4, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&peer, sizeof(peer));
	return try_connect4(fd, t);
}

static enum verdict fast_open_connect(const struct target *t)
{
	const int one = 1;
	struct sockaddr_in peer = to_peer(t);
	int fd = tcp4();
	setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof(one));
	(void)connect(fd, (struct sockaddr *)&peer, sizeof(peer));
	send(fd, "leak", 4, MSG_NOSIGNAL);
	close(fd);
	return SENT;
}

/* All capabilities in a user namespace of its own are none in that of the network. */
static enum verdict nested_user(const struct target *t)
{
	int fd = tcp4();
	unshare(CLONE_NEWUSER);
	setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "", 0);
	setsockopt(fd, SOL_SOCKET, TO_IFINDEX, &t->device, sizeof(t->device));
	return try_connect4(fd, t);
}

static enum verdict nested_network(const struct target *t)
{
	unshare(CLONE_NEWUSER | CLONE_NEWNET);
	return try_connect4(tcp4(), t);
}

static enum verdict multipath(const struct target *t)
{
	return try_connect4(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, MPTCP), t);
}

static enum verdict shared_memory(const struct target *t)
{
	return try_connect4(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, SMC), t);
}

static enum verdict direct6(const struct target *t)
{
	struct sockaddr_in6 peer = to_peer6(t);
	return try_connect(tcp6(), &peer, sizeof(peer));
}

static enum verdict mapped(const struct target *t)
{
	struct sockaddr_in6 peer = to_mapped(t);
	return try_connect(tcp6(), &peer, sizeof(peer));
}

static enum verdict scoped(const struct target *t)
{
	struct sockaddr_in6 peer = to_peer6(t);
	peer.sin6_scope_id = (unsigned)t->device;
	return try_connect(tcp6(), &peer, sizeof(peer));
}

/* The bind fails, and has set the socket's device by then. */
static int bound_link_local(const struct target *t)
{
	struct sockaddr_in6 nobody = {.sin6_family = AF_INET6, .sin6_scope_id = (unsigned)t->device};
	inet_pton(AF_INET6, "fe80::dead", &nobody.sin6_addr);
	int fd = tcp6();
	(void)bind(fd, (struct sockaddr *)&nobody, sizeof(nobody));
	return fd;
}

static enum verdict link_local_mapped(const struct target *t)
{
	struct sockaddr_in6 peer = to_mapped(t);
	return try_connect(bound_link_local(t), &peer, sizeof(peer));
}

static enum verdict link_local_global(const struct target *t)
{
	struct sockaddr_in6 peer = to_peer6(t);
	return try_connect(bound_link_local(t), &peer, sizeof(peer));
}

const struct attack tcp_attacks[] = {
	{"tcp4_direct", direct},
	{"tcp4_metadata", metadata},
	{"tcp4_metadata_azure", metadata_azure},
	{"tcp4_no_device", no_device},
	{"tcp4_no_index", no_index},
	{"tcp4_other_index", other_index},
	{"tcp4_mark", marked},
	{"tcp4_transparent", transparent},
	{"tcp4_unicast_if", unicast_if},
	{"tcp4_source_routed", source_routed},
	{"tcp4_repair", repaired},
	{"tcp4_ulp", upper_layer},
	{"tcp4_bound_outside", bound_outside},
	{"tcp4_reconnected", reconnected},
	{"tcp4_rebound", rebound},
	{"tcp4_listener_reused", listener_reused},
	{"tcp4_accepted_reused", accepted_reused},
	{"tcp4_fast_open", fast_open},
	{"tcp4_fast_open_connect", fast_open_connect},
	{"tcp4_nested_user", nested_user},
	{"tcp4_nested_network", nested_network},
	{"tcp4_multipath", multipath},
	{"tcp4_shared_memory", shared_memory},
	{"tcp6_direct", direct6},
	{"tcp6_mapped", mapped},
	{"tcp6_scoped", scoped},
	{"tcp6_link_local_mapped", link_local_mapped},
	{"tcp6_link_local_global", link_local_global},
	{NULL, NULL},
};
