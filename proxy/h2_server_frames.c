/* nghttp2's callbacks of the HTTP/2 server: which frame concerns which stream, and what it costs. nghttp2 has checked
 * the frames; what it finds wrong with a stream comes through here, too. */
#include "core/base/limits.h"
#include "proxy/h2_server_private.h"
#include "proxy/h2_session.h"

/* An owner that has let go of the connection in a callback must not be called again. */
static int outcome(const struct h2_server *h)
{
	return h2_server_is_live(h) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void pay_reset(struct h2_server *h)
{
	if (!h2_budget_reset(&h->budget, loop_now_us(h->loop)))
		h2_server_calm(h);
}

/* ---- in ---- */

/* Also one that is not there yet. */
static bool is_of_stream(struct h2_server *h, int32_t id)
{
	return id > nghttp2_session_get_last_proc_stream_id(h->session) || h2_stream_of(h, id);
}

/* Requests are bounded otherwise; DATA earn it back when there is something in them. */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *arg)
{
	(void)session;
	struct h2_server *h = arg;
	h2_frames_told(&h->frames, hd);
	h2_server_pay(h, hd->type == NGHTTP2_HEADERS && is_of_stream(h, hd->stream_id) ? 0 : 1);
	return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	(void)session;
	struct h2_server *h = arg;
	bool is_request = frame->headers.cat == NGHTTP2_HCAT_REQUEST;
	struct h2_stream *st =
		is_request ? h2_stream_new(h, frame->hd.stream_id) : h2_stream_of(h, frame->hd.stream_id);
	if (!st)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	h2_request_begin(st);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
		     const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
	(void)session, (void)flags;
	struct h2_server *h = arg;
	struct h2_stream *st = h2_stream_of(h, frame->hd.stream_id);
	if (!st)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	enum cage_status why = h2_request_field(st, slice_of(name, name_len), slice_of(value, value_len));
	if (why == CAGE_OK)
		return 0;
	h2_request_refuse(st, why);
	return h2_server_is_live(h) ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void received_headers(struct h2_stream *st, const nghttp2_frame *frame)
{
	if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		h2_request_head(st, frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
	else
		h2_request_trailers(st);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	(void)session;
	struct h2_server *h = arg;
	struct h2_stream *st = h2_stream_of(h, frame->hd.stream_id);
	h2_session_earn(&h->budget, frame);
	if (frame->hd.type == NGHTTP2_HEADERS && st)
		received_headers(st, frame);
	else if (frame->hd.type == NGHTTP2_DATA && st && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		h2_request_end(st);
	return outcome(h);
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
			 void *arg)
{
	(void)flags;
	struct h2_server *h = arg;
	struct h2_stream *st = h2_stream_of(h, id);
	if (st)
		h2_request_data(st, slice_of(data, len));
	else
		nghttp2_session_consume(session, id, len);
	return 0;
}

/* nghttp2 has refused a frame, and resets the stream or ends the connection for it. */
static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error, void *arg)
{
	(void)session, (void)error;
	struct h2_server *h = arg;
	struct h2_stream *st = h2_stream_of(h, frame->hd.stream_id);
	if (!st)
		pay_reset(h);
	else if (st->in == H2_IN_HEAD || st->in == H2_IN_BODY)
		h2_request_refuse(st, CAGE_EPROTO);
	return outcome(h);
}

/* ---- out ---- */

static void response_sent(struct h2_stream *st)
{
	st->out = H2_OUT_ENDED;
	if (st->in != H2_IN_ENDED)
		h2_request_leave(st);
}

/* nghttp2 ends the connection over what is not HTTP/2. */
static void goaway_sent(struct h2_server *h, uint32_t code)
{
	if (code == NGHTTP2_NO_ERROR || h->reason != REASON_NONE)
		return;
	h->reason = code == NGHTTP2_COMPRESSION_ERROR ? REASON_HEAD_MALFORMED : REASON_PROTOCOL_UNKNOWN;
}

/* nghttp2 itself refuses a body that is not as long as was declared, and does not say so in another way. */
static void reset_sent(struct h2_server *h, const nghttp2_frame *frame)
{
	struct h2_stream *st = h2_stream_of(h, frame->hd.stream_id);
	if (!st || st->in != H2_IN_BODY || frame->rst_stream.error_code != NGHTTP2_PROTOCOL_ERROR)
		return;
	st->in = H2_IN_REFUSED;
	stream_break(&st->inner, CAGE_EPROTO);
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	(void)session;
	struct h2_server *h = arg;
	if (frame->hd.type == NGHTTP2_GOAWAY)
		goaway_sent(h, frame->goaway.error_code);
	if (frame->hd.type == NGHTTP2_RST_STREAM)
		reset_sent(h, frame);
	if (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	struct h2_stream *st = h2_stream_of(h, frame->hd.stream_id);
	h2_session_earn(&h->budget, frame);
	if (st && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		response_sent(st);
	return 0;
}

/* A head that can't be sent leaves a client that waits for it. */
static int on_frame_not_send(nghttp2_session *session, const nghttp2_frame *frame, int error, void *arg)
{
	(void)session, (void)error;
	struct h2_stream *st = h2_stream_of(arg, frame->hd.stream_id);
	if (frame->hd.type == NGHTTP2_HEADERS && st)
		h2_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
	return 0;
}

/* ---- the end of a stream ---- */

/* One that failed on our side is not the client's fault. */
static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
	(void)session, (void)code;
	struct h2_server *h = arg;
	struct h2_stream *st = h2_stream_of(h, id);
	if (!st)
		return 0;
	if (st->out == H2_OUT_ENDED)
		h2_budget_earn_answer(&h->budget);
	else if (st->out != H2_OUT_FAILED)
		pay_reset(h);
	h2_stream_free(st);
	return 0;
}

const nghttp2_session_callbacks *h2_server_callbacks(void)
{
	static nghttp2_session_callbacks *c;
	if (c || nghttp2_session_callbacks_new(&c) != 0)
		return c;
	nghttp2_session_callbacks_set_on_begin_frame_callback(c, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(c, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data_chunk);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(c, on_invalid_frame);
	nghttp2_session_callbacks_set_on_frame_send_callback(c, on_frame_send);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(c, on_frame_not_send);
	nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
	return c;
}
