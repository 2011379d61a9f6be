/* Tells proxies which addresses were answered for which names (core/net/binding.h), and gives names the addresses that stand
 * for them (dns.mode: synthetic).
 *
 * Whoever connects is first told all that still lives, then each answer before the client gets it: so a proxy that looks
 * whether something has come, before it refuses a name, always finds it. */
#ifndef CAGE_DNS_BINDINGS_H
#define CAGE_DNS_BINDINGS_H

#include "core/net/binding.h"
#include "core/net/loop.h"

struct dns_bindings;

/* listen_fd stays the caller's. seed: the same one gives names the same addresses again, after a worker has died. NULL: no
 * memory. */
struct dns_bindings *dns_bindings_new(struct loop *l, int listen_fd, uint64_t seed);
void dns_bindings_free(struct dns_bindings **b);

/* An answer from upstream that is about to be given out for the first time: addresses of one family, good for so long. What
 * comes out of the cache later was told already, and pins are known to the proxy. false: no memory, and it must not be given out. */
bool dns_bindings_tell(struct dns_bindings *b, struct slice name, const struct addr *addrs, size_t n,
		       uint32_t life_s) MUST_CHECK;

/* The address that stands for an allowed name: the same as long as it is asked for now and then. CAGE_ELIMIT: all are in
 * use; CAGE_ENOMEM. */
enum cage_status dns_bindings_give(struct dns_bindings *b, const struct addr_range *pool, struct slice name,
				   struct addr *out) MUST_CHECK;

/* Proxies that are connected. */
size_t dns_bindings_peers(const struct dns_bindings *b);

#endif
