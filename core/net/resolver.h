/* Names to addresses, with c-ares on the loop. The caller asks only for names that a rule allows (THREATS T14). */
#ifndef CAGE_NET_RESOLVER_H
#define CAGE_NET_RESOLVER_H

#include "core/base/addr.h"
#include "core/base/slice.h"
#include "core/net/loop.h"
#include "core/net/vet.h"

struct resolver;
struct resolve; /* one query under way */

/* servers: n 0 means the system's (resolv.conf and hosts). With servers given, only they are asked. */
struct resolver *resolver_new(struct loop *l, const struct addr_port *servers, size_t n);

/* Queries under way end with CAGE_ESYS before it returns, through their callbacks. */
void resolver_free(struct resolver **r);

/* addrs is valid during the call only; IPv6 and IPv4 interleaved, IPv6 first; at most LIMIT_ANSWERS. CAGE_OK with n >
 * 0, else CAGE_ESYS (no such name, server failure), CAGE_ETIMEOUT (LIMIT_RESOLVE_MS), CAGE_ELIMIT (we are out of
 * sockets). Never called before resolver_query returns. */
typedef void (*resolve_cb)(void *arg, enum cage_status st, struct addr *addrs, size_t n);

/* NULL without memory. */
struct resolve *resolver_query(struct resolver *r, struct slice name, resolve_cb cb, void *arg);

/* No callback any more. */
void resolve_cancel(struct resolve **q);

#endif
