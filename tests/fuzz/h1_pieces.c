/* Reads heads and bodies twice, whole and in pieces of sizes that the fuzzer chose, and compares. */
#include "tests/fuzz/h1_pieces.h"

#define MANY_PIECES 64 /* then the rest comes at once */

/* Sizes of pieces out of one number: small ones and large ones in any order. */
struct pieces {
	uint64_t state;
	size_t n;
};

static size_t piece_next(struct pieces *p, size_t left)
{
	p->state = p->state * 6364136223846793005u + 1442695040888963407u;
	size_t size = 1 + (size_t)(p->state >> 40) % ((size_t)1 << (p->state >> 33) % 10);
	return ++p->n > MANY_PIECES || size > left ? left : size;
}

static enum cage_status gate_in_pieces(enum h1_gate_kind kind, struct slice input, uint64_t sizes, size_t *head_len)
{
	struct h1_gate gate = {.kind = kind};
	struct pieces pieces = {.state = sizes};
	enum cage_status st = CAGE_AGAIN;
	for (size_t len = 0; st == CAGE_AGAIN && len < input.len;) {
		len += piece_next(&pieces, input.len - len);
		struct slice seen = fuzz_copy(slice_head(input, len));
		st = h1_gate(&gate, seen, head_len);
		PROMISE(gate.seen <= len);
		fuzz_free(&seen);
	}
	return st;
}

enum cage_status gate_both_ways(enum h1_gate_kind kind, struct slice input, uint64_t sizes, size_t *head_len)
{
	struct h1_gate gate = {.kind = kind};
	size_t len = 0;
	enum cage_status st = h1_gate(&gate, input, head_len);
	PROMISE(gate_in_pieces(kind, input, sizes, &len) == st);
	PROMISE(st != CAGE_OK || (len == *head_len && len <= input.len));
	return st;
}

static void body_add(struct body *b, struct slice data)
{
	if (data.len > 0)
		memcpy(b->data + b->len, data.ptr, data.len);
	b->len += data.len;
}

/* Feeds what there is; what stays unused is a part of trailers. */
static void feed(struct h1_body *reader, struct body *b, struct slice bytes, struct arena *arena)
{
	size_t at = 0;
	do {
		size_t used;
		struct slice data;
		struct slice rest = slice_from(bytes, at);
		b->end = h1_body_feed(reader, rest, arena, &used, &data);
		PROMISE(used <= rest.len && data.len <= used);
		PROMISE(data.len == 0 || (data.ptr >= rest.ptr && data.ptr + data.len <= rest.ptr + used));
		PROMISE(b->end != CAGE_OK || used > 0);
		body_add(b, data);
		at += used;
	} while (b->end == CAGE_OK);
	PROMISE(h1_body_is_done(reader) == (b->end == CAGE_EOF));
	b->used += at;
}

static struct body body_read(const struct message *m, struct slice input, uint64_t sizes, struct arena *arena)
{
	struct h1_body reader;
	struct pieces pieces = {.state = sizes, .n = sizes ? 0 : MANY_PIECES};
	struct body b = {.data = malloc(input.len + 1), .end = CAGE_AGAIN};
	PROMISE(b.data);
	h1_body_init(&reader, m);
	size_t len = 0; /* that have arrived */
	do {
		len += piece_next(&pieces, input.len - len);
		struct slice unused = fuzz_copy(slice_from(slice_head(input, len), b.used));
		feed(&reader, &b, unused, arena);
		fuzz_free(&unused);
	} while (b.end == CAGE_AGAIN && len < input.len);
	b.trailers = reader.trailers;
	b.n_trailers = reader.n_trailers;
	if (b.end == CAGE_AGAIN)
		PROMISE(h1_body_end_of_input(&reader) == (m->framing == BODY_CLOSE ? CAGE_EOF : CAGE_TRUNCATED));
	return b;
}

static void bodies_must_match(const struct body *a, const struct body *b)
{
	PROMISE(slice_eq(slice_of(a->data, a->len), slice_of(b->data, b->len)));
	PROMISE(a->n_trailers == b->n_trailers);
	for (size_t i = 0; i < a->n_trailers; i++) {
		PROMISE(slice_eq(a->trailers[i].name, b->trailers[i].name));
		PROMISE(slice_eq(a->trailers[i].value, b->trailers[i].value));
	}
}

struct body body_both_ways(const struct message *m, struct slice input, uint64_t sizes, struct arena *arena)
{
	struct body whole = body_read(m, input, 0, arena);
	struct body pieces = body_read(m, input, sizes | 1, arena);
	PROMISE(whole.end == pieces.end);
	PROMISE(whole.end != CAGE_EOF || whole.used == pieces.used);
	bodies_must_match(&whole, &pieces);
	body_free(&pieces);
	return whole;
}

void body_free(struct body *b)
{
	free(b->data);
	b->data = NULL;
}

void framing_must_be_clear(const struct message *m)
{
	size_t n = 0;
	for (size_t i = 0; i < m->n_fields; i++)
		n += slice_ieq(m->fields[i].name, SLICE("content-length")) ||
		     slice_ieq(m->fields[i].name, SLICE("transfer-encoding"));
	PROMISE(n <= 1);
}

/* May the writer leave this field out? */
static bool may_be_missing(const struct field *f, enum body_framing framing)
{
	if (field_is_hop_by_hop(f->id))
		return true;
	if (f->id == FIELD_HOST || f->id == FIELD_CONTENT_LENGTH || f->id == FIELD_EXPECT)
		return true;
	if (f->id == FIELD_TRAILER)
		return framing != BODY_CHUNKED;
	return slice_ieq(slice_head(f->name, 7), SLICE("x-cage-"));
}

/* Does the writer make this field itself? */
static bool is_made_afresh(const struct field *f)
{
	return f->id == FIELD_HOST || f->id == FIELD_CONTENT_LENGTH || f->id == FIELD_TRANSFER_ENCODING ||
	       f->id == FIELD_CONNECTION || f->id == FIELD_TE;
}

void fields_must_match(const struct message *first, const struct message *second)
{
	size_t at = 0;
	for (size_t i = 0; i < second->n_fields; i++) {
		const struct field *f = &second->fields[i];
		if (is_made_afresh(f))
			continue;
		PROMISE(!may_be_missing(f, second->framing));
		while (at < first->n_fields && may_be_missing(&first->fields[at], second->framing))
			at++;
		PROMISE(at < first->n_fields);
		PROMISE(slice_eq(f->name, first->fields[at].name) && slice_eq(f->value, first->fields[at].value));
		at++;
	}
	for (; at < first->n_fields; at++)
		PROMISE(may_be_missing(&first->fields[at], second->framing));
}

/* The data in two chunks, so that there is a border between them. */
static void put_chunks(struct text *t, const struct body *b)
{
	struct slice data = slice_of(b->data, b->len);
	while (data.len > 0) {
		struct slice part = fuzz_take(&data, data.len / 2 + 1);
		h1_write_chunk_head(t, part.len);
		text_put(t, part);
		text_put(t, SLICE("\r\n"));
	}
	h1_write_chunk_end(t, b->trailers, b->n_trailers);
}

void body_must_survive(const struct message *m, const struct body *b, struct arena *arena)
{
	size_t room = b->used + b->len + LIMIT_TRAILERS + 1024;
	char *buf = malloc(room);
	PROMISE(buf);
	struct text t = text_in(buf, room);
	if (m->framing == BODY_CHUNKED)
		put_chunks(&t, b);
	else
		text_put(&t, slice_of(b->data, b->len));
	size_t len = t.len;
	text_put(&t, SLICE("0\r\n\r\nGET / HTTP/1.1\r\n\r\n")); /* must not be taken for a part of it */
	PROMISE(text_ok(&t));
	struct body again = body_read(m, text_slice(&t), 0, arena);
	PROMISE(again.end == CAGE_EOF && again.used == len);
	bodies_must_match(b, &again);
	body_free(&again);
	free(buf);
}
