/* What cage-dns tells of its answers (core/net/binding.h), as a worker knows it. Without a connection it is tried again and
 * again; what was told before holds until its time is over. */
#ifndef CAGE_PROXY_BINDINGS_H
#define CAGE_PROXY_BINDINGS_H

#include "core/net/binding.h"
#include "core/net/loop.h"

struct bindings;

/* path: of the unix socket. NULL: no memory. */
struct bindings *bindings_new(struct loop *l, const char *path);
void bindings_free(struct bindings **b);

/* In each of these b may be NULL: then nothing is known. What has come meanwhile is read first where it could matter. */

/* The addresses that were answered for a name, IPv6 and IPv4 in turn; how many. */
size_t bindings_addresses(struct bindings *b, struct slice name, struct addr out[LIMIT_ANSWERS]);

/* Was the name given an address that stands for it? */
bool bindings_has_given(struct bindings *b, struct slice name);

/* The name that an address stands for, borrowed until the next call; empty: none. */
struct slice bindings_name(struct bindings *b, const struct addr *given);

#endif
