/* One producer, one consumer, in memory that both share. Positions are byte counts that only grow; the place in the
 *data is the position modulo the size.
 *
 *	words: | kind and length | ts | conn | txn | text, padded to 8 bytes |   one record
 *
 * A record lies in one piece. Where the end of the data is too near, a pad fills it and the record starts at 0; both
 *are published together by moving head.
 *
 * Room. Each open intent keeps LIMIT_LOG_RESULT bytes. A result may need a pad, shorter than itself, and there is never
 * more than one such pad in the ring; so one more result is kept free for it at all times. */
#include "core/audit/ring.h"

#include "core/audit/ring_private.h"

#define SIZE ((uint64_t)LIMIT_LOG_RING)
#define WORD_BYTES 8
#define HEADER (4 * WORD_BYTES)
#define KIND_PAD 0xff /* up to the end of the data */

_Static_assert((LIMIT_LOG_RING & (LIMIT_LOG_RING - 1)) == 0, "positions are masked");
_Static_assert(LIMIT_LOG_RECORD % WORD_BYTES == 0 && LIMIT_LOG_RESULT % WORD_BYTES == 0, "rooms are whole words");
_Static_assert(LIMIT_LOG_RING / LIMIT_LOG_RECORD >= 4, "a record fits beside kept places");

/* Zero is a good ring: empty, and not available until a writer says so. */
struct audit_ring {
	/* moved by the worker */
	_Alignas(64) _Atomic uint64_t head;
	_Atomic uint64_t lost;
	uint64_t kept; /* bytes promised to results */
	/* moved by the writer */
	_Alignas(64) _Atomic uint64_t tail;
	_Atomic bool available;
	/* moved by both */
	_Alignas(64) _Atomic uint32_t asked; /* wake-ups asked for since the writer looked */
	struct audit_open_slot open[AUDIT_OPEN_MAX];
	_Alignas(64) _Atomic uint64_t words[LIMIT_LOG_RING / WORD_BYTES];
};

enum { ASKED_FIRST = 1, ASKED_QUARTER = 2 };

/* A record on its way into the ring: its text is made in place from e, or copied from rec.body when e is NULL. */
struct draft {
	struct audit_record rec;
	const struct audit_event *e;
	size_t max; /* bytes in the ring, with header */
};

size_t audit_ring_size(void)
{
	return sizeof(struct audit_ring);
}

struct audit_ring *audit_ring_init(void *shared)
{
	return shared;
}

static struct draft draft_of(enum audit_record_kind kind, const struct audit_event *e, size_t max)
{
	return (struct draft){
		.rec = {.kind = kind, .ts_us = e->ts_us, .conn = e->conn, .txn = e->txn}, .e = e, .max = max};
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t padded(size_t n)
{
	return (n + WORD_BYTES - 1) & ~(size_t)(WORD_BYTES - 1);
}

static size_t ring_free(const struct audit_ring *r)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	return (size_t)(SIZE - (head - atomic_load_explicit(&r->tail, memory_order_acquire)));
}

static void word_set(struct audit_ring *r, size_t offset, uint64_t value)
{
	atomic_store_explicit(&r->words[offset / WORD_BYTES], value, memory_order_relaxed);
}

static uint64_t word_get(const struct audit_ring *r, size_t offset)
{
	return atomic_load_explicit(&r->words[offset / WORD_BYTES], memory_order_relaxed);
}

/* Makes the record at offset; returns the bytes it takes, or 0 when it needs more than room. */
static size_t record_write(struct audit_ring *r, size_t offset, size_t room, const struct draft *d)
{
	if (room <= HEADER)
		return 0;
	struct text t = text_in((char *)r->words + offset + HEADER, room - HEADER);
	if (d->e)
		audit_event_write(&t, d->e);
	else
		text_put(&t, d->rec.body);
	if (!text_ok(&t))
		return 0;
	word_set(r, offset, (uint64_t)t.len << 8 | (uint64_t)d->rec.kind);
	word_set(r, offset + WORD_BYTES, d->rec.ts_us);
	word_set(r, offset + 2 * WORD_BYTES, d->rec.conn);
	word_set(r, offset + 3 * WORD_BYTES, d->rec.txn);
	return padded(HEADER + t.len);
}

/* Puts the record behind head, using at most `room` bytes with the pad. */
static bool ring_put(struct audit_ring *r, size_t room, const struct draft *d)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	size_t offset = (size_t)(head & (SIZE - 1));
	size_t to_end = (size_t)SIZE - offset;
	size_t n = record_write(r, offset, min_size(min_size(room, d->max), to_end), d);
	if (n == 0 && to_end < min_size(room, d->max)) {
		n = record_write(r, 0, min_size(room - to_end, d->max), d);
		if (n > 0) {
			word_set(r, offset, KIND_PAD);
			n += to_end;
		}
	}
	if (n > 0)
		atomic_store_explicit(&r->head, head + n, memory_order_release);
	return n > 0;
}

/* Puts the record when `keep` bytes stay free behind it. */
static bool ring_put_beside(struct audit_ring *r, size_t keep, const struct draft *d)
{
	size_t room = ring_free(r);
	return room > keep && ring_put(r, room - keep, d);
}

enum cage_status audit_intent(struct audit_ring *r, const struct audit_event *e)
{
	struct draft d = draft_of(AUDIT_RECORD_INTENT, e, LIMIT_LOG_RECORD);
	if (!atomic_load_explicit(&r->available, memory_order_acquire))
		return CAGE_ELIMIT;
	if (!ring_put_beside(r, (size_t)r->kept + 2 * LIMIT_LOG_RESULT, &d))
		return CAGE_ELIMIT;
	r->kept += LIMIT_LOG_RESULT;
	return CAGE_OK;
}

enum cage_status audit_note(struct audit_ring *r, const struct audit_event *e)
{
	struct draft d = draft_of(AUDIT_RECORD_NOTE, e, LIMIT_LOG_RECORD);
	if (ring_put_beside(r, (size_t)r->kept + LIMIT_LOG_RESULT, &d))
		return CAGE_OK;
	atomic_fetch_add_explicit(&r->lost, 1, memory_order_relaxed);
	return CAGE_ELIMIT;
}

/* Without a kept place, or with a record that does not fit it, the account of this worker is wrong: better that it
 * dies and the writer closes its intents than that a result is lost. */
void audit_result(struct audit_ring *r, const struct audit_event *e)
{
	struct audit_event s = *e;
	struct slice *const spare[] = {&s.path, &s.host, &s.method, &s.rule, &s.alpn, &s.scheme, &s.policy, &s.sandbox};
	struct draft d = draft_of(AUDIT_RECORD_RESULT, &s, LIMIT_LOG_RESULT);
	if (r->kept < LIMIT_LOG_RESULT)
		__builtin_trap();
	bool done = ring_put(r, ring_free(r), &d);
	for (size_t i = 0; !done && i < sizeof(spare) / sizeof(spare[0]); i++) {
		*spare[i] = SLICE_NONE;
		done = ring_put(r, ring_free(r), &d);
	}
	s.n_findings = s.n_injected = s.n_redacted = 0;
	if (!done && !ring_put(r, ring_free(r), &d))
		__builtin_trap();
	r->kept -= LIMIT_LOG_RESULT;
}

bool audit_ring_put_result(struct audit_ring *r, const struct audit_record *rec)
{
	struct draft d = {.rec = *rec, .max = LIMIT_LOG_RESULT};
	if (r->kept < LIMIT_LOG_RESULT || !ring_put(r, ring_free(r), &d))
		return false;
	r->kept -= LIMIT_LOG_RESULT;
	return true;
}

/* True when an intent of any size would be taken. */
bool audit_ring_is_written(const struct audit_ring *r)
{
	return atomic_load_explicit(&r->available, memory_order_acquire);
}

bool audit_is_available(const struct audit_ring *r)
{
	return audit_ring_is_written(r) && ring_free(r) >= r->kept + 2 * LIMIT_LOG_RESULT + 2 * LIMIT_LOG_RECORD;
}

/* Both sides exchange `asked`, so either the writer that looked sees the record or this one asks again. */
bool audit_ring_wants_wakeup(struct audit_ring *r)
{
	size_t pending = audit_ring_pending(r);
	if (pending == 0)
		return false;
	uint32_t ask = pending > SIZE / 4 ? ASKED_FIRST | ASKED_QUARTER : ASKED_FIRST;
	return (ask & ~atomic_fetch_or(&r->asked, ask)) != 0;
}

void audit_ring_look(struct audit_ring *r)
{
	atomic_exchange(&r->asked, 0);
}

void audit_ring_adopt(struct audit_ring *r)
{
	r->kept = 0;
	atomic_store(&r->asked, 0);
}

uint64_t audit_ring_lost(const struct audit_ring *r)
{
	return atomic_load_explicit(&r->lost, memory_order_relaxed);
}

size_t audit_ring_pending(const struct audit_ring *r)
{
	return (size_t)SIZE - ring_free(r);
}

struct audit_open_slot *audit_ring_open_slots(struct audit_ring *r)
{
	return r->open;
}

uint64_t audit_ring_read_position(const struct audit_ring *r)
{
	return atomic_load_explicit(&r->tail, memory_order_relaxed);
}

/* Reads the record at `at`, of which `ready` bytes are published; false when it is none of ours. Each word is read
 * once: whoever holds the other end may change it meanwhile. */
static bool record_read(const struct audit_ring *r, uint64_t at, size_t ready, struct audit_record *out)
{
	size_t offset = (size_t)(at & (SIZE - 1));
	if (ready < HEADER || SIZE - offset < HEADER)
		return false;
	uint64_t first = word_get(r, offset);
	uint64_t len = first >> 8, kind = first & 0xff;
	if (kind < AUDIT_RECORD_NOTE || kind > AUDIT_RECORD_RESULT || len > LIMIT_LOG_RECORD - HEADER)
		return false;
	if (HEADER + padded((size_t)len) > min_size(ready, (size_t)SIZE - offset))
		return false;
	out->kind = (enum audit_record_kind)kind;
	out->ts_us = word_get(r, offset + WORD_BYTES);
	out->conn = word_get(r, offset + 2 * WORD_BYTES);
	out->txn = word_get(r, offset + 3 * WORD_BYTES);
	out->body = slice_of((const char *)r->words + offset + HEADER, (size_t)len);
	return true;
}

bool audit_ring_next(const struct audit_ring *r, uint64_t *at, struct audit_record *out, bool *broken)
{
	uint64_t from = *at;
	uint64_t ready = atomic_load_explicit(&r->head, memory_order_acquire) - from;
	*broken = false;
	if (ready == 0)
		return false;
	*broken = true;
	if (ready > SIZE || ready % WORD_BYTES != 0 || from % WORD_BYTES != 0)
		return false;
	if ((word_get(r, (size_t)(from & (SIZE - 1))) & 0xff) == KIND_PAD) {
		uint64_t pad = SIZE - (from & (SIZE - 1));
		if (pad >= ready)
			return false;
		from += pad;
		ready -= pad;
	}
	if (!record_read(r, from, (size_t)ready, out))
		return false;
	*at = from + HEADER + padded(out->body.len);
	*broken = false;
	return true;
}

void audit_ring_release(struct audit_ring *r, uint64_t at)
{
	atomic_store_explicit(&r->tail, at, memory_order_release);
}

void audit_ring_set_available(struct audit_ring *r, bool available)
{
	atomic_store_explicit(&r->available, available, memory_order_release);
}

/* head is the worker's, and moved only where it can't be that of a worker of ours. */
void audit_ring_reset(struct audit_ring *r)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	if (head % WORD_BYTES != 0) {
		head -= head % WORD_BYTES;
		atomic_store_explicit(&r->head, head, memory_order_release);
	}
	atomic_store_explicit(&r->tail, head, memory_order_release);
}

void audit_ring_take_over(struct audit_ring *r, size_t n)
{
	audit_ring_reset(r);
	r->kept = n * LIMIT_LOG_RESULT;
}
