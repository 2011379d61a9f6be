/* The internal network of a sandbox: eight addresses that nobody else has. This machine must have none of them, and hears nothing of
 * what comes by its bridge: else it would take what is sent to any of its addresses there, past the proxy. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/pod/pod.h"

#define BITS 29

static bool overlaps(const struct ifaddrs *a, uint32_t first)
{
	const struct sockaddr_in *own = (const struct sockaddr_in *)(const void *)a->ifa_addr;
	const struct sockaddr_in *mask = (const struct sockaddr_in *)(const void *)a->ifa_netmask;
	if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET || !mask)
		return false;
	const uint32_t wider = ntohl(mask->sin_addr.s_addr) & (~0u << (32 - BITS));
	return (ntohl(own->sin_addr.s_addr) & wider) == (first & wider);
}

bool network_is_free(struct in_addr subnet)
{
	struct ifaddrs *all = NULL;
	bool ok = getifaddrs(&all) == 0;
	for (const struct ifaddrs *a = all; ok && a; a = a->ifa_next)
		ok = !overlaps(a, ntohl(subnet.s_addr));
	if (all)
		freeifaddrs(all);
	return ok;
}

/* Any one of the pool first, then those behind it; who else may have it is known to Podman, and to the kernel. */
static bool choose(struct pod *p)
{
	const struct pod_options *o = p->options;
	const uint32_t n = 1u << (BITS - o->pool_bits);
	if (p->tries == 1 && getrandom(&p->place, sizeof(p->place), 0) != sizeof(p->place))
		return false;
	for (unsigned i = 0; i < LIMIT_POD_NETWORKS; i++) {
		p->subnet.s_addr = htonl(ntohl(o->pool.s_addr) + (p->place++ % n) * POD_ADDRESSES);
		if (network_is_free(p->subnet))
			return true;
	}
	say("all subnets of --subnets that were tried are in use on this machine");
	return false;
}

bool network_begin(struct pod *p)
{
	struct words argv = {0};
	char name[LIMIT_POD_NAME], subnet[INET_ADDRSTRLEN];
	if (p->tries++ == LIMIT_POD_NETWORKS) {
		call_tell(&p->network, "network create");
		return false;
	}
	if (!choose(p))
		return false;
	pod_network_name(p, name);
	inet_ntop(AF_INET, &p->subnet, subnet, sizeof(subnet));
	call_words(p->options, &argv);
	words_add(&argv, "network");
	words_add(&argv, "create");
	words_add(&argv, "--internal");
	words_add(&argv, "--disable-dns");
	words_add(&argv, "--subnet");
	words_add(&argv, "%s/%d", subnet, BITS);
	words_add(&argv, "--label");
	words_add(&argv, POD_LABEL_ID "=%s", p->options->run.sandbox);
	words_add(&argv, "--label");
	words_add(&argv, POD_LABEL_STATE "=%s", p->options->state);
	words_add(&argv, "%s", name);
	return call_begin(&p->network, p->options, &argv, NULL, 0);
}

/* ---- the bridge ---- */

bool network_ask_bridge(struct pod *p)
{
	struct words argv = {0};
	char name[LIMIT_POD_NAME];
	pod_network_name(p, name);
	call_words(p->options, &argv);
	words_add(&argv, "network");
	words_add(&argv, "inspect");
	words_add(&argv, "--format={{.NetworkInterface}}");
	words_add(&argv, "%s", name);
	return call_begin(&p->inspect, p->options, &argv, NULL, 0);
}

bool network_take_bridge(struct pod *p)
{
	const struct call *c = &p->inspect;
	const size_t n = strcspn(c->printed, "\n");
	if (c->state != CALL_GOOD || n == 0 || n >= sizeof(p->bridge) || memchr(c->printed, '/', n)) {
		call_tell(c, "network inspect");
		return false;
	}
	memcpy(p->bridge, c->printed, n);
	p->bridge[n] = '\0';
	return true;
}

/* Written, and read back: what counts is what is in force. */
static bool set(const char *family, const char *bridge, const char *name, const char *value)
{
	char path[160], now[16] = "";
	snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/%s", family, bridge, name);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT && strcmp(family, "ipv6") == 0; /* a kernel without it */
	const bool ok = write(fd, value, strlen(value)) == (ssize_t)strlen(value) &&
			pread(fd, now, sizeof(now) - 1, 0) > 0 && strncmp(now, value, strlen(value)) == 0;
	close(fd);
	return ok;
}

/* The bridge has no address: any check of where a packet came from drops all that comes by it for this machine, broadcasts too. No
 * question for an address of ours is answered there, and it has none of IPv6. */
bool network_close_bridge(const struct pod *p)
{
	if (set("ipv4", p->bridge, "rp_filter", "1") && set("ipv4", p->bridge, "arp_ignore", "8") &&
	    set("ipv4", p->bridge, "forwarding", "0") && set("ipv6", p->bridge, "disable_ipv6", "1"))
		return true;
	say("%s, the bridge of the agent's network, can't be closed to this machine: %s", p->bridge, strerror(errno));
	return false;
}

/* ---- another network ---- */

bool network_within(int pidfd, bool (*act)(const struct pod *p), const struct pod *p)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	const bool is_there = own >= 0 && setns(pidfd, CLONE_NEWNET) == 0;
	const bool ok = is_there && act(p);
	const int error = errno;
	if (is_there && setns(own, CLONE_NEWNET) != 0)
		abort(); /* nothing that we do from here on would be done where it has to be */
	if (own >= 0)
		close(own);
	errno = error;
	return ok;
}
