/* Responses without the values of secrets: heads, bodies and trailers. A body comes to the client without content codings,
 * since what can't be read can't be cleaned. A short one is held until it is whole, so that its length can be told; a
 * longer one goes on as it comes. */
#include <stdlib.h>

#include "core/http/decode.h"
#include "core/http/grpc.h"
#include "inspectors/known/redact.h"
#include "proxy/keyring.h"
#include "proxy/txn.h"

enum redaction_state {
	REDACTION_HOLDS, /* the head waits for the length of the body */
	REDACTION_FLOWS
};

struct redaction {
	enum redaction_state state;
	struct known_set *values;
	struct redactor *redactor;
	struct decoder *decoder; /* NULL: no coding */
	bool has_messages;       /* of gRPC or its kin */
	struct grpc_reader grpc;
	struct fifo held;
	enum cage_status status; /* what a sink has met */
};

/* ---- what we ask for ---- */

/* "q=0", "q=0.000" */
static bool is_refused(struct slice q)
{
	if (!slice_starts(q, SLICE("q=0")))
		return false;
	for (size_t i = 3; i < q.len; i++)
		if (q.ptr[i] != '.' && q.ptr[i] != '0')
			return false;
	return true;
}

static bool offers_gzip(struct slice list)
{
	while (list.len > 0) {
		struct slice item = slice_trim(slice_cut(&list, ','));
		struct slice name = slice_trim(slice_cut(&item, ';'));
		if ((slice_ieq(name, SLICE("gzip")) || slice_eq(name, SLICE("*"))) && !is_refused(slice_trim(item)))
			return true;
	}
	return false;
}

static const struct slice range_fields[] = {WORD("range"), WORD("if-range"), WORD("request-range")};
static const struct slice other_forms[] = {WORD("accept-charset"), WORD("grpc-accept-encoding"),
					   WORD("connect-accept-encoding")}; /* we read one */

/* Parts of a response could each have a part of a value: not from where values go. */
static bool wants_whole(const struct txn *t)
{
	const struct policy_rule *rule = t->verdict.applies;
	return rule && (rule->n_secrets > 0 || rule->near_secrets);
}

void txn_ask_for_readable(const struct txn *t, struct message *head)
{
	bool whole = wants_whole(t) || !message_field(head, SLICE("range"));
	for (size_t i = 0; i < head->n_fields; i++) {
		struct field *f = &head->fields[i];
		if ((wants_whole(t) && slice_is_one_of(f->name, range_fields, 3)) ||
		    slice_is_one_of(f->name, other_forms, 3))
			f->id = FIELD_DROPPED;
		if (!slice_ieq(f->name, SLICE("accept-encoding")))
			continue;
		/* A part of a coded body could not be read, and not too many can be at once. */
		bool gzip = whole && !decoders_are_scarce() && offers_gzip(f->value);
		f->value = gzip ? SLICE("gzip") : SLICE("identity");
	}
}

/* ---- heads ---- */

static enum cage_status clean(struct txn *t, struct slice *text)
{
	uint64_t found = 0;
	enum cage_status st =
		redact_text(keyring_values(t->gen->keyring), t->placeholders, *text, &t->arena, text, &found);
	t->redacted |= found;
	return st;
}

static enum cage_status clean_fields(struct txn *t, struct field *fields, size_t n)
{
	enum cage_status st = CAGE_OK;
	for (size_t i = 0; i < n && st == CAGE_OK; i++) {
		struct slice name = fields[i].name;
		st = clean(t, &fields[i].value);
		if (st == CAGE_OK)
			st = clean(t, &name);
		if (name.ptr != fields[i].name.ptr)
			fields[i].id = FIELD_DROPPED; /* a placeholder is no name */
	}
	return st;
}

enum cage_status txn_clean_head(struct txn *t, struct slice head)
{
	struct known_match m;
	if (!t->gen->keyring)
		return CAGE_OK;
	if (!keyring_refresh(t->gen->keyring)) /* a token that was got for this very request is to be known */
		return CAGE_ENOMEM;
	if (known_find(keyring_values(t->gen->keyring), head, 0, true, &m) == KNOWN_NONE)
		return CAGE_OK; /* in one look at all of it, as most times */
	enum cage_status st = clean_fields(t, t->resp.fields, t->resp.n_fields);
	return st == CAGE_OK ? clean(t, &t->resp.phrase) : st;
}

enum cage_status txn_clean_trailers(struct txn *t)
{
	return t->redaction ? clean_fields(t, t->resp_body.trailers, t->resp_body.n_trailers) : CAGE_OK;
}

/* ---- bodies ---- */

/* With its codings undone it is longer than what is held: its length can't be told any more. */
static void flow_on(struct txn *t)
{
	t->resp_out = t->req.version == HTTP_11 ? BODY_CHUNKED : BODY_CLOSE;
	t->client_close |= t->resp_out == BODY_CLOSE;
	if (txn_relay_head(t, 0))
		txn_release_redacted(t);
	else
		t->redaction->status = CAGE_EPROTO; /* it is still a clean refusal */
}

static void on_clean(void *arg, struct slice bytes)
{
	struct txn *t = arg;
	struct redaction *r = t->redaction;
	if (r->state == REDACTION_HOLDS && r->held.len + bytes.len > LIMIT_REDACT_HOLD)
		flow_on(t);
	if (r->state == REDACTION_FLOWS)
		txn_pass_piece(t, bytes);
	else if (fifo_put(&r->held, bytes) != CAGE_OK)
		r->status = CAGE_ENOMEM;
}

/* The next of the messages; *rest: what comes behind. Nothing of a message is kept back when it is whole: the client may
 * say no more before it has all of it. */
static enum cage_status redact_message(struct redaction *r, struct slice *rest)
{
	struct grpc_part part = {.kind = GRPC_DATA};
	struct slice all = *rest;
	enum cage_status read = grpc_next(&r->grpc, rest, &part);
	if (read == CAGE_OK && part.is_compressed)
		return CAGE_EPROTO; /* nobody has asked for it, and it can't be read */
	if (read != CAGE_OK && read != CAGE_AGAIN)
		return read; /* a value may stand over what only looked like the end of a message */
	enum cage_status st = redactor_feed(r->redactor, slice_head(all, all.len - rest->len));
	if (st == CAGE_OK && read == CAGE_OK && part.kind == GRPC_END)
		st = redactor_end(r->redactor);
	return st == CAGE_OK ? read : st;
}

/* A piece of what the response says. */
static enum cage_status redact_text_piece(struct redaction *r, struct slice piece)
{
	enum cage_status st = CAGE_OK;
	if (!r->has_messages)
		return redactor_feed(r->redactor, piece);
	while (st == CAGE_OK)
		st = redact_message(r, &piece);
	return st == CAGE_AGAIN ? CAGE_OK : st;
}

static enum cage_status on_decoded(void *arg, unsigned codings, struct slice piece)
{
	struct txn *t = arg;
	return codings == 0 ? redact_text_piece(t->redaction, piece) : CAGE_OK;
}

/* All codings of the response in one list; the fields are not passed on. */
static enum cage_status take_codings(struct txn *t, struct decoder **out)
{
	struct slice list = SLICE_NONE;
	for (size_t i = 0; i < t->resp.n_fields; i++) {
		struct field *f = &t->resp.fields[i];
		if (!slice_ieq(f->name, SLICE("content-encoding")) || f->value.len == 0)
			continue;
		if (list.len > 0)
			return CAGE_EPROTO; /* nobody writes it so */
		list = f->value;
		f->id = FIELD_DROPPED;
	}
	return decoder_new(list, on_decoded, t, out);
}

static const struct slice prefixed_types[] = {
	WORD("application/protobuf"),
	WORD("application/x-protobuf"),
	WORD("application/vnd.google.protobuf"),
	WORD("application/proto"),
};
#define N_PREFIXED_TYPES (sizeof(prefixed_types) / sizeof(prefixed_types[0]))

/* gRPC and Protocol Buffers tell the lengths of what is in them, of which none may change. */
static void look_for_lengths(struct redaction *r, const struct message *head)
{
	const struct field *type = message_field(head, SLICE("content-type"));
	struct slice value = type ? type->value : SLICE_NONE;
	if (r->grpc.kind != GRPC_NONE ||
	    slice_is_one_of(slice_trim(slice_cut(&value, ';')), prefixed_types, N_PREFIXED_TYPES))
		redactor_keep_length(r->redactor);
}

static bool says_compressed(const struct message *head)
{
	struct slice coding = SLICE_NONE, name = grpc_encoding_field(GRPC_TEXT);
	for (size_t i = 0; i < head->n_fields; i++) {
		const struct field *f = &head->fields[i];
		if (slice_ieq(f->name, name) && (grpc_encoding_parse(f->value, &coding) != CAGE_OK || coding.len > 0))
			return true;
	}
	return false;
}

/* Messages are read one by one, of whatever length. In base64 they are not, and must not be called compressed. */
static enum cage_status look_for_messages(struct redaction *r, const struct message *head)
{
	enum grpc_kind kind = grpc_kind_of_message(head);
	r->grpc = (struct grpc_reader){.kind = kind, .any_length = true};
	r->has_messages = kind != GRPC_NONE && kind != GRPC_TEXT;
	return kind == GRPC_TEXT && says_compressed(head) ? CAGE_EPROTO : CAGE_OK;
}

/* Its length is known and short: then it stays so. */
static bool is_short(const struct txn *t)
{
	return t->resp.framing == BODY_LENGTH && t->resp.content_length <= LIMIT_REDACT_HOLD;
}

enum cage_status txn_begin_redaction(struct txn *t)
{
	if (!t->gen->keyring)
		return CAGE_OK;
	if (t->resp.status == 206 && wants_whole(t))
		return CAGE_EPROTO;
	if (t->resp.framing == BODY_NONE)
		return CAGE_OK;
	struct redaction *r = calloc(1, sizeof(*r));
	if (!r)
		return CAGE_ENOMEM;
	t->redaction = r;
	r->state = is_short(t) ? REDACTION_HOLDS : REDACTION_FLOWS;
	r->values = known_set_ref(keyring_values(t->gen->keyring));
	r->redactor = redactor_new(r->values, t->placeholders, on_clean, t);
	if (!r->redactor)
		return CAGE_ENOMEM;
	enum cage_status st = look_for_messages(r, &t->resp);
	look_for_lengths(r, &t->resp);
	return st == CAGE_OK ? take_codings(t, &r->decoder) : st;
}

bool txn_redaction_holds(const struct txn *t)
{
	return t->redaction && t->redaction->state == REDACTION_HOLDS;
}

bool txn_redaction_decodes(const struct txn *t)
{
	return t->redaction && t->redaction->decoder;
}

/* A long response learns of values that come while it flows. */
static enum cage_status learn(struct txn *t)
{
	struct redaction *r = t->redaction;
	if (!keyring_refresh(t->gen->keyring))
		return CAGE_ENOMEM;
	struct known_set *values = keyring_values(t->gen->keyring);
	if (values == r->values)
		return CAGE_OK;
	redactor_set_known(r->redactor, values);
	known_set_unref(&r->values);
	r->values = known_set_ref(values);
	return CAGE_OK;
}

enum cage_status txn_redact_piece(struct txn *t, struct slice piece)
{
	struct redaction *r = t->redaction;
	if (learn(t) != CAGE_OK)
		return CAGE_ENOMEM;
	enum cage_status st = r->decoder ? decoder_feed(r->decoder, piece) : redact_text_piece(r, piece);
	t->redacted |= redactor_found(r->redactor);
	return st == CAGE_OK ? r->status : st;
}

enum cage_status txn_end_redaction(struct txn *t)
{
	struct redaction *r = t->redaction;
	enum cage_status st = r->decoder ? decoder_end(r->decoder) : CAGE_OK;
	if (st == CAGE_OK)
		st = redactor_end(r->redactor);
	t->redacted |= redactor_found(r->redactor);
	return st == CAGE_OK ? r->status : st;
}

uint64_t txn_redaction_length(const struct txn *t)
{
	return t->redaction->held.len;
}

void txn_release_redacted(struct txn *t)
{
	struct redaction *r = t->redaction;
	r->state = REDACTION_FLOWS;
	while (r->held.len > 0) {
		struct slice piece = fifo_front(&r->held);
		txn_pass_piece(t, piece);
		fifo_drop(&r->held, piece.len);
	}
}

void txn_drop_redaction(struct txn *t)
{
	struct redaction *r = t->redaction;
	if (!r)
		return;
	t->redaction = NULL;
	decoder_free(&r->decoder);
	redactor_free(&r->redactor);
	known_set_unref(&r->values);
	fifo_clear(&r->held);
	free(r);
}
