/* Which addresses may be dialled (THREATS T07, T08, T18, T36). Every answer of a resolver goes through here, and the
 * dialler gets exactly what comes out. */
#ifndef CAGE_NET_VET_H
#define CAGE_NET_VET_H

#include "core/base/addr.h"
#include "core/base/reason.h"

struct addr_port {
	struct addr addr; /* all zero: any address of this machine */
	uint16_t port;
};

/* What a rule permits. */
struct vet {
	const struct addr_range *ranges; /* the rule's `addresses`; n_ranges 0: public addresses only */
	size_t n_ranges;
	const struct addr_port *self; /* our own listeners: never dialled, whatever the rule says */
	size_t n_self;
};

/* Keeps in addrs what may be dialled on that port and returns how many. Without ranges, special addresses are dropped.
 * With ranges, every address must lie inside, else none is kept. Metadata addresses and our own listeners are never
 * kept: one of them makes the whole answer suspect and none is kept. When none is left, *why says it (ADDRESS_PRIVATE,
 * ADDRESS_OUTSIDE, ADDRESS_SELF). */
size_t vet_addresses(const struct vet *v, uint16_t port, struct addr *addrs, size_t n, enum reason *why);

/* A pin counts as vetted, but not for metadata addresses and our own listeners: 1 or 0, as above. */
size_t vet_pin(const struct vet *v, uint16_t port, const struct addr *addr, enum reason *why);

#endif
