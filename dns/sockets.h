/* The sockets that clients ask at: for each address one of UDP and one of TCP, on the same port. */
#ifndef CAGE_DNS_SOCKETS_H
#define CAGE_DNS_SOCKETS_H

#include "core/base/limits.h"
#include "core/net/listener.h"

struct dns_sockets {
	int udp[LIMIT_LISTENERS], tcp[LIMIT_LISTENERS];
	size_t n_udp, n_tcp;
};

/* Opens both, or takes the one that was given (fd:N), of either kind: open, bound or listening, non-blocking, close-on-exec. *at is
 * where it is bound, if that is an address. false with errno. */
bool dns_sockets_open(struct dns_sockets *s, const struct listen_spec *spec, struct addr_port *at);

void dns_sockets_close(struct dns_sockets *s);

#endif
