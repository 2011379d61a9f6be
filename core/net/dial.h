/* Connecting to the first of several vetted addresses that answers (happy eyeballs: LIMIT_DIAL_STAGGER_MS apart, at
 * most LIMIT_DIAL_ATTEMPTS, LIMIT_CONNECT_MS in all). */
#ifndef CAGE_NET_DIAL_H
#define CAGE_NET_DIAL_H

#include "core/base/addr.h"
#include "core/net/loop.h"

struct dial;

/* CAGE_OK: fd is connected, non-blocking, close-on-exec, TCP_NODELAY, and the callee's to close; used is the address it
 * reached. Otherwise fd is -1: CAGE_ESYS (refused, unreachable) or CAGE_ETIMEOUT. Never called before dial_start
 * returns. */
typedef void (*dial_cb)(void *arg, enum cage_status st, int fd, const struct addr *used);

struct dial *dial_start(struct loop *l, const struct addr *addrs, size_t n, uint16_t port, dial_cb cb, void *arg);

/* No callback any more; attempts under way are closed. */
void dial_cancel(struct dial **d);

#endif
