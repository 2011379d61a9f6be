/* Namespaces and routes. "local 0.0.0.0/0 dev lo" is what makes each destination an address of this machine: a
 * connection to anywhere meets our listener or is refused, and no packet has another device to leave by. */
#include "orchestrator/gate/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "orchestrator/gate/say.h"
#include "orchestrator/gate/write.h"
#include "orchestrator/netlink.h"

static pid_t clone_with(unsigned namespaces)
{
	return (pid_t)syscall(SYS_clone, namespaces | (unsigned)SIGCHLD, NULL, NULL, NULL, NULL);
}

pid_t netns_fork(unsigned *namespaces)
{
	*namespaces = CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
	pid_t child = clone_with(*namespaces);
	if (child >= 0)
		return child;
	*namespaces = CLONE_NEWUSER | CLONE_NEWNET;
	return clone_with(*namespaces);
}

static int write_proc(pid_t pid, const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return write_text(path, text);
}

/* For root the agent is another user outside too: the files of root are not its own. Nobody else may choose. Inside
 * it is root until the room is done. */
int netns_map(pid_t child, uid_t uid)
{
	char users[64], groups[64];
	bool is_root = geteuid() == 0;
	snprintf(users, sizeof(users), "0 %u 1\n", is_root ? uid : geteuid());
	snprintf(groups, sizeof(groups), "0 %u 1\n", is_root ? uid : getegid());
	if (!is_root && write_proc(child, "setgroups", "deny") < 0)
		return -1;
	return write_proc(child, "uid_map", users) < 0 || write_proc(child, "gid_map", groups) < 0 ? -1 : 0;
}

int netns_map_ids(pid_t child, uid_t user, gid_t group, uid_t uid)
{
	char users[64], groups[64];
	snprintf(users, sizeof(users), "%u %u 1\n", user, uid);
	snprintf(groups, sizeof(groups), "%u %u 1\n", group, uid);
	return write_proc(child, "uid_map", users) < 0 || write_proc(child, "gid_map", groups) < 0 ? -1 : 0;
}

/* Where the other groups of an ordinary user can't be given up, they stay; the room's files decide what that means. */
int netns_join(void)
{
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return -1;
	return setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 ? -1 : 0;
}

static int raise_loopback(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK};
	int result = ioctl(fd, SIOCSIFFLAGS, &request);
	close(fd);
	return result;
}

/* A request for one route, with room for its attribute. */
struct route_request {
	struct nlmsghdr header;
	struct rtmsg route;
	struct rtattr device_head;
	unsigned device;
};

/* A request for one address of a device. */
struct address_request {
	struct nlmsghdr header;
	struct ifaddrmsg about;
	struct rtattr address_head;
	unsigned address[4];
};

static int add_local_route(unsigned char family)
{
	struct route_request request = {
		.header = {.nlmsg_len = sizeof(request), .nlmsg_type = RTM_NEWROUTE, .nlmsg_flags = NETLINK_MAKE_NEW},
		.route = {.rtm_family = family,
			  .rtm_table = RT_TABLE_LOCAL,
			  .rtm_protocol = RTPROT_STATIC,
			  .rtm_scope = RT_SCOPE_HOST,
			  .rtm_type = RTN_LOCAL},
		.device_head = {.rta_len = RTA_LENGTH(sizeof(unsigned)), .rta_type = RTA_OIF},
		.device = if_nametoindex("lo"),
	};
	return netlink_ask(&request.header);
}

/* Resolvers that are asked with AI_ADDRCONFIG look for no addresses of a family of which this machine has only that of
 * loopback, so it gets one more of each. */
static int add_own_address(unsigned char family)
{
	const bool is_ipv6 = family == AF_INET6;
	const unsigned len = is_ipv6 ? sizeof(struct in6_addr) : sizeof(struct in_addr);
	struct address_request request = {
		.header = {.nlmsg_len = offsetof(struct address_request, address) + len,
			   .nlmsg_type = RTM_NEWADDR,
			   .nlmsg_flags = NETLINK_MAKE_NEW},
		.about = {.ifa_family = family,
			  .ifa_prefixlen = is_ipv6 ? 128 : 32,
			  .ifa_flags = IFA_F_PERMANENT,
			  .ifa_scope = RT_SCOPE_UNIVERSE,
			  .ifa_index = if_nametoindex("lo")},
		.address_head = {.rta_len = (unsigned short)RTA_LENGTH(len), .rta_type = IFA_LOCAL},
		.address = {htonl(is_ipv6 ? NETNS_OWN_IPV6_FIRST : NETNS_OWN_IPV4), 0, 0, htonl(NETNS_OWN_IPV6_LAST)},
	};
	return netlink_ask(&request.header);
}

static bool kernel_has_ipv6(void)
{
	struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	int result = bind(fd, (struct sockaddr *)&loopback, sizeof(loopback));
	close(fd);
	return result == 0;
}

int netns_set_up(bool *has_ipv6)
{
	if (raise_loopback() < 0)
		return say_errno("loopback of the new network namespace");
	if (add_own_address(AF_INET) < 0 || add_local_route(AF_INET) < 0)
		return say_errno("routes of the new network namespace");
	*has_ipv6 = kernel_has_ipv6();
	if (*has_ipv6 && (add_own_address(AF_INET6) < 0 || add_local_route(AF_INET6) < 0))
		return say_errno("IPv6 routes of the new network namespace");
	return 0;
}

static bool has_only_loopback(void)
{
	struct if_nameindex *all = if_nameindex();
	if (!all)
		return false;
	/* Devices such as tunl0 are made in every namespace by some kernels; they are down and stay so. */
	bool good = true;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (struct if_nameindex *i = all; i->if_index && good; i++) {
		struct ifreq request = {0};
		memcpy(request.ifr_name, i->if_name, strnlen(i->if_name, IFNAMSIZ - 1));
		good = ioctl(fd, SIOCGIFFLAGS, &request) == 0 &&
		       ((request.ifr_flags & IFF_LOOPBACK) || !(request.ifr_flags & IFF_UP));
	}
	close(fd);
	if_freenameindex(all);
	return good;
}

/* A datagram socket that is connected sends nothing, and shows the address that it would send from. */
bool netns_is_closed(void)
{
	struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(9)}, here = {0};
	socklen_t len = sizeof(here);
	there.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	bool local = connect(fd, (struct sockaddr *)&there, sizeof(there)) == 0 &&
		     getsockname(fd, (struct sockaddr *)&here, &len) == 0 &&
		     here.sin_addr.s_addr == there.sin_addr.s_addr;
	close(fd);
	return local && has_only_loopback();
}
