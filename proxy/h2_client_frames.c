/* nghttp2's callbacks of the HTTP/2 client: which frame concerns which call, and what it costs. A call that was given
 * up is not found here any more; what still arrives for it is read and dropped. */
#include "core/base/limits.h"
#include "proxy/h2_client_private.h"
#include "proxy/h2_session.h"

/* ---- in ---- */

/* What comes behind a GOAWAY of ours is not even read. */
void h2_client_pay(struct h2_client *h, size_t n)
{
	while (n-- > 0 && nghttp2_session_want_read(h->session))
		if (!h2_budget_control(&h->budget, loop_now_us(h->loop))) {
			h->is_malformed = true;
			nghttp2_session_terminate_session(h->session, NGHTTP2_ENHANCE_YOUR_CALM);
		}
}

/* Heads are counted by their calls; DATA earn it back when there is something in them. */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *arg)
{
	(void)session;
	struct h2_client *h = arg;
	bool is_head = hd->type == NGHTTP2_HEADERS && h2_call_of(h, hd->stream_id);
	h2_frames_told(&h->frames, hd);
	h2_client_pay(h, is_head ? 0 : 1);
	return 0;
}

/* A push would come here, too: nobody has asked for it. */
static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	(void)session;
	struct h2_client *h = arg;
	if (frame->hd.type != NGHTTP2_HEADERS)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	struct h2_call *c = h2_call_of(h, frame->hd.stream_id);
	if (c)
		h2_fields_init(&h->fields, c->in == H2_CALL_IN_HEAD ? H2_RESPONSE : H2_TRAILERS, &h->list);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
		     const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
	(void)session, (void)flags;
	struct h2_client *h = arg;
	struct h2_call *c = h2_call_of(h, frame->hd.stream_id);
	if (!c)
		return 0;
	enum cage_status st = h2_fields_add(&h->fields, slice_of(name, name_len), slice_of(value, value_len));
	if (st == CAGE_ENOMEM)
		h2_call_cancel(c, NGHTTP2_INTERNAL_ERROR);
	else if (st != CAGE_OK)
		h2_call_refuse(c, st == CAGE_EPROTO ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_ENHANCE_YOUR_CALM);
	return 0;
}

/* nghttp2 would leave the field out; a response that has one is not to be trusted as a whole. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
			     const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
	(void)session, (void)name, (void)name_len, (void)value, (void)value_len, (void)flags;
	struct h2_call *c = h2_call_of(arg, frame->hd.stream_id);
	if (c)
		h2_call_refuse(c, NGHTTP2_PROTOCOL_ERROR);
	return 0;
}

static void received_headers(struct h2_client *h, const nghttp2_frame *frame)
{
	struct h2_call *c = h2_call_of(h, frame->hd.stream_id);
	if (c)
		h2_call_list(c, frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
	arena_cleanse(&h->list);
	arena_reset(&h->list);
}

static void received_data(struct h2_client *h, const nghttp2_frame *frame)
{
	struct h2_call *c = h2_call_of(h, frame->hd.stream_id);
	if (c && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		h2_call_data_end(c);
}

/* Calls that have not been sent never will be. Those that were and that the origin will not look at, nghttp2 closes. */
static void received_goaway(struct h2_client *h)
{
	struct h2_call *next;
	h->state = H2_CLIENT_LEAVING;
	for (struct h2_call *c = h->calls; c; c = next) {
		next = c->next;
		if (c->id != 0 && nghttp2_session_find_stream(h->session, c->id))
			continue;
		c->fault = H2_CALL_UNSEEN;
		h2_call_cancel(c, NGHTTP2_CANCEL);
	}
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	(void)session;
	struct h2_client *h = arg;
	h2_session_earn(&h->budget, frame);
	if (frame->hd.type == NGHTTP2_HEADERS)
		received_headers(h, frame);
	else if (frame->hd.type == NGHTTP2_DATA)
		received_data(h, frame);
	else if (frame->hd.type == NGHTTP2_GOAWAY)
		received_goaway(h);
	return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
			 void *arg)
{
	(void)flags;
	struct h2_call *c = h2_call_of(arg, id);
	if (c)
		h2_call_data(c, slice_of(data, len));
	else
		nghttp2_session_consume(session, id, len);
	return 0;
}

/* ---- out ---- */

static bool is_our_lack(uint32_t code)
{
	return code == NGHTTP2_NO_ERROR || code == NGHTTP2_INTERNAL_ERROR;
}

/* What nghttp2 finds malformed by itself shows in what it sends then. A call that we have ended is not found here. */
static void sent_error(struct h2_client *h, const nghttp2_frame *frame)
{
	struct h2_call *c = h2_call_of(h, frame->hd.stream_id);
	if (frame->hd.type == NGHTTP2_GOAWAY && !is_our_lack(frame->goaway.error_code))
		h->is_malformed = true;
	else if (frame->hd.type == NGHTTP2_RST_STREAM && c && !is_our_lack(frame->rst_stream.error_code))
		c->fault = H2_CALL_MALFORMED;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	(void)session;
	struct h2_client *h = arg;
	h2_session_earn(&h->budget, frame);
	sent_error(h, frame);
	return 0;
}

/* ---- the end of a stream ---- */

/* Also of one whose request could not be sent. */
static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
	(void)session;
	struct h2_call *c = h2_call_of(arg, id);
	if (!c)
		return 0;
	if (code == NGHTTP2_REFUSED_STREAM)
		c->fault = H2_CALL_UNSEEN;
	h2_call_end(c);
	return 0;
}

const nghttp2_session_callbacks *h2_client_callbacks(void)
{
	static nghttp2_session_callbacks *c;
	if (c || nghttp2_session_callbacks_new(&c) != 0)
		return c;
	nghttp2_session_callbacks_set_on_begin_frame_callback(c, on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(c, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(c, on_invalid_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data_chunk);
	nghttp2_session_callbacks_set_on_frame_send_callback(c, on_frame_send);
	nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
	return c;
}
