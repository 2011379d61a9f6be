/* Attempts to reach what nobody listens for, as cage-gate's watch socket shows them: they were refused by the room's own
 * network, and get a line in the log here. */
#ifndef CAGE_PROXY_WATCH_H
#define CAGE_PROXY_WATCH_H

#include "core/base/addr.h"

struct watch;
struct worker;

/* Where a packet was going. It begins with its IP header and may be cut; TCP and UDP only. */
bool watch_parse(struct slice packet, struct addr *to, uint16_t *port);

/* Whether the descriptor is a socket that shows packets; makes it ours alone. */
bool watch_is_usable(int fd);

/* Reads fd, which stays the caller's, until it is freed. NULL without memory. */
struct watch *watch_new(struct worker *w, int fd);
void watch_free(struct watch **w);

#endif
