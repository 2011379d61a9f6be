/* A leaky bucket for each prefix, kept as one point in time. */
#include "dns/rrl.h"

#include "core/base/map.h"

#define PERIOD_US (1000000u / LIMIT_DNS_RATE)

void dns_rrl_init(struct dns_rrl *r)
{
	*r = (struct dns_rrl){.seed = map_seed()};
}

static uint64_t *counter_of(struct dns_rrl *r, const struct addr *from)
{
	struct slice prefix = slice_of(from->bytes, from->family == ADDR_V4 ? 3 : 7);
	return &r->free_at[slice_hash(prefix, r->seed) % LIMIT_DNS_PREFIXES];
}

enum dns_rrl_verdict dns_rrl_judge(struct dns_rrl *r, const struct addr *from, uint64_t now_us)
{
	if (addr_is_loopback(from))
		return DNS_RRL_ANSWER;
	uint64_t *free_at = counter_of(r, from);
	if (*free_at < now_us)
		*free_at = now_us;
	if (*free_at - now_us < (uint64_t)LIMIT_DNS_BURST * PERIOD_US) {
		*free_at += PERIOD_US;
		return DNS_RRL_ANSWER;
	}
	return r->limited++ % 2 == 0 ? DNS_RRL_TRUNCATE : DNS_RRL_IGNORE;
}
