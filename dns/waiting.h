/* Clients that wait for an upstream's answer: those that ask the same under the same policy wait together for one query. */
#ifndef CAGE_DNS_WAITING_H
#define CAGE_DNS_WAITING_H

#include "dns/wire.h"

/* One client; the first thing in what its owner keeps of it. */
struct dns_waiter {
	struct dns_waiter *next;
};

/* What one query upstream is for. */
struct dns_group {
	struct dns_name name;
	uint16_t type;
	uint64_t generation; /* of the policy that allowed it */
	struct dns_waiter *first, **last;
	size_t count;
	struct dns_group *chain; /* next in the same bucket */
	uint64_t hash;
};

struct dns_waiting;

enum dns_join {
	DNS_JOIN_FIRST, /* nobody has asked yet: ask */
	DNS_JOIN_MORE,  /* it is asked already */
	DNS_JOIN_FULL   /* refused: too many groups, too many clients in it, or no memory */
};

/* At most so many groups, and clients of one. NULL without memory. */
struct dns_waiting *dns_waiting_new(size_t groups, size_t clients);

/* No group may be left. */
void dns_waiting_free(struct dns_waiting **w);

/* What a join would say now, but for the lack of memory. Nobody waits by this. */
enum dns_join dns_waiting_place(struct dns_waiting *w, const struct dns_name *name, uint16_t type, uint64_t generation);

/* Unless it says DNS_JOIN_FULL, *group is where it waits now. */
enum dns_join dns_waiting_join(struct dns_waiting *w, const struct dns_name *name, uint16_t type, uint64_t generation,
			       struct dns_waiter *waiter, struct dns_group **group);

/* The group is answered: takes it out, so that who asks from now on asks anew. Its clients, in their order, are the
 * caller's; so is the group, to free() it. */
void dns_waiting_take(struct dns_waiting *w, struct dns_group *group);

/* Groups there are. */
size_t dns_waiting_count(const struct dns_waiting *w);

#endif
