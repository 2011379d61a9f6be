/* The writer's account of open intents of one ring: which requests went out and have no result yet. When the worker
 * dies, each of them gets an `error` line.
 *
 * The slots lie in the ring's memory and are found again by a new writer. The index over them is the writer's own. */
#ifndef CAGE_AUDIT_INTENTS_H
#define CAGE_AUDIT_INTENTS_H

#include "core/audit/ring.h"

struct audit_intents;

/* NULL without memory. */
struct audit_intents *audit_intents_new(struct audit_ring *r);
void audit_intents_free(struct audit_intents **in);

/* Opening what is open and closing what is not change nothing, so records may be read again after a crash. Beyond what
 * a ring of ours can have open, intents are not taken down. */
void audit_intents_open(struct audit_intents *in, uint64_t conn, uint64_t txn, struct slice who);
void audit_intents_close(struct audit_intents *in, uint64_t conn, uint64_t txn);

/* The worker is dead and its ring drained: puts an `error` record (worker.died) for each open intent into the ring.
 * They are closed when the writer reads those. */
void audit_intents_put_closings(struct audit_intents *in);

/* Nothing is open any more, whatever the slots said. */
void audit_intents_clear(struct audit_intents *in);

#endif
