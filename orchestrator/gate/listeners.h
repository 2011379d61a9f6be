/* The sockets that the room's network ends at. */
#ifndef CAGE_GATE_LISTENERS_H
#define CAGE_GATE_LISTENERS_H

#include <stdbool.h>
#include <stddef.h>

#include "orchestrator/gate/handoff.h"

enum { GATE_LISTENERS = 10 };

struct listener {
	enum handoff_kind kind;
	int fd;
};

struct listeners {
	struct listener all[GATE_LISTENERS];
	size_t n;
};

/* Makes all that a network of the agent's own has. 0, or -1 after it has said why not. */
int listeners_make(struct listeners *out, bool has_ipv6);

/* Makes those that a shared network can have: on 127.0.0.1, and TCP only. */
int listeners_make_shared(struct listeners *out);

/* Gives copies of all to the launcher. The caller keeps its own, so that no one can take the ports of a proxy that has
 * died. */
int listeners_hand_over(const struct listeners *listeners, int handoff);

/* Waits until the launcher, which has served them since, says go. 0, or -1 after it has said that it did not. */
int listeners_await_go(int handoff);

/* Whether a port of a shared loopback is one of ours. Where we made none, the proxy of another container has them. */
bool listeners_own_port(const struct listeners *listeners, unsigned port);

#endif
