/* One message to an upstream and the answer to it: what dns/upstream.c hands to dns/plain.c or dns/dot.c, which answer each
 * exactly once. Only dns/dot.c can take one back. */
#ifndef CAGE_DNS_EXCHANGE_H
#define CAGE_DNS_EXCHANGE_H

#include "core/base/limits.h"
#include "core/base/slice.h"
#include "core/base/status.h"

/* Kept by its owner. */
struct dns_exchange {
	struct slice packet; /* the message; stays until the answer */
	/* CAGE_OK: response has the id of the message; it is valid during the call only. A failure may come from inside the
	 * function that sends. */
	void (*done)(struct dns_exchange *x, enum cage_status st, struct slice response);

	/* Below is for whom it was handed to. */
	void *via;                         /* the channel, or the server */
	struct dns_exchange *next, **link; /* among those of a server */
	uint64_t sent_us;                  /* when the server got it, or was to get it */
	unsigned tries;
	uint16_t id; /* on a connection */
};

/* How long one of so many waits may take, so that all of them fit into the time of a lookup, though what is over is seen only at
 * the next tick. */
static inline unsigned dns_exchange_wait_ms(size_t waits, unsigned at_most)
{
	unsigned share = LIMIT_DNS_LOOKUP_MS / (unsigned)waits - LIMIT_DNS_TICK_MS;
	return share < at_most ? share : at_most;
}

#endif
