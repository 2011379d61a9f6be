/* What the log writer needs of a ring beyond ring.h: its account of open intents lives in the ring's memory, so that a
 * new writer finds it, and in the place of a dead worker it closes what that one left open. */
#ifndef CAGE_AUDIT_RING_PRIVATE_H
#define CAGE_AUDIT_RING_PRIVATE_H

#include <stdatomic.h>

#include "core/audit/ring.h"
#include "core/base/limits.h"

/* More intents than this can't be open: one result is kept free for the end of the ring, one for the intent itself. */
#define AUDIT_OPEN_MAX (LIMIT_LOG_RING / LIMIT_LOG_RESULT - 2)

/* An intent whose line is in a batch and whose result is not. Written by the writer, `used` last. */
struct audit_open_slot {
	_Atomic uint32_t used;
	uint32_t who_len;
	uint64_t conn, txn;
	char who[LIMIT_LOG_WHO]; /* JSON members; see struct audit_body */
};

struct audit_open_slot *audit_ring_open_slots(struct audit_ring *r); /* AUDIT_OPEN_MAX of them */

/* The writer looks into the ring now: the next record asks for a new wake-up. */
void audit_ring_look(struct audit_ring *r);

/* The worker is dead and its ring drained: the writer becomes the producer, with the places of n results kept. */
void audit_ring_take_over(struct audit_ring *r, size_t n);

/* Puts a result whose text is ready. false: it has no place. */
bool audit_ring_put_result(struct audit_ring *r, const struct audit_record *rec);

#endif
