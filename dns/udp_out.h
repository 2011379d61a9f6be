/* Answers over UDP on their way out: gathered, and sent with one system call. Those of one length to one client leave as a
 * train, which the kernel cuts into packets behind most of its work (UDP_SEGMENT). Where that can't be done, by this kernel
 * or for this socket, each leaves alone. */
#ifndef CAGE_DNS_UDP_OUT_H
#define CAGE_DNS_UDP_OUT_H

#include "dns/server.h"

struct dns_outbox;

/* NULL without memory. */
struct dns_outbox *dns_outbox_new(void);
void dns_outbox_free(struct dns_outbox **out);

/* Keeps a copy of the answer; what was gathered before leaves first where there is no room beside it. */
void dns_outbox_put(struct dns_outbox *out, const struct dns_client *c, struct slice answer,
		    struct dns_server_stats *stats);
void dns_outbox_flush(struct dns_outbox *out, struct dns_server_stats *stats);

#endif
