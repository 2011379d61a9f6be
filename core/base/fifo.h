/* A queue of bytes in blocks of one TLS record each: what a stream has still to send, what a body holds back.
 * Blocks are recycled, so that steady traffic allocates nothing. */
#ifndef CAGE_BASE_FIFO_H
#define CAGE_BASE_FIFO_H

#include "core/base/slice.h"
#include "core/base/status.h"

#define FIFO_BLOCK 16384

struct fifo_block;

struct fifo {
	struct fifo_block *first, *last;
	size_t len;
	size_t *total;        /* bytes of several, this one's among them; NULL: nobody wants to know */
	bool carries_secrets; /* blocks are overwritten before somebody else gets them; until it is empty */
};

/* Copies s to the end: all of it or, without memory, nothing. */
enum cage_status fifo_put(struct fifo *f, struct slice s) MUST_CHECK;

/* The bytes at the front that lie in one piece; empty only when the fifo is. */
struct slice fifo_front(const struct fifo *f);

/* The piece that starts `offset` bytes behind the front: for reading without taking. */
struct slice fifo_at(const struct fifo *f, size_t offset);

/* Drops n bytes from the front; n is at most f->len. */
void fifo_drop(struct fifo *f, size_t n);

/* Moves the block at the front to the end of another fifo, without a copy, if it holds at most max bytes. How many bytes
 * that were; 0: it holds more, or there is none. */
size_t fifo_move_block(struct fifo *to, struct fifo *from, size_t max);

void fifo_clear(struct fifo *f);

#endif
