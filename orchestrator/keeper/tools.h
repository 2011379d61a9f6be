/* Tool calls in the decision log: cage-proxy is told of each at the socket `tools`, and says whether it is logged. */
#ifndef CAGE_KEEPER_TOOLS_H
#define CAGE_KEEPER_TOOLS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/limits.h"

struct frame;
struct keeper;

struct tools {
	int fd; /* -1: not connected */
	struct tool_wait {
		uint16_t of; /* the service's number; 0: it does not want to know any more */
		uint64_t until_us;
	} waiting[LIMIT_KEEPER_TOOLS]; /* in their order */
	size_t n;
};

/* FRAME_TOOL: the service is answered when the line is in the log, or can't be. */
void tools_tell(struct keeper *k, const struct frame *f);
void tools_watch(struct keeper *k);
void tools_forget(struct tools *t);

/* Milliseconds until somebody has waited for too long; -1: nobody waits. */
int tools_patience(const struct tools *t);
void tools_look(struct keeper *k);

#endif
