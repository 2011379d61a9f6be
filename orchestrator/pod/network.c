/* The internal network of a sandbox: eight addresses that nobody else has. This machine must have none of them, nor a route to
 * them: it answers to each of its addresses on every link. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

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
