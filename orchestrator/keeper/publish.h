/* Ports of the room that can be connected to from outside: the keeper listens, and cage-inside connects. What is under way of a
 * connection is bounded in both directions (orchestrator/inside/frame.h), so that a slow one holds up no other. */
#ifndef CAGE_KEEPER_PUBLISH_H
#define CAGE_KEEPER_PUBLISH_H

#include "core/base/fifo.h"
#include "core/base/limits.h"

struct keeper;
struct task;

/* conn_enter() alone changes it. */
enum conn_state {
	CONN_FREE,
	CONN_OPEN,
	CONN_FINISHING, /* the room has said all; what is left goes out */
};

struct conn {
	enum conn_state state;
	int fd;
	struct task *task; /* NULL: it is over in the room */
	struct fifo out;   /* for who has connected */
	size_t credit;     /* bytes that may be sent to the room */
	bool has_ended;    /* who has connected says no more */
};

struct publish {
	int listening[LIMIT_KEEPER_PUBLISHED]; /* as the ports of the spec are; -1: not */
	struct conn conns[LIMIT_KEEPER_CONNS];
};

/* Listens, and writes `published`. False with a message. */
bool publish_open(struct keeper *k);
void publish_watch(struct keeper *k);
void publish_close(struct keeper *k);

#endif
