/* One stream of the HTTP/2 server: its life, and the callbacks of its inner stream. */
#include <stdlib.h>

#include "core/base/limits.h"
#include "proxy/h2_server_private.h"

static void on_ready(struct stream *s, void *arg)
{
	(void)s, (void)arg; /* there is no handshake in memory */
}

static void on_data(struct stream *s, void *arg)
{
	(void)s;
	h2_response_pump(arg);
}

static void on_drained(struct stream *s, void *arg)
{
	(void)s;
	h2_request_acknowledge(arg);
}

static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	struct h2_stream *st = arg;
	st->inner_end = why;
	h2_response_pump(st);
}

const struct stream_cb h2_inner_cb = {
	.on_ready = on_ready, .on_data = on_data, .on_drained = on_drained, .on_end = on_end};

struct h2_stream *h2_stream_new(struct h2_server *h, int32_t id)
{
	struct h2_stream *st = calloc(1, sizeof(*st));
	if (!st)
		return NULL;
	if (nghttp2_session_set_stream_user_data(h->session, id, st) != 0) {
		free(st);
		return NULL;
	}
	st->server = h;
	st->id = id;
	st->gate.kind = H1_GATE_RESPONSE;
	st->next = h->streams;
	if (st->next)
		st->next->prev = st;
	h->streams = st;
	return st;
}

struct h2_stream *h2_stream_of(struct h2_server *h, int32_t id)
{
	return id == 0 ? NULL : nghttp2_session_get_stream_user_data(h->session, id);
}

void h2_stream_reset(struct h2_stream *st, uint32_t code)
{
	st->out = H2_OUT_FAILED;
	stream_reset(&st->inner);
	nghttp2_submit_rst_stream(st->server->session, NGHTTP2_FLAG_NONE, st->id, code);
	h2_server_send_later(st->server);
}

/* A connection without requests has only so much time; one that is to leave has no more, whatever comes. */
static void request_is_over(struct h2_server *h)
{
	if (--h->n_requests > 0)
		return;
	event_del(&h->look);
	if (h->state == H2_SERVER_PARTING)
		return;
	stream_set_deadline(h->down, h->state == H2_SERVER_ANSWERING ? LIMIT_H2_PARTING_MS : LIMIT_IDLE_MS);
	if (h->state == H2_SERVER_ANSWERING)
		h->state = H2_SERVER_PARTING;
}

void h2_stream_free(struct h2_stream *st)
{
	struct h2_server *h = st->server;
	h2_untaken_forget(&st->untaken, &h->windows);
	if (st->in == H2_IN_LEFT)
		event_del(&st->linger);
	if (st->out == H2_OUT_ENDED)
		stream_close(&st->inner);
	else
		stream_reset(&st->inner);
	if (h2_server_is_live(h) && st->kind != H2_STREAM_UNKNOWN)
		request_is_over(h);
	if (st->prev)
		st->prev->next = st->next;
	else
		h->streams = st->next;
	if (st->next)
		st->next->prev = st->prev;
	arena_free(&st->arena);
	free(st);
}
