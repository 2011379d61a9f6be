/* The log file: lines, hash chain, reopening, recovery. Runs in the log writer process alone, which alone touches the
 * disk.
 *
 * Records of all rings become lines; each line is written whole, in batches, and its hash covers the line before it.
 * After a crash the chain goes on: a torn last line is cut off, and records that were already written are not written
 * twice. */
#ifndef CAGE_AUDIT_WRITER_H
#define CAGE_AUDIT_WRITER_H

#include "core/audit/ring.h"
#include "core/base/limits.h"
#include "core/base/status.h"

struct audit_writer;

#define AUDIT_ID_BITS 40 /* of a conn or txn: they count; the bits above are its worker's */

/* Where the log goes on: the seq of the next line, and the hash of the last one in hex. */
struct audit_chain {
	uint64_t next_seq;
	char prev[64];
};

/* State that must outlive the writer process, which may be killed between any two of its steps: the chain, and the
 * batch in flight. In shared memory, zero at first. */
struct audit_writer_shared {
	struct audit_chain chain[2]; /* the new one is made beside the good one, then `good` moves */
	_Atomic uint32_t good;       /* 0: none yet, else chain[good - 1] */
	_Atomic bool batch_open;     /* the three below hold */
	uint32_t batch_ring;         /* the ring of the batch in flight */
	uint64_t batch_from;         /* its read position before the batch */
	uint64_t batch_seq;          /* seq of its first line */
	/* By ring: the upper bits of the ids that its worker was told to use. No worker sees this memory. */
	_Atomic uint32_t id_space[LIMIT_WORKERS + 1];
};

/* path: a file, or "-" for stdout. rings[n]: the master's, then those of workers, which may say less; NULL entries are
 * allowed. NULL with a message on stderr when path can't be
 * opened, read back, or its last line is not a line of this log. */
struct audit_writer *audit_writer_new(const char *path, struct audit_writer_shared *shared,
				      struct audit_ring *const *rings, size_t n);

/* From now on a regular file gets no longer than that; LIMIT_LOG_LEAST at least. What does not fit is as with a full disk, but for one
 * line that says so. 0, as at first: there is no bound. turns: instead the file gets the name PATH.old, in the place of the one before, and
 * another one is begun; LIMIT_LOG_TURN at least. */
void audit_writer_bound(struct audit_writer *w, uint64_t most, bool turns);

/* Writes all that is in the rings; after the first success they take intents. CAGE_ESYS: could not write; the rings are
 * marked unavailable, what was not written stays in them, and the next call tries again. */
enum cage_status audit_writer_flush(struct audit_writer *w) MUST_CHECK;

/* From now on no ring takes an intent, whatever comes; what is in the rings can still be written. */
void audit_writer_take_no_more(struct audit_writer *w);

/* fdatasync, when something was written since the last one. CAGE_ESYS: as with audit_writer_flush. */
enum cage_status audit_writer_sync(struct audit_writer *w) MUST_CHECK;

/* Closes and opens the path anew (SIGUSR1). Keeps the old file when the new one can't be opened. */
enum cage_status audit_writer_reopen(struct audit_writer *w) MUST_CHECK;

/* The worker of ring i is dead: drains its ring, then closes each of its open intents with an `error` line
 * (worker.died). */
enum cage_status audit_writer_close_open(struct audit_writer *w, size_t i) MUST_CHECK;

/* Were the records of ring i broken? Its worker must be replaced: it gets no intent through until
 * audit_writer_close_open. */
bool audit_writer_distrusts(const struct audit_writer *w, size_t i);

void audit_writer_free(struct audit_writer **w);

#endif
