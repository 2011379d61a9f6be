/* Datagrams: each way of sending one, and the packets that the kernel sends for a socket of its own accord. */
#include "tests/gate/attack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/udp.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ZEROCOPY = 60, UDPLITE = 136 };

static int udp4(void)
{
	return socket(AF_INET, SOCK_DGRAM, 0);
}

static int udp6(void)
{
	return socket(AF_INET6, SOCK_DGRAM, 0);
}

/* Closes fd. */
static enum verdict send_to(int fd, const void *address, size_t len, int flags)
{
	if (fd < 0)
		return SHUT;
	sendto(fd, "leak", 4, flags | MSG_NOSIGNAL, address, (socklen_t)len);
	close(fd);
	return SENT;
}

static enum verdict send_to4(int fd, const struct target *t)
{
	struct sockaddr_in peer = to_peer(t);
	return send_to(fd, &peer, sizeof(peer), 0);
}

static enum verdict plain(const struct target *t)
{
	return send_to4(udp4(), t);
}

static enum verdict connected(const struct target *t)
{
	struct sockaddr_in peer = to_peer(t);
	int fd = udp4();
	(void)connect(fd, (struct sockaddr *)&peer, sizeof(peer));
	return send_to(fd, NULL, 0, 0);
}

/* One datagram with an ancillary message that names a device. */
static enum verdict send_with(int fd, void *address, size_t len, int level, int type, const void *info, size_t info_len)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control = {0};
	struct iovec piece = {(char[]){'l', 'e', 'a', 'k'}, 4};
	struct msghdr message = {.msg_name = address,
				 .msg_namelen = (socklen_t)len,
				 .msg_iov = &piece,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = CMSG_SPACE(info_len)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(info_len);
	memcpy(CMSG_DATA(c), info, info_len);
	if (fd < 0)
		return SHUT;
	sendmsg(fd, &message, MSG_NOSIGNAL);
	close(fd);
	return SENT;
}

static enum verdict packet_info(const struct target *t)
{
	struct sockaddr_in peer = to_peer(t);
	struct in_pktinfo info = {.ipi_ifindex = t->device};
	return send_with(udp4(), &peer, sizeof(peer), IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
}

static enum verdict disconnected(const struct target *t)
{
	int fd = udp4();
	disconnect(fd);
	return send_to4(fd, t);
}

static enum verdict rebound(const struct target *t)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = t->own};
	int fd = udp4();
	disconnect(fd);
	(void)bind(fd, (struct sockaddr *)&own, sizeof(own));
	return send_to4(fd, t);
}

static enum verdict corked(const struct target *t)
{
	const int one = 1, zero = 0;
	struct sockaddr_in peer = to_peer(t);
	int fd = udp4();
	disconnect(fd);
	setsockopt(fd, IPPROTO_UDP, UDP_CORK, &one, sizeof(one));
	sendto(fd, "leak", 4, MSG_NOSIGNAL, (struct sockaddr *)&peer, sizeof(peer));
	sendto(fd, "leak", 4, MSG_NOSIGNAL | MSG_MORE, (struct sockaddr *)&peer, sizeof(peer));
	setsockopt(fd, IPPROTO_UDP, UDP_CORK, &zero, sizeof(zero));
	return send_to4(fd, t);
}

static enum verdict spliced(const struct target *t)
{
	int ends[2], fd = udp4();
	struct sockaddr_in peer = to_peer(t);
	disconnect(fd);
	(void)connect(fd, (struct sockaddr *)&peer, sizeof(peer));
	if (fd < 0 || pipe(ends) < 0 || write(ends[1], "leak", 4) != 4)
		return SHUT;
	splice(ends[0], NULL, fd, NULL, 4, 0);
	close(fd);
	return SENT;
}

static enum verdict zero_copy(const struct target *t)
{
	const int one = 1;
	struct sockaddr_in peer = to_peer(t);
	int fd = udp4();
	disconnect(fd);
	setsockopt(fd, SOL_SOCKET, ZEROCOPY, &one, sizeof(one));
	return send_to(fd, &peer, sizeof(peer), MSG_ZEROCOPY);
}

static enum verdict unicast_if(const struct target *t)
{
	const unsigned device = htonl((unsigned)t->device);
	int fd = udp4();
	setsockopt(fd, IPPROTO_IP, IP_UNICAST_IF, &device, sizeof(device));
	return send_to4(fd, t);
}

static struct ip_mreqn group(const struct target *t)
{
	struct ip_mreqn request = {.imr_address = t->own, .imr_ifindex = t->device};
	request.imr_multiaddr.s_addr = htonl(0xef4d0000 | t->port); /* 239.77.x.x */
	return request;
}

static enum verdict multicast(const struct target *t)
{
	struct ip_mreqn request = group(t);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(t->port), .sin_addr = request.imr_multiaddr};
	int fd = udp4();
	setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof(request));
	return send_to(fd, &to, sizeof(to), 0);
}

/* The kernel tells the routers of that device which group was joined, some time later: so the joining must fail. */
static enum verdict membership(const struct target *t)
{
	struct ip_mreqn request = group(t);
	int fd = udp4();
	return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)) == 0 ? SENT : SHUT;
}

static enum verdict membership_of_tcp(const struct target *t)
{
	struct ip_mreqn request = group(t);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)) == 0 ? SENT : SHUT;
}

static enum verdict broadcast(const struct target *t)
{
	const int one = 1;
	struct sockaddr_in all = to_peer(t);
	int fd = udp4();
	all.sin_addr.s_addr = t->own.s_addr | htonl(0xff);
	setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one));
	return send_to(fd, &all, sizeof(all), 0);
}

static enum verdict light(const struct target *t)
{
	return send_to4(socket(AF_INET, SOCK_DGRAM, UDPLITE), t);
}

static enum verdict ping(const struct target *t)
{
	struct sockaddr_in peer = to_peer(t);
	struct icmphdr echo = {.type = ICMP_ECHO};
	int fd = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
	if (fd < 0)
		return SHUT;
	sendto(fd, &echo, sizeof(echo), 0, (struct sockaddr *)&peer, sizeof(peer));
	close(fd);
	return SENT;
}

static enum verdict raw(const struct target *t)
{
	return send_to4(socket(AF_INET, SOCK_RAW, 253), t);
}

static enum verdict plain6(const struct target *t)
{
	struct sockaddr_in6 peer = to_peer6(t);
	return send_to(udp6(), &peer, sizeof(peer), 0);
}

static enum verdict disconnected6(const struct target *t)
{
	struct sockaddr_in6 peer = to_peer6(t);
	int fd = udp6();
	disconnect(fd);
	return send_to(fd, &peer, sizeof(peer), 0);
}

static enum verdict mapped_info(const struct target *t)
{
	struct sockaddr_in6 peer = to_mapped(t);
	struct in_pktinfo info = {.ipi_ifindex = t->device};
	return send_with(udp6(), &peer, sizeof(peer), IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
}

static enum verdict scoped(const struct target *t, const char *address)
{
	struct sockaddr_in6 to = to_peer6(t);
	inet_pton(AF_INET6, address, &to.sin6_addr);
	to.sin6_scope_id = (unsigned)t->device;
	return send_to(udp6(), &to, sizeof(to), 0);
}

static enum verdict link_local(const struct target *t)
{
	return scoped(t, "fe80::77");
}

static enum verdict all_nodes(const struct target *t)
{
	return scoped(t, "ff02::1");
}

const struct attack udp_attacks[] = {
	{"udp4_plain", plain},
	{"udp4_connected", connected},
	{"udp4_packet_info", packet_info},
	{"udp4_disconnected", disconnected},
	{"udp4_rebound", rebound},
	{"udp4_corked", corked},
	{"udp4_spliced", spliced},
	{"udp4_zero_copy", zero_copy},
	{"udp4_unicast_if", unicast_if},
	{"udp4_multicast", multicast},
	{"udp4_membership", membership},
	{"tcp4_membership", membership_of_tcp},
	{"udp4_broadcast", broadcast},
	{"udplite4", light},
	{"ping4", ping},
	{"raw4", raw},
	{"udp6_plain", plain6},
	{"udp6_disconnected", disconnected6},
	{"udp6_mapped_packet_info", mapped_info},
	{"udp6_link_local", link_local},
	{"udp6_all_nodes", all_nodes},
	{NULL, NULL},
};
