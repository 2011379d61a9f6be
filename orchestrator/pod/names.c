/* What the parts of a sandbox are called, and where they are. */
#include <arpa/inet.h>
#include <stdio.h>

#include "orchestrator/pod/pod.h"

const char *const role_names[ROLES] = {[ROLE_PROXY] = "proxy", [ROLE_DNS] = "dns", [ROLE_AGENT] = "agent"};

void pod_container_name(const struct pod *p, enum role role, char out[LIMIT_POD_NAME])
{
	snprintf(out, LIMIT_POD_NAME, "cage-%s-%s", p->options->run.sandbox, role_names[role]);
}

void pod_network_name(const struct pod *p, char out[LIMIT_POD_NAME])
{
	snprintf(out, LIMIT_POD_NAME, "cage-%s", p->options->run.sandbox);
}

void pod_pidfile(const struct pod *p, enum role role, char out[POD_PATH])
{
	snprintf(out, POD_PATH, "%s/%s.pid", p->dir.hidden, role_names[role]);
}

/* The first one is left free: it is what a bridge would have. */
struct in_addr pod_address(const struct pod *p, enum role role)
{
	return (struct in_addr){htonl(ntohl(p->subnet.s_addr) + (role == ROLE_AGENT ? 3 : 2))};
}

/* What the kernel counts by user, such as processes and watched files, is then counted for each sandbox. */
uid_t pod_uid(const struct pod *p, enum role role)
{
	const uint32_t place = (ntohl(p->subnet.s_addr) - ntohl(p->options->pool.s_addr)) / POD_ADDRESSES;
	return p->options->uids + 2 * place + (role == ROLE_AGENT ? 0 : 1);
}
