/* Heads and chunks out. Every byte is written afresh, so nothing odd about a peer's spelling reaches the other side. */
#include "core/http/h1.h"

#include "core/http/chars.h"

static void put_field(struct text *t, struct slice name, struct slice value)
{
	text_put(t, name);
	text_put(t, SLICE(": "));
	text_put(t, value);
	text_put(t, SLICE("\r\n"));
}

/* Is this a field that goes on as it is? */
static bool goes_on(const struct field *f, enum body_framing framing)
{
	if (f->id == FIELD_TRAILER)
		return framing == BODY_CHUNKED;
	if (f->id == FIELD_HOST || f->id == FIELD_CONTENT_LENGTH || f->id == FIELD_EXPECT)
		return false;
	/* Only cage speaks in X-Cage fields: a server must not be able to forge a refusal. */
	if (f->name.len >= 7 && slice_ieq(slice_head(f->name, 7), SLICE("x-cage-")))
		return false;
	/* HTTP/3 and other ways to the same server are not ours. */
	if (slice_ieq(f->name, SLICE("alt-svc")))
		return false;
	return !field_is_hop_by_hop(f->id);
}

static void put_fields(struct text *t, const struct message *m, enum body_framing framing)
{
	for (size_t i = 0; i < m->n_fields; i++)
		if (goes_on(&m->fields[i], framing))
			put_field(t, m->fields[i].name, m->fields[i].value);
}

static void put_framing(struct text *t, const struct h1_out *o)
{
	if (o->framing == BODY_CHUNKED) {
		put_field(t, SLICE("Transfer-Encoding"), SLICE("chunked"));
	} else if (o->framing == BODY_LENGTH || o->declare_length) {
		text_put(t, SLICE("Content-Length: "));
		text_put_u64(t, o->content_length);
		text_put(t, SLICE("\r\n"));
	}
}

/* TE belongs to one connection, so Connection has to name it (RFC 9110, 10.1.4). */
static void put_connection(struct text *t, const struct h1_out *o)
{
	if (o->websocket) {
		put_field(t, SLICE("Connection"), SLICE("Upgrade"));
		put_field(t, SLICE("Upgrade"), SLICE("websocket"));
		return;
	}
	if (o->keep_trailer_te)
		put_field(t, SLICE("TE"), SLICE("trailers"));
	if (o->keep_trailer_te && o->close)
		put_field(t, SLICE("Connection"), SLICE("TE, close"));
	else if (o->keep_trailer_te)
		put_field(t, SLICE("Connection"), SLICE("TE"));
	else if (o->close)
		put_field(t, SLICE("Connection"), SLICE("close"));
}

static void put_rest(struct text *t, const struct message *m, const struct h1_out *o)
{
	put_fields(t, m, o->framing);
	put_framing(t, o);
	put_connection(t, o);
	text_put(t, SLICE("\r\n"));
}

void h1_write_request(struct text *t, const struct message *m, const struct h1_out *o)
{
	text_put(t, m->method);
	text_put_char(t, ' ');
	text_put(t, o->target);
	text_put(t, SLICE(" HTTP/1.1\r\n"));
	put_field(t, SLICE("Host"), o->host);
	put_rest(t, m, o);
}

void h1_write_response(struct text *t, const struct message *m, const struct h1_out *o)
{
	text_put(t, SLICE("HTTP/1.1 "));
	text_put_u64(t, (uint64_t)m->status);
	text_put_char(t, ' ');
	if (char_span(m->phrase, CHAR_VALUE) == m->phrase.len)
		text_put(t, m->phrase);
	text_put(t, SLICE("\r\n"));
	put_rest(t, m, o);
}

void h1_write_chunk_head(struct text *t, size_t n)
{
	static const char hex[] = "0123456789abcdef";
	char digits[sizeof(n) * 2];
	size_t at = sizeof(digits);
	do {
		digits[--at] = hex[n & 15];
		n >>= 4;
	} while (n);
	text_put(t, slice_of(digits + at, sizeof(digits) - at));
	text_put(t, SLICE("\r\n"));
}

void h1_write_trailers(struct text *t, const struct field *trailers, size_t n_trailers)
{
	for (size_t i = 0; i < n_trailers; i++)
		if (trailers[i].id != FIELD_DROPPED)
			put_field(t, trailers[i].name, trailers[i].value);
	text_put(t, SLICE("\r\n"));
}

void h1_write_chunk_end(struct text *t, const struct field *trailers, size_t n_trailers)
{
	text_put(t, SLICE("0\r\n"));
	h1_write_trailers(t, trailers, n_trailers);
}
