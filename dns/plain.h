/* Exchanges over UDP, and over TCP where an answer is too long, with c-ares: it sends again, asks the next server, and matches
 * answers by address, port, id and question. */
#ifndef CAGE_DNS_PLAIN_H
#define CAGE_DNS_PLAIN_H

#include "core/base/limits.h"
#include "core/net/loop.h"
#include "core/net/vet.h"
#include "dns/exchange.h"

struct dns_plain;

/* Those of resolv.conf; how many, 0 when they can't be found out. */
size_t dns_system_servers(struct addr_port out[LIMIT_DNS_SERVERS]);

/* n 0: the system's servers. NULL without memory. */
struct dns_plain *dns_plain_new(struct loop *l, const struct addr_port *servers, size_t n);

/* Exchanges under way end with CAGE_ESYS before it returns. */
void dns_plain_free(struct dns_plain **p);

/* The message ends with an OPT record without options. CAGE_ETIMEOUT, CAGE_ESYS, CAGE_ELIMIT. */
void dns_plain_send(struct dns_plain *p, struct dns_exchange *x);

/* To be called every LIMIT_DNS_TICK_MS while there are exchanges. */
void dns_plain_tick(struct dns_plain *p);

#endif
