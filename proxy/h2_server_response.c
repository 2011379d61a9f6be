/* The response of one stream: HTTP/1.1 from the inner stream becomes HEADERS and DATA. nghttp2 asks for bytes of the body
 * when the client's windows have room for them; until then they stay in the inner stream, whose writer has to wait. */
#include "core/base/limits.h"
#include "proxy/h2_server_private.h"

/* ---- the body ---- */

/* CAGE_OK: there may be more. A piece of a trailer section is not taken until it is whole, however little is asked for. */
static enum cage_status take_piece(struct h2_stream *st, uint8_t *buf, size_t room, size_t *n)
{
	struct slice input = stream_input(st->inner);
	struct slice step = slice_head(input, room);
	struct slice data = SLICE_NONE;
	size_t used = 0;
	enum cage_status got = h1_body_feed(&st->reply, step, &st->server->scratch, &used, &data);
	if (got == CAGE_AGAIN && used == 0 && step.len < input.len)
		got = h1_body_feed(&st->reply, input, &st->server->scratch, &used, &data);
	if (data.len > 0)
		memcpy(buf, data.ptr, data.len);
	*n = data.len;
	st->taken += used;
	stream_consume(st->inner, used);
	return got == CAGE_AGAIN && used > 0 ? CAGE_OK : got;
}

/* As much as there is room for. CAGE_AGAIN: the inner stream has no more now. */
static enum cage_status take_body(struct h2_stream *st, uint8_t *buf, size_t room, size_t *total)
{
	enum cage_status got = CAGE_OK;
	*total = 0;
	while (got == CAGE_OK && *total < room) {
		size_t n = 0;
		got = take_piece(st, buf + *total, room - *total, &n);
		*total += n;
	}
	if (got != CAGE_AGAIN || *total > 0 || st->inner_end == CAGE_OK)
		return got;
	return st->inner_end == CAGE_EOF ? h1_body_end_of_input(&st->reply) : CAGE_TRUNCATED;
}

/* The last DATA does not end the stream when trailers follow. */
static bool finish_body(struct h2_stream *st, uint32_t *flags)
{
	struct h2_server *h = st->server;
	struct h2_nv list;
	bool ok = true;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (st->reply.n_trailers > 0) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		ok = h2_nv_trailers(st->reply.trailers, st->reply.n_trailers, &h->scratch, &list) == CAGE_OK &&
		     nghttp2_submit_trailer(h->session, st->id, list.nv, list.n) == 0;
	}
	arena_reset(&h->scratch);
	st->out = H2_OUT_ENDING;
	return ok;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t room, uint32_t *flags,
			 nghttp2_data_source *source, void *arg)
{
	(void)session, (void)id, (void)arg;
	struct h2_stream *st = source->ptr;
	size_t n = 0;
	if (!st->inner)
		return NGHTTP2_ERR_DEFERRED; /* it was reset, and the client is about to see that */
	stream_hold(st->inner, false);
	enum cage_status got = take_body(st, buf, room, &n);
	if (got == CAGE_EOF && finish_body(st, flags))
		return (ssize_t)n;
	if (got == CAGE_OK || (got == CAGE_AGAIN && n > 0))
		return (ssize_t)n;
	if (got == CAGE_AGAIN) {
		st->out = H2_OUT_WAITING;
		return NGHTTP2_ERR_DEFERRED;
	}
	st->out = H2_OUT_FAILED;
	stream_reset(&st->inner);
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* RST_STREAM, INTERNAL_ERROR */
}

/* ---- heads ---- */

/* A 101 is good only with the answer to our own nonce; the client is then told what HTTP/2 has for it: 200 (RFC 8441). */
static bool open_websocket(struct h2_stream *st, struct message *m)
{
	char accept[WS_ACCEPT_LEN];
	bool is_good = false;
	if (st->kind != H2_STREAM_WEBSOCKET || !ws_make_accept(slice_of(st->nonce, sizeof(st->nonce)), accept))
		return false;
	for (size_t i = 0; i < m->n_fields; i++) {
		if (!slice_ieq(m->fields[i].name, SLICE("sec-websocket-accept")))
			continue;
		is_good = slice_eq(m->fields[i].value, slice_of(accept, sizeof(accept)));
		m->fields[i].id = FIELD_DROPPED;
	}
	m->status = 200;
	m->framing = BODY_CLOSE;
	return is_good;
}

/* Beside those of the server there can be a 100 of our own. */
static bool send_interim(struct h2_stream *st, const struct h2_nv *list)
{
	return ++st->interim <= LIMIT_INTERIM + 1 && nghttp2_submit_headers(st->server->session, NGHTTP2_FLAG_NONE,
									    st->id, NULL, list->nv, list->n, NULL) == 0;
}

static bool has_no_data(const struct message *m)
{
	return m->framing == BODY_LENGTH && m->content_length == 0;
}

/* rest: what stands behind the head; *used: how much of it is taken. Nothing but an empty line behind a body without bytes
 * is the end, which goes with the head: to gRPC that is not the same as an end behind it. */
static bool send_final(struct h2_stream *st, const struct message *m, const struct h2_nv *list, struct slice rest,
		       size_t *used)
{
	nghttp2_data_provider body = {.source.ptr = st, .read_callback = read_body};
	h1_body_init_inner(&st->reply, m);
	bool is_empty = has_no_data(m) && slice_starts(rest, SLICE("\r\n"));
	bool is_whole = h1_body_is_done(&st->reply) || is_empty;
	*used = is_empty ? 2 : 0;
	st->out = is_whole ? H2_OUT_ENDING : H2_OUT_BODY;
	return nghttp2_submit_response(st->server->session, st->id, list->nv, list->n, is_whole ? NULL : &body) == 0;
}

/* CAGE_OK: *used bytes of rest belong to it. CAGE_AGAIN: the end has to be seen first. */
static enum cage_status send_head(struct h2_stream *st, struct slice head, struct slice rest, size_t *used)
{
	struct h2_server *h = st->server;
	struct slice method = st->kind == H2_STREAM_HEAD ? SLICE("HEAD") : SLICE("GET");
	struct message m;
	struct h1_error err;
	struct h2_nv list;
	if (h1_parse_response(head, method, &h->scratch, &m, &err) != CAGE_OK)
		return CAGE_EPROTO;
	if (st->kind == H2_STREAM_WEBSOCKET && m.status / 100 == 2)
		return CAGE_EPROTO; /* in HTTP/2 that would say that the websocket is open */
	if (m.status == 101 && !open_websocket(st, &m))
		return CAGE_EPROTO;
	if (has_no_data(&m) && rest.len < 2 && st->inner_end == CAGE_OK)
		return CAGE_AGAIN;
	if (h2_nv_response(&m, &h->scratch, &list) != CAGE_OK)
		return CAGE_ENOMEM;
	bool ok = m.status < 200 ? send_interim(st, &list) : send_final(st, &m, &list, rest, used);
	return ok ? CAGE_OK : CAGE_ENOMEM;
}

/* True when a head was taken. */
static bool take_head(struct h2_stream *st)
{
	struct slice input = stream_input(st->inner);
	size_t len = 0, more = 0;
	enum cage_status got = h1_gate(&st->gate, input, &len);
	if (got == CAGE_AGAIN && st->inner_end == CAGE_OK)
		return false;
	if (got == CAGE_OK)
		got = send_head(st, slice_head(input, len), slice_from(input, len), &more);
	else
		got = CAGE_EPROTO;
	arena_reset(&st->server->scratch);
	st->gate = (struct h1_gate){.kind = H1_GATE_RESPONSE};
	if (got != CAGE_OK) {
		if (got != CAGE_AGAIN)
			h2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
		return false;
	}
	stream_consume(st->inner, len + more);
	return true;
}

void h2_response_pump(struct h2_stream *st)
{
	struct h2_server *h = st->server;
	if (!st->inner)
		return;
	while (st->out == H2_OUT_HEAD && take_head(st))
		;
	if (st->out == H2_OUT_WAITING) {
		st->out = H2_OUT_BODY;
		nghttp2_session_resume_data(h->session, st->id);
	}
	if (st->inner)
		stream_hold(st->inner, st->out == H2_OUT_BODY); /* until nghttp2 asks for it */
	h2_server_send_later(h);
}

/* ---- clients that do not take it ---- */

static bool waits_for_client(struct h2_stream *st)
{
	nghttp2_session *session = st->server->session;
	return st->out == H2_OUT_BODY && st->inner && stream_input(st->inner).len > 0 &&
	       (nghttp2_session_get_stream_remote_window_size(session, st->id) <= 0 ||
		nghttp2_session_get_remote_window_size(session) <= 0);
}

bool h2_response_is_stuck(struct h2_stream *st)
{
	bool has_moved = st->taken != st->taken_was;
	st->taken_was = st->taken;
	st->stuck = waits_for_client(st) && !has_moved ? st->stuck + 1 : 0;
	return st->stuck >= LIMIT_H2_STALL_LOOKS;
}
