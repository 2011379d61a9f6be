/* The service, at the keeper's socket. One of them at a time: who connects later takes the place of who was there, and what
 * that had asked for is cancelled. Its numbers of jobs are its own. */
#ifndef CAGE_KEEPER_CLIENT_H
#define CAGE_KEEPER_CLIENT_H

#include "core/base/fifo.h"
#include "orchestrator/inside/frame.h"

struct keeper;

struct client {
	int listening, fd; /* -1: none */
	struct fifo out;
	struct frame_reader in;
};

/* False with errno. */
bool client_listen(struct client *c);
void client_watch(struct keeper *k);

void client_send(struct keeper *k, enum frame_kind kind, uint16_t id, struct slice payload);

/* FRAME_READY: the room stands, and its command has begun or has not. */
void client_tell_ready(struct keeper *k);

/* FRAME_DONE of what the service has asked for: "exit 0"; or "error N". */
void client_answer(struct keeper *k, uint16_t id, struct slice how);
void client_refuse(struct keeper *k, uint16_t id, int why);

/* Does it take no more for now? */
bool client_is_clogged(const struct client *c);

/* What is left is sent, in good time; then nobody listens any more. */
void client_close(struct keeper *k);

#endif
