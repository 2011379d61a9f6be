/* An HTTP/2 connection with an origin: bytes in and out of nghttp2, the bounds of the whole, and how it ends.
 *
 *	OPEN -> LEAVING -> ENDED -> FREED
 *
 * All that nghttp2 has to send leaves at the end of the pass, and that is also where the connection ends: never inside
 * a callback of nghttp2. */
#include <stdlib.h>

#include "core/base/limits.h"
#include "proxy/h2_client_private.h"
#include "proxy/h2_session.h"

static void on_ready(struct stream *s, void *arg);
static void on_data(struct stream *s, void *arg);
static void on_drained(struct stream *s, void *arg);
static void on_end(struct stream *s, enum cage_status why, void *arg);

static const struct stream_cb up_cb = {
	.on_ready = on_ready, .on_data = on_data, .on_drained = on_drained, .on_end = on_end};

bool h2_client_is_live(const struct h2_client *h)
{
	return h->state == H2_CLIENT_OPEN || h->state == H2_CLIENT_LEAVING;
}

void h2_client_send_later(struct h2_client *h)
{
	loop_defer(h->loop, &h->work);
}

/* ---- the end ---- */

static void end_calls(struct h2_client *h)
{
	while (h->calls)
		h2_call_end(h->calls);
}

static void end(struct h2_client *h)
{
	if (!h2_client_is_live(h))
		return;
	h->state = H2_CLIENT_ENDED;
	end_calls(h);
	stream_finish(&h->up);
	h->cb->on_end(h, h->arg);
}

/* ---- bytes ---- */

static void receive(struct h2_client *h)
{
	struct slice input = stream_input(h->up);
	if (input.len == 0)
		return;
	h->heard_us = loop_now_us(h->loop);
	h2_frames_come(&h->frames, input);
	ssize_t n = nghttp2_session_mem_recv(h->session, (const uint8_t *)input.ptr, input.len);
	h2_client_pay(h, h2_frames_passed_over(&h->frames));
	stream_consume(h->up, input.len);
	h->is_malformed |= n < 0 && n != NGHTTP2_ERR_NOMEM;
	if (n < 0)
		end(h);
	else
		h2_client_send_later(h);
}

/* ---- the stream's callbacks ---- */

static void on_ready(struct stream *s, void *arg)
{
	(void)s, (void)arg; /* the handshake was over before */
}

static void on_data(struct stream *s, void *arg)
{
	(void)s;
	struct h2_client *h = arg;
	if (h->magic != H2_CLIENT_MAGIC)
		abort();
	receive(h);
}

static void on_drained(struct stream *s, void *arg)
{
	(void)s;
	h2_client_send_later(arg);
}

/* An origin that nobody asks anything is told that we leave. */
static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	struct h2_client *h = arg;
	if (why == CAGE_ETIMEOUT && h->n_calls == 0) {
		nghttp2_session_terminate_session(h->session, NGHTTP2_NO_ERROR);
		(void)h2_session_send(h->session, h->up, stream_write_secret);
	}
	end(h);
}

/* ---- life ---- */

static void destroy(struct h2_client *h)
{
	nghttp2_session_del(h->session);
	arena_cleanse(&h->list);
	arena_free(&h->list);
	arena_free(&h->scratch);
	h->magic = 0;
	free(h);
}

/* The end of a pass. Input that was there before us is read here as well. */
static void on_work(struct deferred *d)
{
	struct h2_client *h = (struct h2_client *)(void *)((char *)d - offsetof(struct h2_client, work));
	if (h->state == H2_CLIENT_FREED) {
		destroy(h);
		return;
	}
	if (h2_client_is_live(h))
		receive(h);
	if (h2_client_is_live(h) &&
	    (!h2_session_send(h->session, h->up, stream_write_secret) || h2_session_is_over(h->session)))
		end(h);
}

struct h2_client *h2_client_new(struct loop *l, struct stream *up, const struct h2_client_cb *cb, void *arg)
{
	struct h2_client *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	*h = (struct h2_client){.magic = H2_CLIENT_MAGIC, .loop = l, .up = up, .cb = cb, .arg = arg};
	h->session = h2_session_new(H2_CLIENT, h2_client_callbacks(), h);
	if (!h->session) {
		free(h);
		return NULL;
	}
	arena_init(&h->scratch, LIMIT_TXN_ARENA);
	arena_init(&h->list, LIMIT_TXN_ARENA);
	h->heard_us = loop_now_us(l);
	h2_budget_init(&h->budget, h->heard_us);
	h2_frames_init(&h->frames, false);
	h->windows.session = h->session;
	h->work.run = on_work;
	stream_set_owner(up, &up_cb, h);
	stream_set_deadline(up, LIMIT_POOL_IDLE_MS);
	stream_set_stall(up, LIMIT_STALL_MS);
	h2_client_send_later(h);
	return h;
}

/* Silence says nothing about a request that is under way: it may take its time. Another one need not wait with it. */
static bool is_silent(const struct h2_client *h)
{
	return loop_now_us(h->loop) - h->heard_us > (uint64_t)LIMIT_POOL_IDLE_MS * 1000u;
}

bool h2_client_has_room(const struct h2_client *h)
{
	uint32_t theirs = nghttp2_session_get_remote_settings(h->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
	return h->state == H2_CLIENT_OPEN && h->n_calls < LIMIT_H2_STREAMS && h->n_calls < theirs && !is_silent(h) &&
	       h2_windows_are_open(&h->windows) && nghttp2_session_check_request_allowed(h->session);
}

size_t h2_client_calls(const struct h2_client *h)
{
	return h->n_calls;
}

struct stream *h2_client_open(struct h2_client *h)
{
	struct stream *theirs;
	if (!h2_client_has_room(h) || !h2_call_new(h, &theirs))
		return NULL;
	stream_set_deadline(h->up, 0);
	return theirs;
}

void h2_client_free(struct h2_client **hp)
{
	struct h2_client *h = *hp;
	if (!h)
		return;
	*hp = NULL;
	h->state = H2_CLIENT_FREED;
	end_calls(h);
	stream_close(&h->up);
	loop_defer(h->loop, &h->work);
}
