/* The sockets of a c-ares channel as events of the loop. */
#ifndef CAGE_NET_ARES_EVENTS_H
#define CAGE_NET_ARES_EVENTS_H

#include <ares.h>

#include "core/net/loop.h"
#include "core/net/vet.h"

struct ares_watch;

/* In its owner; does not move while the channel lives. */
struct ares_events {
	struct loop *loop;
	ares_channel channel;                       /* set by the owner; NULL while it is being freed */
	void (*on_processed)(struct ares_events *); /* after each event that c-ares has handled; or NULL */
	struct ares_watch *watches;                 /* one for each open socket; NULL: none is open */
};

/* Adds what makes a channel report its sockets to e; returns the bits for ares_init_options(). */
int ares_events_options(struct ares_events *e, struct ares_options *o);

/* What is left of the events, once the channel is destroyed. */
void ares_events_clear(struct ares_events *e);

/* Only these servers from now on; an ARES_ status. The channel has no query under way. */
int ares_set_addresses(ares_channel channel, const struct addr_port *servers, size_t n);

/* The status for a query that c-ares has ended with anything but ARES_SUCCESS: CAGE_ETIMEOUT, CAGE_ELIMIT (we are out of
 * sockets) or CAGE_ESYS. */
enum cage_status ares_failure(int status);

#endif
