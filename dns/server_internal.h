/* What the files of the server know of each other: server.c holds together what udp.c and tcp.c do. */
#ifndef CAGE_DNS_SERVER_INTERNAL_H
#define CAGE_DNS_SERVER_INTERNAL_H

#include "dns/server.h"

struct dns_udp;
struct dns_tcp;

enum dns_server_state {
	DNS_SERVER_SERVING,
	DNS_SERVER_DRAINING, /* nothing is read any more */
	DNS_SERVER_DRAINED   /* and everything is answered */
};

struct dns_server {
	enum dns_server_state state;
	struct loop *loop;
	const struct dns_server_cb *cb;
	void *arg;
	struct dns_udp *udp;
	struct dns_tcp *tcp;
	struct dns_server_stats stats;
	size_t outstanding;
	struct deferred work; /* the end of the pass: what was gathered is sent */
	void (*on_drained)(void *arg);
	void *drained_arg;
};

/* Hands a query out. */
void dns_server_ask(struct dns_server *s, const struct dns_client *c, struct slice packet);

/* May more be read? Else what comes waits. */
bool dns_server_has_room(const struct dns_server *s);

/* NULL without memory. */
struct dns_udp *dns_udp_new(struct dns_server *s, const int *fds, size_t n);
void dns_udp_free(struct dns_udp **u);
void dns_udp_stop(struct dns_udp *u);
void dns_udp_reply(struct dns_udp *u, const struct dns_client *c, struct slice answer);
void dns_udp_flush(struct dns_udp *u);

struct dns_tcp *dns_tcp_new(struct dns_server *s, const int *fds, size_t n);
void dns_tcp_free(struct dns_tcp **t);
void dns_tcp_stop(struct dns_tcp *t);
void dns_tcp_reply(struct dns_tcp *t, const struct dns_client *c, struct slice answer); /* an empty one: none */

#endif
