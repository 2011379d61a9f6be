/* An HTTP/2 connection with a client: bytes in and out of nghttp2, the bounds of the whole, and how it ends.
 *
 *	NEW -> OPEN -> [ANSWERING -> PARTING ->] LEAVING -> ENDED -> FREED
 *
 * All that nghttp2 has to send leaves at the end of the pass, so that the frames of one pass share their TLS records. */
#include <stdlib.h>

#include "core/base/limits.h"
#include "proxy/h2_server_private.h"
#include "proxy/h2_session.h"

static void on_ready(struct stream *s, void *arg);
static void on_data(struct stream *s, void *arg);
static void on_drained(struct stream *s, void *arg);
static void on_end(struct stream *s, enum cage_status why, void *arg);

static const struct stream_cb down_cb = {
	.on_ready = on_ready, .on_data = on_data, .on_drained = on_drained, .on_end = on_end};

bool h2_server_is_live(const struct h2_server *h)
{
	return h->state != H2_SERVER_ENDED && h->state != H2_SERVER_FREED;
}

void h2_server_send_later(struct h2_server *h)
{
	loop_defer(h->loop, &h->work);
}

/* ---- the end ---- */

/* Every request under way ends here, whatever nghttp2 thinks of its stream. */
static void reset_requests(struct h2_server *h)
{
	event_del(&h->look);
	for (struct h2_stream *st = h->streams; st; st = st->next)
		stream_reset(&st->inner);
	h->n_requests = 0;
}

/* Never from inside a callback of nghttp2. */
static void end(struct h2_server *h, enum reason reason)
{
	if (!h2_server_is_live(h))
		return;
	h->state = H2_SERVER_ENDED;
	reset_requests(h);
	stream_finish(&h->down);
	h->cb->on_end(h, reason, h->arg);
}

void h2_server_calm(struct h2_server *h)
{
	h->reason = REASON_LIMIT_RATE;
	nghttp2_session_terminate_session(h->session, NGHTTP2_ENHANCE_YOUR_CALM);
	h2_server_send_later(h);
}

/* What comes behind a GOAWAY of ours is not even read. */
void h2_server_pay(struct h2_server *h, size_t n)
{
	while (n-- > 0 && nghttp2_session_want_read(h->session))
		if (!h2_budget_control(&h->budget, loop_now_us(h->loop)))
			h2_server_calm(h);
}

/* ---- bytes ---- */

static void send_frames(struct h2_server *h)
{
	if (!h2_session_send(h->session, h->down, stream_write))
		end(h, REASON_INTERNAL);
	else if (h2_session_is_over(h->session))
		end(h, h->reason);
}

/* Bounds of nghttp2's own. */
static bool is_flood(ssize_t error)
{
	return error == NGHTTP2_ERR_FLOODED || error == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS;
}

static enum reason receive_failure(ssize_t error)
{
	if (error == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
		return REASON_PROTOCOL_UNKNOWN;
	return is_flood(error) ? REASON_LIMIT_RATE : REASON_INTERNAL;
}

/* A request or its refusal may have made the owner free us: then nothing is touched any more. */
static void receive(struct h2_server *h)
{
	struct slice input = stream_input(h->down);
	if (input.len == 0)
		return;
	if (h->state == H2_SERVER_NEW)
		h->state = H2_SERVER_OPEN;
	h2_frames_come(&h->frames, input);
	ssize_t n = nghttp2_session_mem_recv(h->session, (const uint8_t *)input.ptr, input.len);
	if (!h2_server_is_live(h))
		return;
	h2_server_pay(h, h2_frames_passed_over(&h->frames));
	if (is_flood(n)) {
		h2_server_calm(h);
		send_frames(h);
	}
	if (n < 0) {
		end(h, receive_failure(n));
		return;
	}
	stream_consume(h->down, input.len);
	h2_server_send_later(h);
}

/* ---- the stream's callbacks ---- */

static void on_ready(struct stream *s, void *arg)
{
	(void)s, (void)arg; /* the handshake was over before */
}

static void on_data(struct stream *s, void *arg)
{
	(void)s;
	struct h2_server *h = arg;
	if (h->magic != H2_SERVER_MAGIC)
		abort();
	receive(h);
}

static void on_drained(struct stream *s, void *arg)
{
	(void)s;
	h2_server_send_later(arg);
}

/* A client that turns away right after the handshake most often does not trust our CA. */
static enum reason end_reason(const struct h2_server *h, enum cage_status why)
{
	if (h->state == H2_SERVER_NEW) {
		if (why == CAGE_ETIMEOUT)
			return REASON_CLIENT_TIMEOUT;
		return why == CAGE_EOF ? REASON_CLIENT_GONE : REASON_CLIENT_TLS_FAILED;
	}
	if (h->n_requests == 0)
		return REASON_NONE;
	return why == CAGE_ETIMEOUT ? REASON_CLIENT_TIMEOUT : REASON_CLIENT_GONE;
}

/* Half a connection is of no use in HTTP/2: a client that has ended is gone. */
static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	struct h2_server *h = arg;
	h->reason = end_reason(h, why);
	if (why == CAGE_ETIMEOUT) {
		nghttp2_session_terminate_session(h->session, NGHTTP2_NO_ERROR);
		send_frames(h);
	}
	end(h, h->reason);
}

/* ---- time ---- */

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct h2_server *h = arg;
	for (struct h2_stream *st = h->streams; st; st = st->next)
		if (h2_response_is_stuck(st))
			h2_stream_reset(st, NGHTTP2_CANCEL);
}

/* ---- life ---- */

static void destroy(struct h2_server *h)
{
	while (h->streams)
		h2_stream_free(h->streams);
	nghttp2_session_del(h->session);
	arena_free(&h->scratch);
	h->magic = 0;
	free(h);
}

/* The end of a pass. Input that was there before us is read here as well. */
static void on_work(struct deferred *d)
{
	struct h2_server *h = (struct h2_server *)(void *)((char *)d - offsetof(struct h2_server, work));
	if (h->state == H2_SERVER_FREED) {
		destroy(h);
		return;
	}
	if (h2_server_is_live(h))
		receive(h);
	if (h2_server_is_live(h))
		send_frames(h);
}

struct h2_server *h2_server_new(struct loop *l, struct stream *down, const struct h2_server_cb *cb, void *arg)
{
	struct h2_server *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	*h = (struct h2_server){.magic = H2_SERVER_MAGIC, .loop = l, .down = down, .cb = cb, .arg = arg};
	h->session = h2_session_new(H2_SERVER, h2_server_callbacks(), h);
	if (!h->session) {
		free(h);
		return NULL;
	}
	arena_init(&h->scratch, LIMIT_TXN_ARENA);
	h2_budget_init(&h->budget, loop_now_us(l));
	h2_frames_init(&h->frames, true);
	h->windows.session = h->session;
	event_assign(&h->look, loop_base(l), -1, EV_PERSIST, on_look, h);
	h->work.run = on_work;
	stream_set_owner(down, &down_cb, h);
	stream_set_deadline(down, LIMIT_IDLE_MS);
	stream_set_stall(down, LIMIT_STALL_MS);
	h2_server_send_later(h);
	return h;
}

void h2_server_drain(struct h2_server *h)
{
	if (!h2_server_is_live(h) || h->state == H2_SERVER_LEAVING)
		return;
	h->state = H2_SERVER_LEAVING;
	int32_t last = nghttp2_session_get_last_proc_stream_id(h->session);
	nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL, 0);
	h2_server_send_later(h);
}

void h2_server_drain_after(struct h2_server *h)
{
	if (h->n_requests == 0)
		h2_server_drain(h);
	else if (h->state == H2_SERVER_OPEN)
		h->state = H2_SERVER_ANSWERING;
}

size_t h2_server_streams(const struct h2_server *h)
{
	return h->n_requests;
}

void h2_server_free(struct h2_server **hp)
{
	struct h2_server *h = *hp;
	if (!h)
		return;
	*hp = NULL;
	h->state = H2_SERVER_FREED;
	reset_requests(h);
	stream_close(&h->down);
	loop_defer(h->loop, &h->work);
}
