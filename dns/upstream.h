/* Questions to the upstream resolvers: over UDP and TCP with c-ares, or over TLS. A response that is handed on came from whom
 * it was asked of and is to the question that was asked, to the letter (0x20): what it says is the caller's to judge. */
#ifndef CAGE_DNS_UPSTREAM_H
#define CAGE_DNS_UPSTREAM_H

#include "core/base/addr.h"
#include "core/base/status.h"
#include "core/net/loop.h"
#include "core/net/trust.h"
#include "dns/wire.h"

struct dns_server_spec {
	struct addr addr;
	uint16_t port;
	struct slice tls_name; /* the name that its certificate must be for; empty: not over TLS */
};

struct dns_upstream;
struct dns_lookup; /* one question under way */

/* Asked in this order, the next when one fails; n 0: the system's. Where some are over TLS only those are asked, so that no
 * failure ever puts a question into plain text; trust is for them. At most LIMIT_DNS_SERVERS, the first ones. What is given is
 * copied. NULL without memory. */
struct dns_upstream *dns_upstream_new(struct loop *l, const struct dns_server_spec *servers, size_t n,
				      const struct trust *trust);

/* Lookups under way end with CAGE_ESYS before it returns, through their callbacks. Not from inside such a callback. */
void dns_upstream_free(struct dns_upstream **u);

/* response is valid during the call only. CAGE_OK, or CAGE_ETIMEOUT (LIMIT_DNS_LOOKUP_MS), CAGE_ESYS (no server could be reached,
 * or all say that they failed), CAGE_EVERIFY (a certificate is not good), CAGE_EPROTO (forged or broken responses only),
 * CAGE_ELIMIT (we are out of sockets). Never called before dns_upstream_query returns. */
typedef void (*dns_lookup_cb)(void *arg, enum cage_status st, struct slice response);

/* NULL when LIMIT_DNS_LOOKUPS are under way, or LIMIT_DNS_HELD with those that were given up, or without memory. The name is plain. */
struct dns_lookup *dns_upstream_query(struct dns_upstream *u, const struct dns_name *name, uint16_t type,
				      dns_lookup_cb cb, void *arg);

/* Is there room for one more? */
bool dns_upstream_has_room(const struct dns_upstream *u);

/* No callback any more. */
void dns_lookup_cancel(struct dns_lookup **q);

/* Lookups under way, those that were cancelled but are still held by a server's answer included. */
size_t dns_upstream_count(const struct dns_upstream *u);

#endif
