/* How many answers a prefix gets over UDP: /24 of IPv4, /56 of IPv6. Whoever makes up a sender wants others to be
 * flooded with our answers, and who that is does not matter for the count. Prefixes that meet in one counter share it. */
#ifndef CAGE_DNS_RRL_H
#define CAGE_DNS_RRL_H

#include "core/base/addr.h"
#include "core/base/limits.h"

enum dns_rrl_verdict {
	DNS_RRL_ANSWER,
	DNS_RRL_TRUNCATE, /* every other time over the rate: a short answer that leads to TCP */
	DNS_RRL_IGNORE
};

struct dns_rrl {
	uint64_t seed;
	uint64_t limited;
	uint64_t
		free_at[LIMIT_DNS_PREFIXES]; /* when all that was answered would have been, at the rate; microseconds */
};

void dns_rrl_init(struct dns_rrl *r);

/* Loopback is always answered. */
enum dns_rrl_verdict dns_rrl_judge(struct dns_rrl *r, const struct addr *from, uint64_t now_us);

#endif
