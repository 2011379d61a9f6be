/* The agent's own network: a socket that is bound to a device has no need of a route, since the kernel takes whoever is asked for as a
 * neighbour then. Each one is an entry of a table that the whole machine shares, and which has an end. So there is a rule for that
 * device behind all others, by which every address that is not in the network is the container's own. A socket that is bound to
 * none does not come there, and has no way, as before. */
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "orchestrator/netlink.h"
#include "orchestrator/pod/pod.h"

#define FIRST_TABLE 100 /* any that nobody has in a network of ours */
#define MOST_DEVICES 8  /* each has its own; of the agent's there is one, or the door stays closed */
#define PRIORITY 40000u /* behind those that the kernel makes, the last of which is 32767 */

struct route {
	struct nlmsghdr header;
	struct rtmsg about;
	struct rtattr device_head;
	unsigned device;
};

struct rule {
	struct nlmsghdr header;
	struct fib_rule_hdr about;
	struct rtattr priority_head;
	unsigned priority;
	struct rtattr device_head;
	char device[IFNAMSIZ];
};

/* "local default dev DEVICE table TABLE". */
static bool add_route(const char *device, unsigned char table)
{
	const struct route request = {
		.header = {.nlmsg_len = sizeof(request), .nlmsg_type = RTM_NEWROUTE, .nlmsg_flags = NETLINK_MAKE_NEW},
		.about = {.rtm_family = AF_INET,
			  .rtm_table = table,
			  .rtm_protocol = RTPROT_STATIC,
			  .rtm_scope = RT_SCOPE_HOST,
			  .rtm_type = RTN_LOCAL},
		.device_head = {.rta_len = RTA_LENGTH(sizeof(unsigned)), .rta_type = RTA_OIF},
		.device = if_nametoindex(device),
	};
	return request.device != 0 && netlink_ask(&request.header) == 0;
}

/* "oif DEVICE lookup TABLE". */
static bool add_rule(const char *device, unsigned char table)
{
	struct rule request = {
		.header = {.nlmsg_len = sizeof(request), .nlmsg_type = RTM_NEWRULE, .nlmsg_flags = NETLINK_MAKE_NEW},
		.about = {.family = AF_INET, .table = table, .action = FR_ACT_TO_TBL},
		.priority_head = {.rta_len = RTA_LENGTH(sizeof(unsigned)), .rta_type = FRA_PRIORITY},
		.priority = PRIORITY,
		.device_head = {.rta_len = RTA_LENGTH(IFNAMSIZ), .rta_type = FRA_OIFNAME},
	};
	memcpy(request.device, device, strnlen(device, IFNAMSIZ - 1));
	return netlink_ask(&request.header) == 0;
}

/* All that there are but loopback. */
static bool close_all(const struct pod *p)
{
	(void)p;
	struct if_nameindex *all = if_nameindex();
	unsigned char n = 0;
	bool ok = all;
	for (const struct if_nameindex *i = all; ok && i->if_index; i++) {
		const unsigned char table = (unsigned char)(FIRST_TABLE + n);
		if (strcmp(i->if_name, "lo") != 0)
			ok = n++ < MOST_DEVICES && add_route(i->if_name, table) && add_rule(i->if_name, table);
	}
	const int error = errno;
	if (all)
		if_freenameindex(all);
	errno = error;
	return ok;
}

/* gVisor has a table of its own. */
bool routes_close(const struct pod *p, int pidfd)
{
	if (gvisor_runs(p->options, ROLE_AGENT) || network_within(pidfd, close_all, p))
		return true;
	say("the agent's network can't be closed to sockets that are bound to a device: %s", strerror(errno));
	return false;
}
