/* Where a connection was going before it was led to us. */
#ifndef CAGE_NET_ORIGINAL_H
#define CAGE_NET_ORIGINAL_H

#include "core/net/vet.h"

/* The destination that the client of an accepted TCP connection meant: the one before NAT (REDIRECT, DNAT) where there
 * was any, else the local address of the socket, which is the same with TPROXY and for who connects to us straight. An
 * IPv4 address is told as such, also by a listener for both families. False: it can't be told. */
bool original_destination(int fd, struct addr_port *out);

#endif
