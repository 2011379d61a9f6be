/* From HTTP/2 fields to a head of HTTP/1.1, and from DATA to its body. */
#include "proxy/h2_text.h"

#include <openssl/crypto.h>

#include "core/base/limits.h"
#include "core/http/chars.h"
#include "core/http/h1.h"

static void put_field(struct text *t, struct slice name, struct slice value)
{
	text_put(t, name);
	text_put(t, SLICE(": "));
	text_put(t, value);
	text_put(t, SLICE("\r\n"));
}

static bool is_cookie(const struct field *f)
{
	return slice_eq(f->name, SLICE("cookie"));
}

/* HTTP/2 may cut a cookie into crumbs; HTTP/1.1 has one field (RFC 9113, 8.2.3). from: the first of them. */
static void put_cookies(struct text *t, const struct h2_fields *f, size_t from)
{
	text_put(t, SLICE("cookie: "));
	text_put(t, f->fields[from].value);
	for (size_t i = from + 1; i < f->n_fields; i++) {
		if (!is_cookie(&f->fields[i]))
			continue;
		text_put(t, SLICE("; "));
		text_put(t, f->fields[i].value);
	}
	text_put(t, SLICE("\r\n"));
}

static void put_fields(struct text *t, const struct h2_fields *f)
{
	bool cookies_are_out = false;
	for (size_t i = 0; i < f->n_fields; i++) {
		const struct field *field = &f->fields[i];
		if (f->kind != H2_REQUEST || !is_cookie(field)) {
			put_field(t, field->name, field->value);
		} else if (!cookies_are_out) {
			put_cookies(t, f, i);
			cookies_are_out = true;
		}
	}
}

static void put_length(struct text *t, uint64_t n)
{
	text_put(t, SLICE("content-length: "));
	text_put_u64(t, n);
	text_put(t, SLICE("\r\n"));
}

static void put_framing(struct text *t, const struct h2_body *b)
{
	if (b->framing == BODY_LENGTH)
		put_length(t, b->left);
	else if (b->framing == BODY_CHUNKED)
		put_field(t, SLICE("transfer-encoding"), SLICE("chunked"));
}

static enum cage_status head_end(struct text *t)
{
	text_put(t, SLICE("\r\n"));
	return text_ok(t) && t->len <= LIMIT_HEAD ? CAGE_OK : CAGE_ELIMIT;
}

/* The body of a message that may have one: its length, or chunks; where the stream has ended and no length was given,
 * `without`. CAGE_EPROTO: it has a length and has already ended. */
static enum cage_status frame(const struct h2_fields *f, bool end, enum body_framing without, struct h2_body *body)
{
	*body = (struct h2_body){.framing = BODY_CHUNKED};
	if (f->has_content_length)
		*body = (struct h2_body){.framing = BODY_LENGTH, .left = f->content_length};
	else if (end)
		body->framing = without;
	return end && body->left > 0 ? CAGE_EPROTO : CAGE_OK;
}

/* ---- requests ---- */

static bool is_websocket(const struct h2_fields *f)
{
	return f->protocol.ptr != NULL;
}

static bool is_connect(const struct h2_fields *f)
{
	return slice_eq(f->method, SLICE("CONNECT"));
}

/* Nothing that would end it inside of a URL, and no userinfo; which host it is gets checked with the HTTP/1.1 head. */
static bool is_authority(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!char_is(s.ptr[i], CHAR_TARGET) || strchr("/?#@\\", s.ptr[i]))
			return false;
	return s.len > 0;
}

/* Where :authority is left out, Host stands for it. */
static struct slice authority_of(const struct h2_fields *f)
{
	return f->authority.ptr ? f->authority : f->host;
}

static bool is_path(const struct h2_fields *f)
{
	if (slice_eq(f->path, SLICE("*")))
		return slice_eq(f->method, SLICE("OPTIONS"));
	return slice_starts(f->path, SLICE("/"));
}

/* In the form with an asterisk the target has no host in which HTTP/1.1 could see that two differ. */
static bool hosts_can_be_compared(const struct h2_fields *f)
{
	bool has_both = f->authority.ptr && f->host.ptr;
	return !has_both || !slice_eq(f->path, SLICE("*")) || slice_ieq(f->authority, f->host);
}

/* RFC 8441: a CONNECT that has a path; the key belongs to HTTP/1.1 and is ours to make. */
static bool is_good_websocket(const struct h2_fields *f)
{
	for (size_t i = 0; i < f->n_fields; i++)
		if (slice_eq(f->fields[i].name, SLICE("sec-websocket-key")))
			return false;
	return is_connect(f) && slice_eq(f->protocol, SLICE("websocket")) && !f->has_content_length;
}

static bool is_good_request(const struct h2_fields *f)
{
	if (f->method.len == 0 || f->method.len > LIMIT_METHOD || char_span(f->method, CHAR_TOKEN) != f->method.len ||
	    !is_authority(authority_of(f)))
		return false;
	if (is_connect(f) && !is_websocket(f))
		return f->authority.ptr && !f->scheme.ptr && !f->path.ptr && !f->has_content_length;
	if (is_websocket(f) && !is_good_websocket(f))
		return false;
	return slice_eq(f->scheme, SLICE("https")) && is_path(f) && hosts_can_be_compared(f);
}

static void put_request_line(struct text *t, const struct h2_fields *f)
{
	text_put(t, is_websocket(f) ? SLICE("GET") : f->method);
	text_put_char(t, ' ');
	if (slice_eq(f->path, SLICE("*"))) {
		text_put_char(t, '*');
	} else {
		if (f->path.ptr)
			text_put(t, SLICE("https://"));
		text_put(t, authority_of(f));
		text_put(t, f->path);
	}
	text_put(t, SLICE(" HTTP/1.1\r\n"));
}

static void put_upgrade(struct text *t, struct slice ws_key)
{
	put_field(t, SLICE("upgrade"), SLICE("websocket"));
	put_field(t, SLICE("connection"), SLICE("upgrade"));
	put_field(t, SLICE("sec-websocket-key"), ws_key);
}

/* CONNECT and websocket have bytes of their own behind the head, not a body. */
static enum cage_status frame_request(const struct h2_fields *f, bool end, struct h2_body *body)
{
	if (!is_connect(f))
		return frame(f, end, BODY_NONE, body);
	*body = (struct h2_body){.framing = BODY_CLOSE};
	return end && is_websocket(f) ? CAGE_EPROTO : CAGE_OK;
}

enum cage_status h2_write_request(const struct h2_fields *f, bool end, struct slice ws_key, struct text *t,
				  struct h2_body *body)
{
	if (!is_good_request(f) || frame_request(f, end, body) != CAGE_OK)
		return CAGE_EPROTO;
	put_request_line(t, f);
	put_field(t, SLICE("host"), f->host.ptr ? f->host : f->authority);
	if (is_websocket(f))
		put_upgrade(t, ws_key);
	put_fields(t, f);
	put_framing(t, body);
	return head_end(t);
}

/* ---- responses ---- */

int h2_fields_status(const struct h2_fields *f)
{
	uint64_t status;
	return f->status.len == 3 && slice_to_u64(f->status, 599, &status) && status >= 100 ? (int)status : 0;
}

static void put_status_line(struct text *t, const struct h2_fields *f)
{
	text_put(t, SLICE("HTTP/1.1 "));
	text_put(t, f->status);
	text_put(t, SLICE(" \r\n"));
}

/* HEAD and 304 may tell the length of what they do not have; it is kept. */
static enum cage_status frame_response(const struct h2_fields *f, bool end, struct slice method, struct h2_body *body)
{
	int status = h2_fields_status(f);
	enum cage_status st = CAGE_OK;
	if (status == 204 || status == 304 || slice_eq(method, SLICE("HEAD")))
		*body = (struct h2_body){.framing = BODY_NONE};
	else
		st = frame(f, end, BODY_LENGTH, body);
	body->carries_secrets = true;
	return st;
}

/* Another head follows, so this one has no body and the stream goes on. */
static enum cage_status write_interim(const struct h2_fields *f, bool end, struct text *t)
{
	if (end || f->has_content_length)
		return CAGE_EPROTO;
	put_status_line(t, f);
	put_fields(t, f);
	return head_end(t);
}

enum cage_status h2_write_response(const struct h2_fields *f, bool end, struct slice method, struct text *t,
				   struct h2_body *body)
{
	int status = h2_fields_status(f);
	if (status == 0 || status == 101)
		return CAGE_EPROTO; /* HTTP/2 has no upgrade */
	if (status < 200)
		return write_interim(f, end, t);
	if (frame_response(f, end, method, body) != CAGE_OK)
		return CAGE_EPROTO;
	put_status_line(t, f);
	put_fields(t, f);
	put_framing(t, body);
	if (body->framing == BODY_NONE && f->has_content_length && status != 204)
		put_length(t, f->content_length);
	return head_end(t);
}

/* ---- bodies ---- */

static void put(const struct h2_body *b, struct stream *s, struct slice bytes)
{
	(b->carries_secrets ? stream_write_secret : stream_write)(s, bytes);
}

static void put_chunk(const struct h2_body *b, struct stream *s, struct slice data)
{
	char room[H1_CHUNK_HEAD];
	struct text t = text_in(room, sizeof(room));
	h1_write_chunk_head(&t, data.len);
	put(b, s, text_slice(&t));
	put(b, s, data);
	put(b, s, SLICE("\r\n"));
}

enum cage_status h2_body_write(struct h2_body *b, struct stream *s, struct slice data)
{
	if (data.len == 0)
		return CAGE_OK; /* an empty chunk would be the last */
	switch (b->framing) {
	case BODY_NONE:
		return CAGE_EPROTO;
	case BODY_LENGTH:
		if (data.len > b->left)
			return CAGE_EPROTO;
		b->left -= data.len;
		put(b, s, data);
		return CAGE_OK;
	case BODY_CHUNKED:
		put_chunk(b, s, data);
		return CAGE_OK;
	case BODY_CLOSE:
		put(b, s, data);
		return CAGE_OK;
	}
	return CAGE_EPROTO;
}

/* The list was counted when it was collected: it fits. */
static void put_end(const struct h2_body *b, struct stream *s, const struct h2_fields *trailers)
{
	char room[LIMIT_TRAILERS + H1_CHUNK_HEAD];
	struct text t = text_in(room, sizeof(room));
	(b->framing == BODY_CHUNKED ? h1_write_chunk_end : h1_write_trailers)(&t, trailers ? trailers->fields : NULL,
									      trailers ? trailers->n_fields : 0);
	put(b, s, text_slice(&t));
	if (b->carries_secrets)
		OPENSSL_cleanse(room, t.len);
}

enum cage_status h2_body_end(struct h2_body *b, struct stream *s, const struct h2_fields *trailers)
{
	if (b->framing == BODY_LENGTH && b->left > 0)
		return CAGE_EPROTO;
	if (b->framing == BODY_CHUNKED || b->framing == BODY_LENGTH)
		put_end(b, s, trailers);
	b->framing = BODY_NONE;
	return CAGE_OK;
}
