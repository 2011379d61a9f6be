/* cage-relay: TCP from loopback to one address, and nothing else. It stands beside an agent whose gate leaves it nothing but loopback,
 * and carries what the agent says to the gateway of its network. It looks at nothing, resolves nothing, and connects to what its
 * command line says alone. All that it holds is bounded. */
#ifndef CAGE_RELAY_H
#define CAGE_RELAY_H

#include <poll.h>
#include <stdint.h>

#include "core/base/addr.h"
#include "core/base/limits.h"

/* One way: from a place on loopback to a place elsewhere. */
struct carry {
	struct addr from, to;
	uint16_t from_port, to_port;
	int listener;
	bool is_failing; /* the last connection was not answered, and that was said */
};

struct relay {
	struct carry carries[LIMIT_RELAY_CARRIES];
	size_t n_carries;
	uint64_t out_left; /* bytes that may still be sent */
	bool has_budget;
};

/* options.c: OPTIONS_GO_ON, or an exit code. */
int relay_options(int argc, char **argv, struct relay *out);

/* ---- link.c: a connection, and the one that it goes on in ---- */

/* One direction. Bytes from `at` to `end` wait to be sent. */
struct flow {
	enum {
		FLOW_OPEN,
		FLOW_ENDING, /* no more is read; what waits is sent, and then the end */
		FLOW_ENDED
	} state;
	size_t at, end;
	char bytes[LIMIT_RELAY_BUFFER];
};

enum link_state { LINK_FREE, LINK_CONNECTS, LINK_CARRIES };

struct link {
	enum link_state state;
	struct carry *carry;
	int near, far;     /* the agent's side, and the gateway's */
	uint64_t until_us; /* of LINK_CONNECTS */
	struct flow out, in;
};

/* Takes over a connection that came, and begins the other one. */
void link_begin(struct link *l, struct carry *c, int near);

/* What it waits for: two entries, each with fd -1 where that is nothing. */
void link_wants(const struct link *l, struct pollfd at[2]);

/* What has come of it. */
void link_go_on(struct link *l, struct relay *r, const struct pollfd at[2]);
void link_end(struct link *l);

#endif
