/* Exchanges over TLS (RFC 7858): one kept connection to each server, with many messages under way on it. A server that can't be
 * reached or is not who it should be is passed over for the next one; nothing ever goes out in plain text. */
#ifndef CAGE_DNS_DOT_H
#define CAGE_DNS_DOT_H

#include "core/net/loop.h"
#include "core/net/trust.h"
#include "dns/exchange.h"
#include "dns/upstream.h"

struct dns_dot;

/* 1 to LIMIT_DNS_SERVERS of them, each with a name. NULL without memory. */
struct dns_dot *dns_dot_new(struct loop *l, const struct dns_server_spec *servers, size_t n, const struct trust *trust);

/* Exchanges under way end with CAGE_ESYS before it returns. */
void dns_dot_free(struct dns_dot **d);

/* At most LIMIT_DNS_HELD at once. CAGE_EVERIFY, CAGE_ETIMEOUT, CAGE_ESYS, CAGE_EPROTO: as the last server failed. */
void dns_dot_send(struct dns_dot *d, struct dns_exchange *x);

/* It is not answered any more. Only while no exchange is being answered. */
void dns_dot_cancel(struct dns_dot *d, struct dns_exchange *x);

/* To be called every LIMIT_DNS_TICK_MS while there are exchanges. */
void dns_dot_tick(struct dns_dot *d);

#endif
