/* Where somebody listens for TCP in this network. */
#ifndef CAGE_GATE_LISTENING_H
#define CAGE_GATE_LISTENING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LISTENING_MAX = 1024 };

#define LISTENING_IPV6 0xffffffffu

struct listening {
	struct {
		uint32_t address; /* of IPv4, in host order, or LISTENING_IPV6 */
		unsigned port;
	} all[LISTENING_MAX];
	size_t n;
};

/* 0, or -1 after it has said why not: /proc is not there, or there are too many. */
int listening_read(struct listening *out);

/* Whether somebody has an abstract unix socket here, or it can't be known. */
bool listening_abstract(void);

#endif
