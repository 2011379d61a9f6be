/* The resolvers that are asked where a policy names none. */
#ifndef CAGE_NET_SYSTEM_SERVERS_H
#define CAGE_NET_SYSTEM_SERVERS_H

#include "core/net/vet.h"

/* In the place of those of resolv.conf, from now on and in all that is forked: in a container whose resolv.conf is somebody else's too. */
void system_server_set(const struct addr_port *server);

/* NULL: those of resolv.conf are. */
const struct addr_port *system_server(void);

#endif
