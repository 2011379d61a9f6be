/* The original destination of captured connections, as the kernel tells it. */
#include "core/net/original.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST of the kernel, whose headers do not go together with netinet/in.h. */
#define ORIGINAL_DST 80

static bool is_mapped(const struct sockaddr_storage *ss)
{
	const struct sockaddr_in6 *in6 = (const void *)ss;
	return ss->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
}

/* Connection tracking has an entry also for connections that nobody led elsewhere: it says the same as the socket. */
static bool before_nat(int fd, bool is_v4, struct sockaddr_storage *ss)
{
	socklen_t len = is_v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	return getsockopt(fd, is_v4 ? IPPROTO_IP : IPPROTO_IPV6, ORIGINAL_DST, ss, &len) == 0;
}

static void unmap(struct addr *a)
{
	struct addr v4 = {.family = ADDR_V4};
	memcpy(v4.bytes, a->bytes + 12, 4);
	*a = v4;
}

bool original_destination(int fd, struct addr_port *out)
{
	struct sockaddr_storage local = {0}, before = {0};
	socklen_t len = sizeof(local);
	if (getsockname(fd, (struct sockaddr *)&local, &len) != 0)
		return false;
	bool is_v4 = local.ss_family == AF_INET || is_mapped(&local);
	if (!is_v4 && local.ss_family != AF_INET6)
		return false;
	bool has_before = before_nat(fd, is_v4, &before);
	const struct sockaddr_storage *known = has_before ? &before : &local;
	if (!addr_from_sockaddr((const struct sockaddr *)known, &out->addr, &out->port))
		return false;
	if (is_mapped(known))
		unmap(&out->addr);
	return true;
}
