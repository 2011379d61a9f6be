/* Slots in shared memory, and a hash index with chains over them. Slot numbers are one-based in the links: 0 ends a
 * chain. */
#include "core/audit/intents.h"

#include <stdlib.h>

#include "core/audit/body.h"
#include "core/audit/ring_private.h"
#include "core/base/clock.h"

#define BUCKETS (LIMIT_LOG_RING / LIMIT_LOG_RESULT)

struct open {
	uint64_t conn, txn;
	struct slice who; /* in the ring's memory */
};

struct audit_intents {
	struct audit_ring *ring;
	struct audit_open_slot *slots;
	size_t count;
	uint32_t free;             /* chain of free slots */
	uint32_t buckets[BUCKETS]; /* chains of used ones */
	uint32_t next[AUDIT_OPEN_MAX];
	struct {
		uint64_t conn, txn;
	} key[AUDIT_OPEN_MAX]; /* our own copy: nobody else can change what is indexed */
};

static uint32_t *bucket_of(struct audit_intents *in, uint64_t conn, uint64_t txn)
{
	uint64_t h = (conn * 0x9e3779b97f4a7c15u) ^ (txn * 0xd6e8feb86659fd93u);
	return &in->buckets[(size_t)(h >> 32) & (BUCKETS - 1)];
}

/* The link that points to the slot of that key; what it points to is 0 when there is none. */
static uint32_t *find(struct audit_intents *in, uint64_t conn, uint64_t txn)
{
	uint32_t *link = bucket_of(in, conn, txn);
	while (*link != 0 && !(in->key[*link - 1].conn == conn && in->key[*link - 1].txn == txn))
		link = &in->next[*link - 1];
	return link;
}

static void index_add(struct audit_intents *in, uint32_t slot, uint64_t conn, uint64_t txn)
{
	uint32_t *bucket = bucket_of(in, conn, txn);
	in->key[slot - 1].conn = conn;
	in->key[slot - 1].txn = txn;
	in->next[slot - 1] = *bucket;
	*bucket = slot;
	in->count++;
}

/* Makes the index anew from the slots. */
static void index_build(struct audit_intents *in)
{
	memset(in->buckets, 0, sizeof(in->buckets));
	in->count = in->free = 0;
	for (uint32_t slot = AUDIT_OPEN_MAX; slot > 0; slot--) {
		struct audit_open_slot *s = &in->slots[slot - 1];
		if (atomic_load(&s->used)) {
			index_add(in, slot, s->conn, s->txn);
		} else {
			in->next[slot - 1] = in->free;
			in->free = slot;
		}
	}
}

struct audit_intents *audit_intents_new(struct audit_ring *r)
{
	struct audit_intents *in = calloc(1, sizeof(*in));
	if (!in)
		return NULL;
	in->ring = r;
	in->slots = audit_ring_open_slots(r);
	index_build(in);
	return in;
}

void audit_intents_clear(struct audit_intents *in)
{
	for (size_t i = 0; i < AUDIT_OPEN_MAX; i++)
		atomic_store(&in->slots[i].used, 0);
	index_build(in);
}

void audit_intents_free(struct audit_intents **in)
{
	free(*in);
	*in = NULL;
}

void audit_intents_open(struct audit_intents *in, uint64_t conn, uint64_t txn, struct slice who)
{
	uint32_t slot = in->free;
	if (slot == 0 || *find(in, conn, txn) != 0)
		return;
	in->free = in->next[slot - 1];
	index_add(in, slot, conn, txn);
	struct audit_open_slot *s = &in->slots[slot - 1];
	if (who.len > sizeof(s->who))
		who.len = 0;
	s->conn = conn;
	s->txn = txn;
	s->who_len = (uint32_t)who.len;
	memcpy(s->who, who.ptr, who.len);
	atomic_store(&s->used, 1);
}

void audit_intents_close(struct audit_intents *in, uint64_t conn, uint64_t txn)
{
	uint32_t *link = find(in, conn, txn);
	uint32_t slot = *link;
	if (slot == 0)
		return;
	atomic_store(&in->slots[slot - 1].used, 0);
	*link = in->next[slot - 1];
	in->next[slot - 1] = in->free;
	in->free = slot;
	in->count--;
}

/* The next open intent at or behind slot *at, which starts at 0; false at the end. */
static bool open_next(const struct audit_intents *in, size_t *at, struct open *out)
{
	for (; *at < AUDIT_OPEN_MAX; ++*at) {
		const struct audit_open_slot *s = &in->slots[*at];
		if (!atomic_load(&s->used))
			continue;
		uint32_t len = s->who_len;
		out->conn = in->key[*at].conn;
		out->txn = in->key[*at].txn;
		out->who = slice_of(s->who, len <= sizeof(s->who) ? len : 0);
		++*at;
		return true;
	}
	return false;
}

static struct slice closing_body(struct text *t, const struct open *o)
{
	text_put(t, SLICE("\"event\":\"error\""));
	if (o->who.len > 0)
		text_put_char(t, ',');
	text_put(t, o->who);
	audit_put_id(t, SLICE(",\"conn\":"), o->conn);
	audit_put_id(t, SLICE(",\"txn\":"), o->txn);
	text_put(t, SLICE(",\"decision\":\"error\",\"reason\":\""));
	text_put(t, reason_code(REASON_WORKER_DIED));
	text_put_char(t, '"');
	return text_slice(t);
}

/* The lines go through the dead worker's ring, into the places that its intents kept: so they are written exactly once
 * as well, whatever happens to this process. */
void audit_intents_put_closings(struct audit_intents *in)
{
	char buf[LIMIT_LOG_RESULT];
	struct open o;
	size_t at = 0;
	audit_ring_take_over(in->ring, in->count);
	while (open_next(in, &at, &o)) {
		struct text t = text_in(buf, sizeof(buf));
		struct audit_record rec = {AUDIT_RECORD_RESULT, clock_wall_us(), o.conn, o.txn, closing_body(&t, &o)};
		if (!audit_ring_put_result(in->ring, &rec))
			return;
	}
}
