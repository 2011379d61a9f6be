/* The server's sockets: queries in, answers out, over UDP in batches and over TCP one after the other, with bounds on all
 * that clients can make it keep. It does not know what a query says: each is handed to on_query, and each is ended by one
 * dns_reply() or dns_drop(), at once or later.
 *
 * UDP answers leave from the address that was asked. They are gathered and sent at the end of a batch or of the pass.
 * Senders other than loopback are verified by nothing, so their answers are limited by prefix: beyond LIMIT_DNS_RATE a
 * second every other query is answered with "truncated", which sends an honest client to TCP, and the rest with nothing.
 * On TCP and on loopback there is no such limit: there an agent that asks much is at home. */
#ifndef CAGE_DNS_SERVER_H
#define CAGE_DNS_SERVER_H

#include <netinet/in.h>

#include "core/base/addr.h"
#include "core/base/reason.h"
#include "core/net/loop.h"

struct dns_server;

union dns_sockaddr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Who is to be answered. It may be copied and kept; what is not for the owner is below the line. */
struct dns_client {
	bool is_udp;
	bool is_verified; /* the sender can't be made up: TCP, or loopback */

	struct dns_server *server;
	union {
		struct {
			int fd;
			unsigned interface; /* for link-local addresses; else 0 */
			union dns_sockaddr from;
			struct in6_addr asked; /* the address that was asked, of IPv4 in the first bytes */
			bool has_asked;
		} udp;
		struct {
			unsigned slot;
			uint64_t serial; /* the connection may be gone when the answer comes, and its place taken */
		} tcp;
	};
};

struct dns_server_cb {
	/* A packet of at least one byte, good until the call returns. One that was longer than LIMIT_DNS_QUERY comes as
	 * its header alone, which is no query. */
	void (*on_query)(void *arg, const struct dns_client *c, struct slice packet);
	/* Is there room for what comes? Else it waits with the kernel, or in the client's connection. */
	bool (*has_room)(void *arg);
	/* A connection was not taken, or cut; not for one that has been idle. */
	void (*on_refused)(void *arg, enum reason why, const struct addr *from);
};

/* Since the start. */
struct dns_server_stats {
	uint64_t udp_queries, tcp_queries;
	uint64_t udp_answers, tcp_answers;
	uint64_t udp_limited; /* over the rate, with and without a truncated answer */
	uint64_t udp_ignored; /* from port 0 */
	uint64_t udp_unsent;  /* answers that the kernel did not take */
	uint64_t tcp_taken, tcp_refused, tcp_cut;
};

/* A UDP socket, bound, not blocking, close-on-exec; port 0 picks a free one. -1 with errno. */
int dns_udp_open(const struct addr *at, uint16_t port, bool is_by_link);

/* The descriptors stay the caller's and open until dns_server_free(), those that listen until dns_server_drain(); TCP ones
 * listen, UDP ones are bound; none blocks. NULL without memory. */
struct dns_server *dns_server_new(struct loop *loop, const int *udp_fds, size_t n_udp, const int *tcp_fds, size_t n_tcp,
				  const struct dns_server_cb *cb, void *arg);

/* Nothing may be answered any more. */
void dns_server_free(struct dns_server **s);

/* An answer of at most what the client takes: over UDP LIMIT_DNS_UDP, over TCP LIMIT_DNS_TCP bytes. */
void dns_reply(const struct dns_client *c, struct slice answer);

/* There will be no answer. */
void dns_drop(const struct dns_client *c);

/* Reads no more. Calls on_drained from the loop once everything that was read has been answered and sent. */
void dns_server_drain(struct dns_server *s, void (*on_drained)(void *arg), void *arg);

/* Queries that were handed out and not answered. */
size_t dns_server_outstanding(const struct dns_server *s);

const struct dns_server_stats *dns_server_stats(const struct dns_server *s);

#endif
