/* The way of an event from a worker to the log writer: one ring per worker in shared memory, one producer, one
 * consumer.
 *
 * An intent (the decision to send something) reserves the place of its result. So a full ring refuses new requests and
 * never loses a result. While the writer can't write, the ring says so and no intent is taken: no log, no traffic.
 * The ring outlives both ends: a new writer goes on where the old one stopped, a new worker too. */
#ifndef CAGE_AUDIT_RING_H
#define CAGE_AUDIT_RING_H

#include "core/audit/event.h"
#include "core/base/slice.h"
#include "core/base/status.h"

struct audit_ring; /* in shared memory; opaque */

/* What a record is to the writer's account of open intents. */
enum audit_record_kind {
	AUDIT_RECORD_NOTE = 1, /* stands alone */
	AUDIT_RECORD_INTENT,   /* opens (conn, txn) */
	AUDIT_RECORD_RESULT    /* closes (conn, txn) */
};

/* Bytes of shared memory that a ring needs. */
size_t audit_ring_size(void);

/* Makes a ring in zeroed shared memory. */
struct audit_ring *audit_ring_init(void *shared);

/* ---- the worker's end ---- */

/* The decision to send. CAGE_OK: taken, and the place of its result is kept. CAGE_ELIMIT: the ring is full or the
 * writer can't write; nothing was taken and nothing may be sent. */
enum cage_status audit_intent(struct audit_ring *r, const struct audit_event *e) MUST_CHECK;

/* The result of an intent of the same conn and txn. Can't fail: its place was kept. */
void audit_result(struct audit_ring *r, const struct audit_event *e);

/* An event that stands alone: a refusal, an error. CAGE_ELIMIT when there is no room beside the kept places: it was
 * not taken, and is counted. */
enum cage_status audit_note(struct audit_ring *r, const struct audit_event *e) MUST_CHECK;

/* Does the writer write? */
bool audit_ring_is_written(const struct audit_ring *r);

/* Could an intent be taken now? */
bool audit_is_available(const struct audit_ring *r);

/* True when the consumer should be woken: more than a quarter full, or first record since it slept. */
bool audit_ring_wants_wakeup(struct audit_ring *r);

/* A worker starts with this ring anew: intents of its predecessor were closed by the writer. */
void audit_ring_adopt(struct audit_ring *r);

uint64_t audit_ring_lost(const struct audit_ring *r);  /* notes that found no room */
size_t audit_ring_pending(const struct audit_ring *r); /* bytes that wait for the writer */

/* ---- the writer's end ---- */

struct audit_record {
	enum audit_record_kind kind;
	uint64_t ts_us, conn, txn;
	struct slice body; /* the line's middle; in the ring until audit_ring_release */
};

/* The next record after `*at` (start with audit_ring_read_position). false: there is none. A record that no
 * worker of ours writes (wrong kind or length) sets *broken: the ring can't be trusted any more. What the body says is for
 * the reader to check, in memory of its own. */
uint64_t audit_ring_read_position(const struct audit_ring *r);
bool audit_ring_next(const struct audit_ring *r, uint64_t *at, struct audit_record *out, bool *broken);

/* Everything before `at` is written. */
void audit_ring_release(struct audit_ring *r, uint64_t at);

/* The writer says whether it can write. */
void audit_ring_set_available(struct audit_ring *r, bool available);

/* Drops what is in a broken ring. */
void audit_ring_reset(struct audit_ring *r);

#endif
