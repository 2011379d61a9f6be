/* Running the inspectors. A step of the chain offers its piece to each inspector that is on and not done, in order; the
 * first finding that blocks ends it. */
#include <limits.h>
#include <stdlib.h>

#include "core/base/text.h"
#include "inspectors/chain_private.h"
#include "inspectors/guard.h"

enum chain_verdict chain_verdict(const struct chain_run *r)
{
	if (r->state == RUN_BLOCKED)
		return CHAIN_BLOCK;
	for (size_t i = 0; i < n_inspectors; i++)
		if (r->list[i].state == INSPECTION_HOLDING)
			return CHAIN_HOLD;
	return CHAIN_PASS;
}

/* ---- the body ---- */

static struct slice join(struct arena *arena, struct slice a, struct slice b)
{
	char *buf = arena_alloc(arena, a.len + 1 + b.len);
	struct text t = text_in(buf, buf ? a.len + 1 + b.len : 0);
	text_put(&t, a);
	text_put_char(&t, ',');
	text_put(&t, b);
	return text_slice(&t);
}

/* All values of the fields of that name in one list; *ok false without memory. */
static struct slice field_list(struct chain_run *r, struct slice name, bool *ok)
{
	const struct message *head = r->subject.head;
	struct slice all = SLICE_NONE;
	*ok = true;
	for (size_t i = 0; i < head->n_fields; i++) {
		const struct field *f = &head->fields[i];
		if (!slice_ieq(f->name, name))
			continue;
		all = all.len == 0 ? f->value : join(r->arena, all, f->value);
		*ok = *ok && (all.len > 0 || f->value.len == 0);
	}
	return all;
}

/* A part of a value, in which a plus sign is a blank. */
static enum cage_status joined_part(struct chain_run *r, struct slice part)
{
	char room[2048];
	enum cage_status st = CAGE_OK;
	while (part.len > 0 && st == CAGE_OK) {
		size_t n = part.len < sizeof(room) ? part.len : sizeof(room);
		for (size_t i = 0; i < n; i++)
			room[i] = part.ptr[i] == '+' ? ' ' : part.ptr[i];
		st = search_feed(r->joined->search, slice_of(room, n));
		part = slice_from(part, n);
	}
	return st;
}

static enum cage_status joined_piece(struct chain_run *r, struct slice piece)
{
	enum cage_status st = CAGE_OK;
	while (piece.len > 0 && st == CAGE_OK)
		st = joined_part(r, joined_next(&r->join, &piece));
	return st;
}

/* A coding has room for text that it does not decode to. */
static enum cage_status coded_piece(struct chain_run *r, struct chain_search **cs, struct slice piece)
{
	if (!*cs)
		*cs = chain_search_take(r);
	if (*cs)
		chain_search_result(r, search_feed((*cs)->search, piece));
	return chain_looks(r) ? CAGE_OK : CAGE_EPROTO;
}

/* A piece of what the body says. */
static enum cage_status text_piece(struct chain_run *r, struct slice piece)
{
	OFFER(r, on_body, (to, piece))
	if (chain_looks(r))
		chain_search_result(r, search_feed(r->body->search, piece));
	if (chain_looks(r) && r->body_bytes == 0 && joined_applies(piece))
		r->joined = chain_search_take(r);
	if (chain_looks(r) && r->joined)
		chain_search_result(r, joined_piece(r, piece));
	if (chain_looks(r) && r->stream)
		chain_stream_piece(r, piece);
	r->body_bytes += piece.len;
	return chain_looks(r) ? CAGE_OK : CAGE_EPROTO;
}

/* A piece with its codings undone, or on the way there. */
static enum cage_status body_piece(void *arg, unsigned codings, struct slice piece)
{
	struct chain_run *r = arg;
	if (codings > 0)
		return coded_piece(r, &r->coded[codings - 1], piece);
	return r->grpc ? grpc_inflate_feed(r->grpc, piece) : text_piece(r, piece);
}

/* The same of a message. */
static enum cage_status message_piece(void *arg, unsigned codings, struct slice piece)
{
	struct chain_run *r = arg;
	return codings > 0 ? coded_piece(r, &r->coded[LIMIT_CODINGS], piece) : text_piece(r, piece);
}

/* What stands in two messages is one text: a secret may be split over them. */
static enum cage_status message_end(void *arg)
{
	const struct chain_run *r = arg;
	return chain_looks(r) ? CAGE_OK : CAGE_EPROTO;
}

/* What the decoder says, when it was not we who stopped it. */
static void decode_result(struct chain_run *r, enum cage_status st)
{
	if (st != CAGE_OK && chain_looks(r))
		chain_fault(r, st == CAGE_ENOMEM  ? REASON_INTERNAL
			       : st == CAGE_AGAIN ? REASON_LIMIT_HOLD
						  : REASON_BODY_UNDECODABLE);
}

/* One type of several is enough: nobody knows which of them the server goes by. */
static bool is_grpc(const struct chain_run *r)
{
	const struct message *head = r->subject.head;
	for (size_t i = 0; i < head->n_fields; i++)
		if (slice_ieq(head->fields[i].name, SLICE("content-type")) &&
		    grpc_is_content_type(head->fields[i].value))
			return true;
	return false;
}

static enum cage_status grpc_begin(struct chain_run *r)
{
	struct grpc_sink sink = {.piece = message_piece, .end = message_end, .arg = r};
	bool ok;
	struct slice encoding = field_list(r, SLICE("grpc-encoding"), &ok);
	r->grpc = arena_alloc(r->arena, sizeof(*r->grpc));
	return ok && r->grpc ? grpc_inflate_init(r->grpc, encoding, &sink) : CAGE_ENOMEM;
}

static void body_begin(struct chain_run *r)
{
	bool ok = true;
	struct slice codings =
		r->stream ? SLICE_NONE : field_list(r, SLICE("content-encoding"), &ok); /* messages have none */
	r->state = RUN_BODY;
	r->body = chain_search_take(r);
	decode_result(r, ok ? decoder_new(codings, body_piece, r, &r->decoder) : CAGE_ENOMEM);
	if (is_grpc(r))
		decode_result(r, grpc_begin(r));
}

enum chain_verdict chain_body(struct chain_run *r, struct slice piece)
{
	if (r->state == RUN_HEAD)
		body_begin(r);
	if (!chain_looks(r))
		return chain_verdict(r);
	OFFER(r, on_raw, (to, piece))
	if (!chain_looks(r))
		return chain_verdict(r);
	if (r->decoder)
		decode_result(r, decoder_feed(r->decoder, piece));
	else
		decode_result(r, body_piece(r, 0, piece));
	r->raw_bytes += piece.len;
	return chain_verdict(r);
}

static void body_end(struct chain_run *r)
{
	if (r->decoder)
		decode_result(r, decoder_end(r->decoder));
	if (r->grpc && chain_looks(r))
		decode_result(r, grpc_inflate_end(r->grpc));
	if (chain_looks(r))
		chain_search_result(r, search_end(r->body->search));
	if (chain_looks(r) && r->joined)
		chain_search_result(r, search_end(r->joined->search));
	for (size_t i = 0; i < LIMIT_CODINGS + 1 && chain_looks(r); i++)
		if (r->coded[i])
			chain_search_result(r, search_end(r->coded[i]->search));
	if (chain_looks(r))
		guard_end_body(r);
	if (r->stream)
		chain_stream_end(r);
}

static void look_at_trailers(struct chain_run *r, const struct field *trailers, size_t n)
{
	struct head_text text;
	if (head_text_make_trailers(trailers, n, r->arena, &text) != CAGE_OK) {
		chain_fault(r, REASON_INTERNAL);
		return;
	}
	chain_search_head(r, &text);
	OFFER(r, on_trailers, (to, trailers, n))
}

enum chain_verdict chain_end(struct chain_run *r, const struct field *trailers, size_t n)
{
	if (r->state == RUN_BODY)
		body_end(r);
	if (n > 0 && chain_looks(r))
		look_at_trailers(r, trailers, n);
	OFFER(r, on_end, (to))
	return chain_verdict(r);
}

enum chain_verdict chain_message(struct chain_run *r, struct chain_stream *s)
{
	r->stream = s;
	body_begin(r);
	OFFER(r, on_message, (to))
	if (chain_looks(r))
		chain_stream_begin(r);
	return chain_verdict(r);
}

/* ---- the head ---- */

static void search_name(struct chain_run *r)
{
	struct head_text text;
	if (subject_host_is_listed(&r->subject))
		return;
	if (head_text_make_name(&r->subject, r->arena, &text) == CAGE_OK)
		chain_search_head(r, &text);
	else
		chain_fault(r, REASON_INTERNAL);
}

static void search_head(struct chain_run *r)
{
	struct head_text text;
	if (head_text_make(&r->subject, r->arena, &text) == CAGE_OK)
		chain_search_head(r, &text);
	else
		chain_fault(r, REASON_INTERNAL);
}

/* Nothing was searched behind what ended the run, and yet it is going to be in the log. */
static enum chain_verdict head_verdict(struct chain_run *r)
{
	if (!chain_looks(r))
		r->hides |= chain_places_to_hide(r->chain, r->arena, &r->subject);
	return chain_verdict(r);
}

enum chain_verdict chain_name(struct chain_run *r)
{
	OFFER(r, on_name, (to))
	if (chain_verdict(r) == CHAIN_HOLD)
		chain_fault(r, REASON_INTERNAL); /* a name is judged at once, or not at all */
	if (chain_looks(r))
		search_name(r);
	return head_verdict(r);
}

enum chain_verdict chain_head(struct chain_run *r)
{
	OFFER(r, on_head, (to))
	if (chain_looks(r))
		search_head(r);
	return head_verdict(r);
}

/* Nobody is told what is found, but for the places that must not be shown. */
static void no_owner(void *arg)
{
	(void)arg;
}

unsigned chain_places_to_hide(struct chain *c, struct arena *arena, const struct subject *subject)
{
	static const struct message no_head;
	struct chain_owner owner = {.resume = no_owner};
	struct subject s = *subject;
	s.head = s.search_head = &no_head;
	unsigned all = subject_host_is_listed(&s) ? ~(1u << PLACE_HOST) : UINT_MAX;
	struct chain_run *r = chain_begin(c, arena, &s, true, &owner);
	if (!r)
		return all;
	r->mode = RUN_LISTS;
	search_head(r);
	if (chain_looks(r))
		search_name(r);
	unsigned hides = chain_looks(r) ? r->hides : all;
	chain_finish(&r);
	return hides;
}

/* ---- life ---- */

struct chain *chain_new(const struct policy *p, struct ledger *ledger, const unsigned char key[CHAIN_KEY])
{
	struct chain *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->policy = p;
	c->conf = p->inspectors;
	c->ledger = ledger;
	memcpy(c->key, key, CHAIN_KEY);
	if (c->conf->n_formats == 0)
		return c;
	c->own = scan_set_load(c->conf->formats, c->conf->n_formats, &c->conf->databases);
	if (!c->own)
		chain_free(&c);
	return c;
}

void chain_free(struct chain **cp)
{
	struct chain *c = *cp;
	if (!c)
		return;
	chain_set_known(c, NULL);
	chain_search_free_all(c);
	scan_set_free(&c->own);
	free(c);
	*cp = NULL;
}

void chain_set_external(struct chain *c, struct external *e)
{
	c->external = e;
}

void chain_set_known(struct chain *c, struct known_set *known)
{
	struct known_set *next = known && !known_set_is_empty(known) ? known_set_ref(known) : NULL;
	if (next != c->known)
		chain_search_free_all(c); /* they look for what was known before */
	if (c->known)
		known_set_unref(&c->known);
	c->known = next;
}

struct chain_run *chain_begin(struct chain *c, struct arena *arena, const struct subject *subject, bool observe,
			      const struct chain_owner *owner)
{
	struct chain_run *r = arena_alloc(arena, sizeof(*r));
	struct inspection *list = arena_array(arena, n_inspectors, sizeof(*list));
	if (!r || !list)
		return NULL;
	*r = (struct chain_run){.chain = c,
				.arena = arena,
				.subject = *subject,
				.mode = observe ? RUN_OBSERVES : RUN_ENFORCES,
				.list = list,
				.owner = *owner};
	for (size_t i = 0; i < n_inspectors; i++) {
		list[i] = (struct inspection){.by = inspectors[i],
					      .conf = &c->conf->list[i],
					      .run = r,
					      .own = arena_alloc(arena, inspectors[i]->state_size)};
		if (!list[i].own)
			return NULL;
	}
	r->known = c->known ? known_set_ref(c->known) : NULL;
	return r;
}

const struct finding *chain_block(const struct chain_run *r)
{
	return r->block.by ? &r->block : NULL;
}

bool chain_hides(const struct chain_run *r, enum place place)
{
	return (r->hides >> place & 1) != 0;
}

bool chain_hides_names(const struct chain_run *r)
{
	return r->hides_names;
}

uint64_t chain_retry_after_us(const struct chain_run *r)
{
	return r->retry_after_us;
}

const struct finding *chain_findings(const struct chain_run *r, size_t *n)
{
	*n = r->n_findings;
	return r->findings;
}

void chain_finish(struct chain_run **rp)
{
	struct chain_run *r = *rp;
	if (!r)
		return;
	*rp = NULL;
	for (size_t i = 0; i < n_inspectors; i++)
		if (r->list[i].by->release)
			r->list[i].by->release(&r->list[i]);
	decoder_free(&r->decoder);
	if (r->grpc)
		grpc_inflate_release(r->grpc);
	chain_search_give_back(r->chain, &r->body);
	chain_search_give_back(r->chain, &r->joined);
	for (size_t i = 0; i < LIMIT_CODINGS + 1; i++)
		chain_search_give_back(r->chain, &r->coded[i]);
	for (size_t i = 0; i < 2; i++)
		chain_search_give_back(r->chain, &r->spliced[i]);
	if (r->known)
		known_set_unref(&r->known);
}
