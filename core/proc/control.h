/* Messages between the master and its children: one per packet over a socketpair, some with a descriptor. */
#ifndef CAGE_PROC_CONTROL_H
#define CAGE_PROC_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/status.h"
#include "core/proc/seat.h"

enum control_type {
	CONTROL_READY = 1, /* child to master: at work. From a worker, gen is the last change it has */
	CONTROL_SEAT, /* to a worker: what is at seat `index` from generation gen on; its policy is in the descriptor */
	CONTROL_HELPER,      /* to a worker: the descriptor leads to a new helper */
	CONTROL_CLIENT,      /* to the helper: the descriptor comes from worker `index` */
	CONTROL_DRAIN,       /* to a worker: accept nothing more, end what is idle, exit when done */
	CONTROL_WORKER_DIED, /* to the log writer: close what the worker of ring `index` left open */
	CONTROL_CLOSED,      /* from the log writer: done so for ring `index`; its next worker may start */
	CONTROL_BROKEN,      /* from the log writer: the worker of ring `index` wrote what no worker of ours writes */
	CONTROL_REOPEN,      /* to the log writer */
	CONTROL_STOP         /* to the log writer and the helper: finish and exit */
};

struct control {
	uint32_t type;
	uint32_t index;
	uint64_t gen;
	struct seat seat;
};

/* Two connected ends, close-on-exec; false with errno. */
bool control_pair(int ends[2]);

/* fd: sent along, or -1. CAGE_OK, CAGE_AGAIN (the other side does not read) or CAGE_ESYS. */
enum cage_status control_send(int sock, const struct control *msg, int fd) MUST_CHECK;

/* *fd is -1 or the receiver's to close. CAGE_OK, CAGE_AGAIN, CAGE_EOF (the other side is gone) or CAGE_ESYS. */
enum cage_status control_receive(int sock, struct control *msg, int *fd) MUST_CHECK;

/* The same in a child that an event has told of a message; without its master it ends here. false: there is none. */
bool control_from_master(int sock, struct control *msg, int *fd) MUST_CHECK;

#endif
