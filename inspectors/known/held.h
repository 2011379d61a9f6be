/* What is kept of a text that comes in pieces: the bytes at its end that may be the beginning of a value. The reader
 * sees them once more with the next piece behind them; all else it sees where it is, without a copy. */
#ifndef CAGE_INSPECTORS_KNOWN_HELD_H
#define CAGE_INSPECTORS_KNOWN_HELD_H

#include "core/base/slice.h"
#include "core/base/status.h"

struct held {
	char *buf;
	size_t len, room;
};

/* Reads what begins in the first `limit` bytes of text; what is behind them is there to decide. Answers with the place
 * up to which all is done: at least limit, or less when the rest of the text may be the beginning of a value. */
typedef size_t held_read(void *arg, struct slice text, size_t limit, bool is_end);

/* CAGE_ENOMEM: some of the piece is not read. */
enum cage_status held_feed(struct held *h, struct slice piece, held_read *read, void *arg) MUST_CHECK;

/* The text ends: what is kept is read. */
void held_end(struct held *h, held_read *read, void *arg);

/* Both cleanse. */
void held_clear(struct held *h);
void held_free(struct held *h);

#endif
