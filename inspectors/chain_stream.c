/* Messages of a stream, joined: the end of what came before and the beginning of a message are searched as one text, so
 * that what is split over messages is found (THREATS T28). Messages are joined with those of their kind, and with all
 * others too, since control frames come between data. */
#include <stdlib.h>

#include "core/audit/fingerprint.h"
#include "inspectors/chain_private.h"

/* The last bytes of what came. */
struct tail {
	uint64_t total; /* bytes that came */
	size_t len;
	char bytes[LIMIT_MESSAGE_SPLICE];
};

struct chain_stream {
	struct tail data, control, all;
	uint64_t told[LIMIT_FINDINGS]; /* fingerprints of what was found last */
	size_t n_told;                 /* of all times */
};

struct chain_stream *chain_stream_new(void)
{
	return calloc(1, sizeof(struct chain_stream));
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

/* What was known of the message alone is not told of the splice once more. */
static void look_back(struct chain_run *r, size_t which, struct slice bytes)
{
	struct chain_search *cs = r->spliced[which];
	r->looks_back = true;
	if (cs && chain_looks(r))
		chain_search_result(r, search_feed(cs->search, bytes));
	r->looks_back = false;
}

static void splice(struct chain_run *r, size_t which, const struct tail *t)
{
	if (t->len == 0 || !chain_looks(r))
		return;
	r->spliced[which] = chain_search_take(r);
	look_back(r, which, slice_of(t->bytes, t->len));
}

void chain_stream_begin(struct chain_run *r)
{
	const struct tail *own = tail_of(r), *all = &r->stream->all;
	splice(r, 0, own);
	if (all->total != own->total)
		splice(r, 1, all);
}

void chain_stream_piece(struct chain_run *r, struct slice piece)
{
	struct slice start = slice_head(piece, LIMIT_MESSAGE_SPLICE - r->spliced_bytes);
	if (piece.len == 0)
		return;
	r->spliced_bytes += start.len;
	for (size_t i = 0; i < 2; i++)
		look_back(r, i, start);
	tail_put(tail_of(r), piece);
	tail_put(&r->stream->all, piece);
}

static void remember(struct chain_stream *s, const struct chain_run *r)
{
	for (size_t i = 0; i < r->n_findings; i++)
		if (r->findings[i].fingerprint != 0)
			s->told[s->n_told++ % LIMIT_FINDINGS] = r->findings[i].fingerprint;
}

void chain_stream_end(struct chain_run *r)
{
	r->looks_back = true;
	for (size_t i = 0; i < 2; i++)
		if (r->spliced[i] && chain_looks(r))
			chain_search_result(r, search_end(r->spliced[i]->search));
	r->looks_back = false;
	remember(r->stream, r);
}

bool chain_stream_has_told(const struct chain_run *r, const struct scan_hit *hit)
{
	const struct chain_stream *s = r->stream;
	uint64_t fingerprint = audit_fingerprint(slice_of(r->chain->key, CHAIN_KEY), hit->value);
	for (size_t i = 0; i < LIMIT_FINDINGS; i++)
		if (s->told[i] == fingerprint)
			return true;
	return false;
}
