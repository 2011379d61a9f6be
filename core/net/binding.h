/* Bindings: which addresses cage-dns has answered for a name, as it tells cage-proxy over a unix socket.
 *
 *	hello	"cage-bd" and a byte with the version, once
 *	frame	length of what follows (2), kind (1), number of addresses (1), life in seconds (4),
 *		length of the name (1), name, addresses (4 or 16 each)
 *
 * Numbers are big-endian. Nothing goes the other way. */
#ifndef CAGE_NET_BINDING_H
#define CAGE_NET_BINDING_H

#include "core/base/addr.h"
#include "core/base/limits.h"
#include "core/base/slice.h"
#include "core/base/status.h"

#define BINDING_HELLO SLICE("cage-bd\001")

enum binding_kind {
	BINDING_V4 = 4,    /* the IPv4 addresses of a name */
	BINDING_V6 = 6,    /* the IPv6 addresses of a name */
	BINDING_GIVEN = 10 /* the address that stands for a name: IPv4, one, and nobody else's */
};

struct binding {
	enum binding_kind kind;
	struct slice name; /* canonical; what was read borrows it from the input */
	uint32_t life_s;
	size_t n; /* 1 or more */
	struct addr addrs[LIMIT_ANSWERS];
};

#define BINDING_FRAME (9 + LIMIT_HOST + 16 * LIMIT_ANSWERS) /* the longest */

/* How many bytes the frame has; 0: it is none that could be read again. */
size_t binding_write(const struct binding *b, unsigned char out[BINDING_FRAME]);

/* Takes one frame off the input. CAGE_AGAIN: there is not all of it yet; CAGE_EPROTO: it is none. */
enum cage_status binding_read(struct slice *input, struct binding *out) MUST_CHECK;

#endif
