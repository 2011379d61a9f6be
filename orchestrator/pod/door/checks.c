/* What the kernel says of this process and its network. Whatever can't be read is wrong. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/pod/door/door.h"

/* ---- rights ---- */

/* "CapEff:\t0000" of our status, in hex; false: it is not there. */
static bool status_number(const char *name, uint64_t *out)
{
	char line[256];
	const size_t len = strlen(name);
	bool found = false;
	FILE *f = fopen("/proc/self/status", "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		found = strncmp(line, name, len) == 0 && line[len] == ':';
		if (found)
			*out = strtoull(line + len + 1, NULL, 16);
	}
	if (f)
		fclose(f);
	return found;
}

static bool has_none(const char *name)
{
	uint64_t n = 0;
	if (status_number(name, &n) && n == 0)
		return true;
	say("%s of the agent is not 0: it can't be locked in", name);
	return false;
}

/* Its own is one that a runtime may list once more. */
static bool has_other_groups(void)
{
	gid_t groups[2];
	const int n = getgroups(2, groups);
	return n < 0 || n > 1 || (n == 1 && groups[0] != getgid());
}

bool door_has_no_rights(void)
{
	if (getuid() == 0 || geteuid() == 0 || getgid() == 0 || getegid() == 0) {
		say("the agent would be root of its container");
		return false;
	}
	if (has_other_groups()) {
		say("the agent would have groups of this machine: it can't be locked in");
		return false;
	}
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) { /* gVisor's status has no such line */
		say("the agent could get new rights by a program: it can't be locked in");
		return false;
	}
	return has_none("CapInh") && has_none("CapPrm") && has_none("CapEff") && has_none("CapBnd");
}

/* ---- routes ---- */

/* The column of that number, in hex; UINT32_MAX: there is none. */
static uint32_t column(const char *line, int number)
{
	char *end = NULL;
	for (int i = 0; i < number; i++) {
		line += strcspn(line, "\t ");
		line += strspn(line, "\t ");
	}
	unsigned long n = strtoul(line, &end, 16);
	return end > line && n <= UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Of 29 bits gVisor says 1FFFFFFF instead of F8FFFFFF; a kernel that means what it says never has such a one. */
static bool mask_is_good(uint32_t mask, const struct door_network *n)
{
	return mask == n->mask.s_addr || mask == ~0u >> __builtin_popcount(~n->mask.s_addr);
}

/* A line of /proc/net/route: interface, destination, gateway, ..., mask; addresses are as they are in memory. */
static bool route_is_good(const char *line, const struct door_network *n)
{
	return column(line, 2) == 0 && mask_is_good(column(line, 7), n) &&
	       column(line, 1) == (n->own.s_addr & n->mask.s_addr);
}

static bool has_good_routes(const struct door_network *n)
{
	char line[256];
	FILE *f = fopen("/proc/net/route", "re");
	bool ok = f && fgets(line, sizeof(line), f); /* the names of the columns */
	while (ok && fgets(line, sizeof(line), f))
		ok = route_is_good(line, n);
	ok = ok && !ferror(f);
	if (f)
		fclose(f);
	if (!ok)
		say("the agent's network has a route that leads out of it");
	return ok;
}

/* ---- addresses ---- */

static bool address_is_good(const struct ifaddrs *a, const struct door_network *n)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)a->ifa_addr;
	if (!a->ifa_addr || a->ifa_addr->sa_family == AF_PACKET)
		return true;
	if (a->ifa_addr->sa_family != AF_INET)
		return false;
	if (a->ifa_flags & IFF_LOOPBACK)
		return true;
	return v4->sin_addr.s_addr == n->own.s_addr;
}

/* Over IPv6 everybody on a link has an address, this machine too. */
static bool has_good_addresses(const struct door_network *n)
{
	struct ifaddrs *all = NULL;
	bool ok = getifaddrs(&all) == 0;
	for (const struct ifaddrs *a = all; ok && a; a = a->ifa_next)
		ok = address_is_good(a, n);
	if (all)
		freeifaddrs(all);
	if (!ok)
		say("the agent's network has an address other than its own, or IPv6");
	return ok;
}

bool door_has_no_other_way(const struct door_network *n)
{
	return has_good_addresses(n) && has_good_routes(n);
}
