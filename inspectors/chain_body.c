/* The body of a request, or a message behind one: its codings are undone, and what it says is offered to the inspectors and
 * searched. The messages in a body of gRPC are searched one by one, each together with the end of what came before, so
 * that each may leave as soon as it is whole. */
#include "core/base/text.h"
#include "inspectors/chain_private.h"
#include "inspectors/guard.h"

/* ---- the head's fields ---- */

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

/* ---- what it says ---- */

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

/* A text begins: all of a body, or a message in it. */
static void text_begin(struct chain_run *r)
{
	r->body = chain_search_take(r);
	r->text_start = r->body_bytes;
	if (r->grpc && chain_looks(r))
		chain_stream_begin(r);
}

/* A piece of what the body says. */
static enum cage_status text_piece(struct chain_run *r, struct slice piece)
{
	if (!r->body)
		text_begin(r);
	OFFER(r, on_body, (to, piece))
	if (chain_looks(r))
		chain_search_result(r, search_feed(r->body->search, piece));
	if (chain_looks(r) && r->body_bytes == r->text_start && joined_applies(piece))
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

/* Nothing of the text is left to be decided on. */
static void text_end(struct chain_run *r)
{
	if (chain_looks(r) && r->body)
		chain_search_result(r, search_end(r->body->search));
	if (chain_looks(r) && r->joined)
		chain_search_result(r, search_end(r->joined->search));
	if (chain_looks(r))
		guard_end_body(r);
	if (r->stream)
		chain_stream_end(r);
}

/* The next text has searches of its own; between two of them none is kept busy. */
static void text_forget(struct chain_run *r)
{
	chain_search_give_back(r->chain, &r->body);
	chain_search_give_back(r->chain, &r->joined);
	for (size_t i = 0; i < 2; i++)
		chain_search_give_back(r->chain, &r->spliced[i]);
	r->join = (struct joined){0};
	r->spliced_bytes = 0;
	r->placed = 0;
	r->deep = (struct finding){0};
}

/* A message of gRPC begins. */
static enum cage_status message_begin(void *arg, struct slice prefix)
{
	struct chain_run *r = arg;
	chain_stream_prefix(r, prefix);
	return chain_looks(r) ? CAGE_OK : CAGE_EPROTO;
}

/* It may leave now, if there is nothing against it. */
static enum cage_status message_end(void *arg)
{
	struct chain_run *r = arg;
	text_end(r);
	OFFER(r, on_pause, (to))
	text_forget(r);
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

static enum cage_status grpc_begin(struct chain_run *r, enum grpc_kind kind)
{
	struct grpc_sink sink = {.begin = message_begin, .piece = message_piece, .end = message_end, .arg = r};
	bool ok;
	struct slice encoding = field_list(r, grpc_encoding_field(kind), &ok);
	r->own_stream = r->stream = chain_stream_new();
	if (r->stream)
		chain_stream_defer(r->stream);
	r->grpc = arena_alloc(r->arena, sizeof(*r->grpc));
	return ok && r->stream && r->grpc ? grpc_inflate_init(r->grpc, kind, encoding, &sink) : CAGE_ENOMEM;
}

/* CAGE_EPROTO: messages are compressed, in a body of which they are not read one by one. */
static enum cage_status refuse_compressed(struct chain_run *r, enum grpc_kind kind)
{
	bool ok;
	struct slice coding, encoding = field_list(r, grpc_encoding_field(kind), &ok);
	enum cage_status st = ok ? grpc_encoding_parse(encoding, &coding) : CAGE_ENOMEM;
	return st == CAGE_OK && coding.len > 0 ? CAGE_EPROTO : st;
}

/* In base64 it is read as any text is. */
static enum cage_status grpc_text_begin(struct chain_run *r)
{
	text_begin(r);
	return refuse_compressed(r, GRPC_TEXT);
}

/* Servers there are that go by the field that says how messages are compressed, whatever the type of the body is. */
static enum cage_status other_begin(struct chain_run *r)
{
	text_begin(r);
	enum cage_status st = refuse_compressed(r, GRPC_NATIVE);
	return st == CAGE_OK ? refuse_compressed(r, GRPC_CONNECT) : st;
}

static void body_begin(struct chain_run *r)
{
	bool ok = true;
	struct slice codings =
		r->stream ? SLICE_NONE : field_list(r, SLICE("content-encoding"), &ok); /* messages have none */
	r->state = RUN_BODY;
	decode_result(r, ok ? decoder_new(codings, body_piece, r, &r->decoder) : CAGE_ENOMEM);
	enum grpc_kind kind = r->stream ? GRPC_NONE : grpc_kind_of_message(r->subject.head);
	if (kind == GRPC_TEXT)
		decode_result(r, grpc_text_begin(r));
	else if (kind != GRPC_NONE)
		decode_result(r, grpc_begin(r, kind));
	else if (r->stream)
		text_begin(r);
	else
		decode_result(r, other_begin(r));
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
	if (r->grpc && r->stream)
		chain_stream_settle(r); /* whole messages of this piece may leave now */
	return chain_verdict(r);
}

uint64_t chain_whole(const struct chain_run *r)
{
	return r->grpc && !r->decoder ? r->grpc->whole : 0;
}

static void body_end(struct chain_run *r)
{
	if (r->decoder)
		decode_result(r, decoder_end(r->decoder));
	if (r->grpc && chain_looks(r))
		decode_result(r, grpc_inflate_end(r->grpc));
	for (size_t i = 0; i < LIMIT_CODINGS + 1 && chain_looks(r); i++)
		if (r->coded[i])
			chain_search_result(r, search_end(r->coded[i]->search));
	text_end(r);
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

enum chain_verdict chain_settle(struct chain_run *r, struct chain_stream *s)
{
	r->stream = s;
	chain_stream_settle(r);
	return chain_verdict(r);
}
