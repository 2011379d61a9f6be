/* The request of one stream: fields become a head of HTTP/1.1, DATA its body. What the inner stream has not taken is not
 * acknowledged, so the client's windows bound what waits here. */
#include <event2/event.h>

#include "core/base/limits.h"
#include "proxy/h2_server_private.h"

static char head_room[LIMIT_HEAD];

/* ---- lists of fields ---- */

void h2_request_begin(struct h2_stream *st)
{
	arena_free(&st->arena);
	arena_init(&st->arena, LIMIT_TXN_ARENA);
	h2_fields_init(&st->fields, st->in == H2_IN_HEAD ? H2_REQUEST : H2_TRAILERS, &st->arena);
}

enum cage_status h2_request_field(struct h2_stream *st, struct slice name, struct slice value)
{
	return h2_fields_add(&st->fields, name, value);
}

static void forget_fields(struct h2_stream *st)
{
	arena_cleanse(&st->arena);
	arena_free(&st->arena);
	st->fields = (struct h2_fields){0};
}

/* ---- refusals ---- */

static enum reason refusal_reason(enum cage_status why)
{
	if (why == CAGE_ELIMIT)
		return REASON_HEAD_TOO_LARGE;
	return why == CAGE_EPROTO ? REASON_HEAD_MALFORMED : REASON_INTERNAL;
}

static uint32_t refusal_code(enum cage_status why)
{
	if (why == CAGE_ELIMIT)
		return NGHTTP2_ENHANCE_YOUR_CALM;
	return why == CAGE_EPROTO ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_INTERNAL_ERROR;
}

void h2_request_refuse(struct h2_stream *st, enum cage_status why)
{
	struct h2_server *h = st->server;
	bool became_request = st->in != H2_IN_HEAD;
	st->in = H2_IN_REFUSED;
	stream_break(&st->inner, CAGE_EPROTO);
	nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, st->id, refusal_code(why));
	h2_server_send_later(h);
	if (!became_request)
		h->cb->on_malformed(h, refusal_reason(why), h->arg);
}

/* ---- the head ---- */

static enum h2_stream_kind kind_of(const struct h2_fields *f)
{
	if (f->protocol.ptr)
		return H2_STREAM_WEBSOCKET;
	return slice_eq(f->method, SLICE("HEAD")) ? H2_STREAM_HEAD : H2_STREAM_PLAIN;
}

static enum cage_status write_head(struct h2_stream *st, bool end, struct text *head)
{
	if (st->fields.protocol.ptr && !ws_make_nonce(st->nonce))
		return CAGE_ESYS;
	return h2_write_request(&st->fields, end, slice_of(st->nonce, sizeof(st->nonce)), head, &st->body);
}

/* The first request ends the time in which there has to be one. */
static void request_begins(struct h2_server *h)
{
	struct timeval period = loop_ms(LIMIT_STALL_MS / LIMIT_H2_STALL_LOOKS);
	if (h->n_requests++ > 0)
		return;
	if (h->state != H2_SERVER_PARTING)
		stream_set_deadline(h->down, 0);
	event_add(&h->look, &period);
}

void h2_request_head(struct h2_stream *st, bool end)
{
	struct h2_server *h = st->server;
	struct stream *ends[2];
	struct text head = text_in(head_room, sizeof(head_room));
	if (st->in != H2_IN_HEAD)
		return;
	enum cage_status why = write_head(st, end, &head);
	if (why == CAGE_OK && !stream_pair(h->loop, ends, &h2_inner_cb, st))
		why = CAGE_ENOMEM;
	if (why != CAGE_OK) {
		h2_request_refuse(st, why);
		return;
	}
	st->kind = kind_of(&st->fields);
	forget_fields(st);
	st->inner = ends[0];
	stream_write(st->inner, text_slice(&head));
	st->in = H2_IN_BODY;
	if (end)
		h2_request_end(st);
	request_begins(h);
	h->cb->on_request(h, ends[1], h->arg);
}

/* ---- the body ---- */

void h2_request_acknowledge(struct h2_stream *st)
{
	if (st->untaken.stream == 0)
		return;
	h2_untaken_take(&st->untaken, &st->server->windows, st->id);
	h2_server_send_later(st->server);
}

/* The client need not go on with a request that has its answer. */
static void cut_short(struct h2_stream *st)
{
	nghttp2_submit_rst_stream(st->server->session, NGHTTP2_FLAG_NONE, st->id, NGHTTP2_NO_ERROR);
	h2_server_send_later(st->server);
}

static void on_linger(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	cut_short(arg);
}

static void linger_on(struct h2_stream *st)
{
	struct timeval limit = loop_ms(LIMIT_LINGER_MS);
	event_add(&st->linger, &limit);
}

void h2_request_leave(struct h2_stream *st)
{
	st->in = H2_IN_LEFT;
	st->left_us = loop_now_us(st->server->loop);
	stream_close(&st->inner);
	h2_request_acknowledge(st);
	event_assign(&st->linger, loop_base(st->server->loop), -1, 0, on_linger, st);
	linger_on(st);
}

/* A client that is at it has time, but not for ever. */
static void drop_data(struct h2_stream *st, size_t len)
{
	bool was_enough = st->dropped > LIMIT_H2_LINGER_BYTES;
	bool is_late = loop_now_us(st->server->loop) - st->left_us > (uint64_t)LIMIT_FINISH_MS * 1000u;
	st->dropped += len;
	if (was_enough)
		return;
	if (st->dropped > LIMIT_H2_LINGER_BYTES || is_late)
		cut_short(st);
	else
		linger_on(st);
}

void h2_request_data(struct h2_stream *st, struct slice data)
{
	if (st->in == H2_IN_LEFT)
		drop_data(st, data.len);
	h2_untaken_add(&st->untaken, &st->server->windows, data.len);
	if (st->in == H2_IN_BODY && st->inner && h2_body_write(&st->body, st->inner, data) != CAGE_OK)
		h2_request_refuse(st, CAGE_EPROTO);
	if (!st->inner || !stream_is_clogged(st->inner))
		h2_request_acknowledge(st);
}

/* Behind CONNECT and websocket there is no body that could end, only the bytes of one direction. */
static void end_body(struct h2_stream *st, const struct h2_fields *trailers)
{
	bool is_opaque = st->body.framing == BODY_CLOSE;
	if (st->in != H2_IN_BODY || !st->inner)
		return;
	if (h2_body_end(&st->body, st->inner, trailers) != CAGE_OK) {
		h2_request_refuse(st, CAGE_EPROTO);
		return;
	}
	st->in = H2_IN_ENDED;
	if (is_opaque)
		stream_end(st->inner);
}

void h2_request_end(struct h2_stream *st)
{
	end_body(st, NULL);
}

void h2_request_trailers(struct h2_stream *st)
{
	end_body(st, &st->fields);
	forget_fields(st);
}
