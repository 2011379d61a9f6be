/* Rings -> batches of lines -> file.
 *
 * A batch comes from one ring. Its start is noted in shared memory before the write; after it the chain moves, then the
 * ring's read position, then the note is taken away. So a new writer can tell from the file, or without one from the
 * chain, how many records of an unfinished batch are written, and skips them. The account of open intents is kept while
 * the batch is made: reading the same records again leaves it the same. */
#include "core/audit/writer.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/audit/body.h"
#include "core/audit/chain.h"
#include "core/audit/intents.h"
#include "core/audit/logfile.h"
#include "core/audit/ring_private.h"
#include "core/base/say.h"

#define MASTER_RING 0
#define NO_RING UINT32_MAX /* a batch of the writer's own */

/* A ring as the writer sees it. */
struct source {
	struct audit_ring *ring; /* NULL: none */
	struct audit_intents *intents;
	bool distrusted; /* it was broken: takes no intent until its worker is replaced */
};

/* Lines on their way; empty when len is 0. */
struct batch {
	struct text text;
	size_t sent;
	uint32_t ring;
	uint64_t upto;            /* read position behind the batch */
	struct audit_chain after; /* the chain behind the batch */
};

/* The rings take intents only in WRITER_GOOD. */
enum writer_health {
	WRITER_NEW, /* nothing was written yet: nobody knows whether it can be */
	WRITER_GOOD,
	WRITER_FAILED
};

struct audit_writer {
	char *path;
	struct audit_writer_shared *shared;
	struct logfile file;
	struct audit_hasher hasher;
	struct audit_who last_who;
	struct audit_chain chain;
	struct batch batch;
	enum writer_health health;
	bool is_closing; /* nothing new is taken any more */
	bool unsynced;
	uint64_t most; /* bytes of the file; 0: any */
	bool turns;    /* then another one is begun */
	bool is_full;  /* so it was said in the file */
	size_t n;
	struct source sources[];
};

/* ---- shared state ---- */

static void shared_set_chain(struct audit_writer_shared *s, const struct audit_chain *c)
{
	uint32_t other = atomic_load(&s->good) == 1 ? 2 : 1;
	s->chain[other - 1] = *c;
	atomic_store(&s->good, other);
}

static void shared_open_batch(struct audit_writer *w, uint32_t ring)
{
	w->shared->batch_ring = ring;
	w->shared->batch_from = ring == NO_RING ? 0 : audit_ring_read_position(w->sources[ring].ring);
	w->shared->batch_seq = w->chain.next_seq;
	atomic_store(&w->shared->batch_open, true);
}

/* ---- availability ---- */

static void mark_ring(struct audit_writer *w, struct source *src)
{
	audit_ring_set_available(src->ring, w->health == WRITER_GOOD && !w->is_closing && !src->distrusted);
}

static void mark_rings(struct audit_writer *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->sources[i].ring)
			mark_ring(w, &w->sources[i]);
}

void audit_writer_take_no_more(struct audit_writer *w)
{
	w->is_closing = true;
	mark_rings(w);
}

static enum cage_status fail(struct audit_writer *w)
{
	int why = errno;
	if (w->health != WRITER_FAILED)
		say("log %s: %s: no traffic until it can be written", w->path, strerror(why));
	w->health = WRITER_FAILED;
	mark_rings(w);
	errno = why;
	return CAGE_ESYS;
}

static void became_good(struct audit_writer *w)
{
	if (w->health == WRITER_FAILED)
		say("log %s: can be written again", w->path);
	w->health = WRITER_GOOD;
	mark_rings(w);
}

/* ---- batches ---- */

/* Sends what is left of the batch and accounts for it. */
static enum cage_status batch_send(struct audit_writer *w)
{
	struct batch *b = &w->batch;
	if (b->text.len == 0)
		return CAGE_OK;
	if (logfile_write(&w->file, text_slice(&b->text), &b->sent) != CAGE_OK)
		return fail(w);
	w->unsynced = true;
	w->chain = b->after;
	shared_set_chain(w->shared, &w->chain);
	if (b->ring != NO_RING)
		audit_ring_release(w->sources[b->ring].ring, b->upto);
	atomic_store(&w->shared->batch_open, false);
	b->text.len = b->sent = 0;
	return CAGE_OK;
}

static void batch_start(struct audit_writer *w, uint32_t ring)
{
	w->batch.text.len = w->batch.sent = 0;
	w->batch.ring = ring;
	w->batch.after = w->chain;
}

static bool is_id_of(const struct audit_writer *w, uint32_t ring, uint64_t id)
{
	return id == 0 || (ring <= LIMIT_WORKERS && id >> AUDIT_ID_BITS == atomic_load(&w->shared->id_space[ring]));
}

/* A worker tells of its own connections only, and of nothing else. */
static bool may_say(const struct audit_writer *w, uint32_t ring, const struct audit_record *rec,
		    const struct audit_body *body)
{
	if (body->conn != rec->conn || body->txn != rec->txn || !is_id_of(w, ring, rec->conn) ||
	    !is_id_of(w, ring, rec->txn))
		return false;
	return ring == MASTER_RING || ring == NO_RING || audit_body_is_of_worker(body);
}

/* Appends one line. CAGE_EPROTO: it is not one that this ring may bring. On failure nothing was appended. The body is
 * checked in our own memory, where nobody can change it any more. */
static enum cage_status batch_add(struct audit_writer *w, const struct audit_record *rec, struct audit_body *parts)
{
	struct batch *b = &w->batch;
	struct text text = b->text;
	struct audit_chain after = b->after;
	struct slice body = rec->body;
	if (!audit_chain_add(&after, &w->hasher, &text, rec->ts_us, &body))
		return CAGE_ENOMEM;
	if (!audit_body_check(body, &w->last_who, parts) || !may_say(w, b->ring, rec, parts))
		return CAGE_EPROTO;
	b->text = text;
	b->after = after;
	return CAGE_OK;
}

static enum cage_status batch_add_record(struct audit_writer *w, struct source *src, const struct audit_record *rec)
{
	struct audit_body parts;
	enum cage_status st = batch_add(w, rec, &parts);
	if (st == CAGE_OK && rec->kind == AUDIT_RECORD_INTENT)
		audit_intents_open(src->intents, rec->conn, rec->txn, parts.who);
	if (st == CAGE_OK && rec->kind == AUDIT_RECORD_RESULT)
		audit_intents_close(src->intents, rec->conn, rec->txn);
	return st;
}

/* Makes a batch of what is in ring i. CAGE_EPROTO: there is something behind the batch that no worker of ours wrote. */
static enum cage_status batch_fill(struct audit_writer *w, uint32_t i)
{
	struct source *src = &w->sources[i];
	struct audit_record rec;
	enum cage_status st = CAGE_OK;
	bool broken = false;
	uint64_t at = audit_ring_read_position(src->ring);
	batch_start(w, i);
	while (st == CAGE_OK && w->batch.text.room - w->batch.text.len >= AUDIT_LINE_MAX &&
	       audit_ring_next(src->ring, &at, &rec, &broken)) {
		st = batch_add_record(w, src, &rec);
		if (st == CAGE_OK)
			w->batch.upto = at;
	}
	return broken ? CAGE_EPROTO : st;
}

/* ---- the bound ---- */

void audit_writer_bound(struct audit_writer *w, uint64_t most, bool turns)
{
	w->most = most;
	w->turns = turns;
}

/* Is there room for the batch, and for so much behind it? */
static bool fits(const struct audit_writer *w, size_t behind)
{
	return w->most == 0 || logfile_size(&w->file) + w->batch.text.len + behind <= w->most;
}

/* One line that comes from no ring. */
static enum cage_status write_own(struct audit_writer *w, struct slice body)
{
	struct audit_record rec = {.kind = AUDIT_RECORD_NOTE, .ts_us = clock_wall_us(), .body = body};
	struct audit_body parts;
	batch_start(w, NO_RING);
	if (batch_add(w, &rec, &parts) != CAGE_OK)
		return fail(w);
	if (!fits(w, 0)) {
		w->batch.text.len = 0;
		errno = EFBIG;
		return fail(w);
	}
	shared_open_batch(w, NO_RING);
	return batch_send(w);
}

/* Ring i holds what no worker of ours writes: what is left in it is dropped, said once, and its worker gets no traffic.
 */
static enum cage_status distrust(struct audit_writer *w, uint32_t i)
{
	struct source *src = &w->sources[i];
	bool known = src->distrusted;
	src->distrusted = true;
	mark_ring(w, src);
	audit_ring_reset(src->ring);
	if (known)
		return CAGE_OK;
	say("log %s: worker %u: broken records in its ring, dropped", w->path, (unsigned)i);
	return write_own(w, SLICE("\"event\":\"error\",\"decision\":\"error\",\"reason\":\"internal.error\","
				  "\"stage\":\"log\""));
}

/* What was not written stays in its ring. The last line says why there are no more. */
static enum cage_status refuse_more(struct audit_writer *w)
{
	const bool is_known = w->is_full;
	w->batch.text.len = 0;
	w->is_full = true;
	if (!is_known && write_own(w, SLICE("\"event\":\"error\",\"decision\":\"error\",\"reason\":\"log.unavailable\","
					    "\"stage\":\"log\"")) != CAGE_OK)
		return CAGE_ESYS;
	errno = EFBIG;
	return fail(w);
}

/* Begins another file. False: it is as before, or has its new name and is still written to; the next try goes on from there. */
static bool turn(struct audit_writer *w)
{
	char old[PATH_MAX];
	if (!w->turns || snprintf(old, sizeof(old), "%s.old", w->path) >= (int)sizeof(old))
		return false;
	if (logfile_is_at(&w->file, w->path) && rename(w->path, old) != 0) {
		say("log %s: can't be renamed to %s: %s", w->path, old, strerror(errno));
		return false;
	}
	return audit_writer_reopen(w) == CAGE_OK;
}

/* Writes what is in ring i, and at most one ring full of what comes meanwhile. */
static enum cage_status drain(struct audit_writer *w, uint32_t i)
{
	struct audit_ring *ring = w->sources[i].ring;
	uint64_t start = audit_ring_read_position(ring);
	enum cage_status st;
	audit_ring_look(ring);
	do {
		st = batch_fill(w, i);
		if (st == CAGE_ENOMEM) {
			errno = ENOMEM;
			return fail(w);
		}
		if (w->batch.text.len == 0)
			break;
		if (!fits(w, AUDIT_LINE_MAX) && !turn(w)) /* which is for the last one */
			return refuse_more(w);
		shared_open_batch(w, i);
		if (batch_send(w) != CAGE_OK)
			return CAGE_ESYS;
	} while (audit_ring_read_position(ring) - start < LIMIT_LOG_RING);
	return st == CAGE_EPROTO ? distrust(w, i) : CAGE_OK;
}

enum cage_status audit_writer_flush(struct audit_writer *w)
{
	if (batch_send(w) != CAGE_OK)
		return CAGE_ESYS;
	for (uint32_t i = 0; i < w->n; i++)
		if (w->sources[i].ring && drain(w, i) != CAGE_OK)
			return CAGE_ESYS;
	if (w->health == WRITER_FAILED && logfile_sync(&w->file) != CAGE_OK)
		return CAGE_ESYS;
	if (w->health != WRITER_GOOD)
		became_good(w);
	return CAGE_OK;
}

enum cage_status audit_writer_sync(struct audit_writer *w)
{
	if (!w->unsynced)
		return CAGE_OK;
	if (logfile_sync(&w->file) != CAGE_OK)
		return fail(w);
	w->unsynced = false;
	return CAGE_OK;
}

enum cage_status audit_writer_close_open(struct audit_writer *w, size_t i)
{
	if (i >= w->n || !w->sources[i].ring)
		return CAGE_OK;
	struct source *src = &w->sources[i];
	if (batch_send(w) != CAGE_OK || drain(w, (uint32_t)i) != CAGE_OK)
		return CAGE_ESYS;
	audit_intents_put_closings(src->intents);
	if (drain(w, (uint32_t)i) != CAGE_OK)
		return CAGE_ESYS;
	audit_intents_clear(src->intents);
	src->distrusted = false;
	mark_ring(w, src);
	return CAGE_OK;
}

/* ---- opening and closing ---- */

/* The file's last line is where this log stopped: where the chain is, or within the batch that was in flight. */
static bool goes_on(const struct audit_writer_shared *s, const struct audit_chain *known, const struct audit_chain *end)
{
	if (audit_chain_eq(known, end))
		return true;
	return atomic_load(&s->batch_open) && known->next_seq == s->batch_seq && end->next_seq > s->batch_seq;
}

static bool stops_elsewhere(const struct audit_writer *w)
{
	say("log %s: does not end where this log stopped", w->path);
	return false;
}

/* Finds where the chain goes on. */
static bool find_chain(struct audit_writer *w)
{
	uint32_t good = atomic_load(&w->shared->good);
	struct audit_chain known = good ? w->shared->chain[good - 1] : audit_chain_start();
	struct audit_chain end;
	bool empty = true;
	if (!logfile_read_end(&w->file, w->path, &w->hasher, &end, &empty))
		return false;
	if (!empty && good && !goes_on(w->shared, &known, &end))
		return stops_elsewhere(w);
	w->chain = empty ? known : end;
	return true;
}

/* Skips what the writer before us wrote of its last batch and did not get to release. */
static void finish_batch(struct audit_writer *w)
{
	struct audit_writer_shared *s = w->shared;
	struct audit_ring *ring = s->batch_ring < w->n ? w->sources[s->batch_ring].ring : NULL;
	struct audit_record rec;
	bool broken = false;
	shared_set_chain(s, &w->chain);
	if (atomic_load(&s->batch_open) && ring && audit_ring_read_position(ring) == s->batch_from) {
		uint64_t written = w->chain.next_seq - s->batch_seq, at = s->batch_from;
		while (written > 0 && audit_ring_next(ring, &at, &rec, &broken))
			written--;
		audit_ring_release(ring, at);
	}
	atomic_store(&s->batch_open, false);
}

static bool add_sources(struct audit_writer *w, struct audit_ring *const *rings, size_t n)
{
	for (; w->n < n; w->n++) {
		struct source *src = &w->sources[w->n];
		src->ring = rings[w->n];
		if (src->ring && !(src->intents = audit_intents_new(src->ring)))
			return false;
	}
	return true;
}

/* A reader that goes away and a size limit are errors of the write, not the end of this process. */
static void ignore_write_signals(void)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

struct audit_writer *audit_writer_new(const char *path, struct audit_writer_shared *shared,
				      struct audit_ring *const *rings, size_t n)
{
	struct audit_writer *w = calloc(1, sizeof(*w) + n * sizeof(w->sources[0]));
	if (!w)
		return NULL;
	w->shared = shared;
	w->path = strdup(path);
	w->batch.text = text_in(malloc(LIMIT_LOG_BATCH), LIMIT_LOG_BATCH);
	if (!w->path || !w->batch.text.ptr || !audit_hasher_init(&w->hasher) || !add_sources(w, rings, n)) {
		say("log %s: out of memory", path);
		goto out;
	}
	ignore_write_signals();
	if (!logfile_open(&w->file, path) || !find_chain(w))
		goto out;
	finish_batch(w);
	return w;
out:
	audit_writer_free(&w);
	return NULL;
}

/* A file that another log, or an older part of this one, was written to is no place to go on. */
static bool can_go_on_in(struct audit_writer *w, struct logfile *f)
{
	struct audit_chain end;
	bool empty;
	if (!logfile_read_end(f, w->path, &w->hasher, &end, &empty))
		return false;
	return empty || audit_chain_eq(&end, &w->chain) || stops_elsewhere(w);
}

enum cage_status audit_writer_reopen(struct audit_writer *w)
{
	struct logfile next;
	if (audit_writer_sync(w) != CAGE_OK)
		return CAGE_ESYS;
	if (logfile_is_at(&w->file, w->path))
		return CAGE_OK;
	if (!logfile_open(&next, w->path))
		return CAGE_ESYS;
	if (!can_go_on_in(w, &next)) {
		logfile_close(&next);
		return CAGE_ESYS;
	}
	logfile_close(&w->file);
	w->file = next;
	w->batch.sent = 0;
	w->is_full = false;
	return CAGE_OK;
}

bool audit_writer_distrusts(const struct audit_writer *w, size_t i)
{
	return w->sources[i].distrusted;
}

void audit_writer_free(struct audit_writer **wp)
{
	struct audit_writer *w = *wp;
	if (!w)
		return;
	if (w->file.kind != LOGFILE_CLOSED) {
		if (audit_writer_sync(w) != CAGE_OK)
			say("log %s: its last lines may not be on the disk", w->path);
		logfile_close(&w->file);
	}
	for (size_t i = 0; i < w->n; i++)
		audit_intents_free(&w->sources[i].intents);
	audit_hasher_free(&w->hasher);
	free(w->batch.text.ptr);
	free(w->path);
	free(w);
	*wp = NULL;
}
