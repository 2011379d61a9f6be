/* Requests to the kernel's network stack, one at a time. */
#ifndef CAGE_ORCHESTRATOR_NETLINK_H
#define CAGE_ORCHESTRATOR_NETLINK_H

#include <linux/netlink.h>

enum { NETLINK_MAKE_NEW = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL };

/* In the network namespace that we are in. -1 with errno: it was refused. */
int netlink_ask(const struct nlmsghdr *request);

#endif
