/* Messages of a stream, joined: the end of what came before and the beginning of a message are searched as one text, so
 * that what is split over messages is found (THREATS T28). Messages are joined with those of their kind, and with all
 * that leaves between them too, in the order in which it leaves: control frames, which overtake the message that they came
 * inside of, and the bytes in front of a message of gRPC.
 *
 * Many small messages would each have the same long text searched again. Where their owner lets several leave together,
 * a small one is searched with the last bytes before it only; what that owes is searched for all of them at once. */
#include <stdlib.h>

#include "core/audit/fingerprint.h"
#include "inspectors/chain_private.h"

/* The last bytes of what came. */
struct tail {
	uint64_t total; /* bytes that came */
	size_t len;
	size_t owed; /* the last of them were not yet searched with all that is before them */
	char bytes[LIMIT_MESSAGE_SPLICE + LIMIT_MESSAGE_OWED];
};

/* A brief message, until it is whole. */
struct coming {
	size_t len;
	char bytes[LIMIT_MESSAGE_OWED];
};

struct chain_stream {
	struct tail data, control, all;
	struct coming coming[2]; /* data, and control inside it */
	struct tail open; /* of a message of data that is not brief: control frames inside it leave before it, ... */
	size_t n_begun;   /* ... and so are searched together with its beginning */
	char begun[LIMIT_MESSAGE_SPLICE];
	uint64_t control_before; /* bytes of control frames when it began */
	bool defers;
	uint64_t told[LIMIT_FINDINGS]; /* fingerprints of what was found last */
	size_t n_told;                 /* of all times */
};

struct chain_stream *chain_stream_new(void)
{
	return calloc(1, sizeof(struct chain_stream));
}

void chain_stream_defer(struct chain_stream *s)
{
	s->defers = true;
}

bool chain_stream_owes(const struct chain_stream *s)
{
	return s->all.owed > 0;
}

void chain_stream_free(struct chain_stream **s)
{
	free(*s);
	*s = NULL;
}

static struct tail *tail_of(const struct chain_run *r)
{
	return r->subject.message == MESSAGE_CONTROL ? &r->stream->control : &r->stream->data;
}

static struct coming *coming_of(const struct chain_run *r)
{
	return &r->stream->coming[r->subject.message == MESSAGE_CONTROL];
}

static void tail_put(struct tail *t, struct slice piece)
{
	t->total += piece.len;
	if (piece.len >= sizeof(t->bytes)) {
		memcpy(t->bytes, piece.ptr + piece.len - sizeof(t->bytes), sizeof(t->bytes));
		t->len = sizeof(t->bytes);
		return;
	}
	size_t keep = t->len < sizeof(t->bytes) - piece.len ? t->len : sizeof(t->bytes) - piece.len;
	memmove(t->bytes, t->bytes + t->len - keep, keep);
	memcpy(t->bytes + keep, piece.ptr, piece.len);
	t->len = keep + piece.len;
}

static void put(struct chain_run *r, struct slice piece, bool owes)
{
	struct tail *tails[] = {tail_of(r), &r->stream->all};
	for (size_t i = 0; i < 2; i++) {
		tail_put(tails[i], piece);
		tails[i]->owed += owes ? piece.len : 0;
	}
}

/* Of a message that is not brief. */
static void put_open(struct chain_run *r, struct slice piece)
{
	struct chain_stream *s = r->stream;
	if (r->subject.message == MESSAGE_CONTROL) {
		put(r, piece, false);
		return;
	}
	struct slice begin = slice_head(piece, sizeof(s->begun) - s->n_begun);
	memcpy(s->begun + s->n_begun, begin.ptr, begin.len);
	s->n_begun += begin.len;
	tail_put(&s->data, piece);
	tail_put(&s->open, piece);
}

/* What was known of the message alone is not told of the splice once more. */
static void look_back(struct chain_run *r, size_t which, struct slice bytes)
{
	struct chain_search *cs = r->spliced[which];
	r->looks_back = true;
	r->back_start = r->spliced_start[which];
	if (cs && chain_looks(r))
		chain_search_result(r, search_feed(cs->search, bytes));
	r->looks_back = false;
}

static void end_look_back(struct chain_run *r, size_t which)
{
	struct chain_search *cs = r->spliced[which];
	r->looks_back = true;
	r->back_start = r->spliced_start[which];
	if (cs && chain_looks(r))
		chain_search_result(r, search_end(cs->search));
	r->looks_back = false;
	chain_search_give_back(r->chain, &r->spliced[which]);
}

/* Up to max bytes of the tail. */
static void splice(struct chain_run *r, size_t which, const struct tail *t, size_t max)
{
	size_t n = t->len < max ? t->len : max;
	if (n == 0 || !chain_looks(r))
		return;
	uint64_t end = r->body_bytes - coming_of(r)->len;
	r->spliced[which] = chain_search_take(r);
	r->spliced_start[which] = end > n ? end - n : 0;
	look_back(r, which, slice_of(t->bytes + t->len - n, n));
}

static void splice_both(struct chain_run *r, size_t max)
{
	const struct tail *own = tail_of(r), *all = &r->stream->all;
	splice(r, 0, own, max);
	if (all->total != own->total)
		splice(r, 1, all, max);
}

static void open_begin(struct chain_stream *s)
{
	s->open.len = 0;
	s->open.total = 0;
	s->n_begun = 0;
	s->control_before = s->control.total;
}

void chain_stream_begin(struct chain_run *r)
{
	r->is_brief = r->stream->defers;
	if (r->subject.message != MESSAGE_CONTROL)
		open_begin(r->stream);
	splice_both(r, r->is_brief ? LIMIT_MESSAGE_BRIEF : sizeof(r->stream->all.bytes));
}

static void feed_both(struct chain_run *r, struct slice piece)
{
	struct slice start = slice_head(piece, LIMIT_MESSAGE_SPLICE - r->spliced_bytes);
	r->spliced_bytes += start.len;
	for (size_t i = 0; i < 2; i++)
		look_back(r, i, start);
}

/* It is a long one, or there are enough others: all that is before it counts. */
static void lengthen(struct chain_run *r)
{
	struct coming *c = coming_of(r);
	struct slice begun = slice_of(c->bytes, c->len);
	for (size_t i = 0; i < 2; i++)
		chain_search_give_back(r->chain, &r->spliced[i]);
	chain_stream_settle(r);
	r->is_brief = false;
	r->spliced_bytes = 0;
	splice_both(r, sizeof(r->stream->all.bytes));
	feed_both(r, begun);
	put_open(r, begun);
	c->len = 0;
}

void chain_stream_piece(struct chain_run *r, struct slice piece)
{
	struct coming *c = coming_of(r);
	if (piece.len == 0)
		return;
	if (r->is_brief && r->stream->all.owed + c->len + piece.len > LIMIT_MESSAGE_OWED)
		lengthen(r);
	feed_both(r, piece);
	if (r->is_brief) {
		memcpy(c->bytes + c->len, piece.ptr, piece.len);
		c->len += piece.len;
		return;
	}
	chain_stream_settle(r); /* control frames may have come inside it */
	put_open(r, piece);
}

void chain_stream_prefix(struct chain_run *r, struct slice prefix)
{
	struct tail *all = &r->stream->all;
	if (all->owed + prefix.len > LIMIT_MESSAGE_OWED)
		chain_stream_settle(r);
	tail_put(all, prefix);
	all->owed += prefix.len;
}

static bool has_told(const struct chain_stream *s, uint64_t fingerprint)
{
	for (size_t i = 0; i < LIMIT_FINDINGS; i++)
		if (s->told[i] == fingerprint)
			return true;
	return false;
}

static void remember(struct chain_stream *s, const struct chain_run *r)
{
	for (size_t i = 0; i < r->n_findings; i++)
		if (r->findings[i].fingerprint != 0 && !has_told(s, r->findings[i].fingerprint))
			s->told[s->n_told++ % LIMIT_FINDINGS] = r->findings[i].fingerprint;
}

/* The message leaves behind all that came inside it. */
static void open_end(struct chain_run *r)
{
	struct chain_stream *s = r->stream;
	if (s->control.total != s->control_before) {
		splice(r, 0, &s->all, sizeof(s->all.bytes));
		look_back(r, 0, slice_of(s->begun, s->n_begun));
		end_look_back(r, 0);
	}
	s->all.total += s->open.total - s->open.len;
	tail_put(&s->all, slice_of(s->open.bytes, s->open.len));
	open_begin(s);
}

void chain_stream_end(struct chain_run *r)
{
	struct coming *c = coming_of(r);
	for (size_t i = 0; i < 2; i++)
		end_look_back(r, i);
	if (r->is_brief && chain_looks(r))
		put(r, slice_of(c->bytes, c->len), true);
	else if (!r->is_brief && r->subject.message != MESSAGE_CONTROL)
		open_end(r);
	c->len = 0;
	remember(r->stream, r);
}

static void search_tail(struct chain_run *r, struct tail *t)
{
	struct chain_search *own = r->spliced[0];
	uint64_t own_start = r->spliced_start[0];
	r->spliced[0] = NULL;
	splice(r, 0, t, sizeof(t->bytes));
	end_look_back(r, 0);
	r->spliced[0] = own;
	r->spliced_start[0] = own_start;
	t->owed = 0;
}

void chain_stream_settle(struct chain_run *r)
{
	struct chain_stream *s = r->stream;
	bool is_mixed = s->all.total != s->data.total - s->open.total && s->all.total != s->control.total;
	if (s->all.owed == 0 || !chain_looks(r))
		return;
	if (s->data.owed > 0)
		search_tail(r, &s->data);
	if (s->control.owed > 0)
		search_tail(r, &s->control);
	if (is_mixed)
		search_tail(r, &s->all);
	s->all.owed = 0;
	remember(s, r);
}

bool chain_stream_has_told(const struct chain_run *r, const struct scan_hit *hit)
{
	return has_told(r->stream, audit_fingerprint(slice_of(r->chain->key, CHAIN_KEY), hit->value));
}
