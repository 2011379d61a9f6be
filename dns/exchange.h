/* One message to an upstream and the answer to it: what dns/upstream.c hands to dns/plain.c or dns/dot.c, which answer each
 * exactly once. They can't take one back. */
#ifndef CAGE_DNS_EXCHANGE_H
#define CAGE_DNS_EXCHANGE_H

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

#endif
