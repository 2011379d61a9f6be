/* One call: its life, the callbacks of its inner stream, and the response, which becomes HTTP/1.1 text there. What the
 * inner stream has not taken is not acknowledged, so the origin's windows bound what waits here. */
#include <openssl/crypto.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "proxy/h2_client_private.h"

static char head_room[LIMIT_HEAD];

/* ---- the end ---- */

/* Nobody uses the connection: it has only so much time, or none when it is leaving. */
static void calls_are_over(struct h2_client *h)
{
	stream_set_deadline(h->up, LIMIT_POOL_IDLE_MS);
	h2_client_send_later(h);
}

static void call_free(struct h2_call *c)
{
	struct h2_client *h = c->client;
	if (c->prev)
		c->prev->next = c->next;
	else
		h->calls = c->next;
	if (c->next)
		c->next->prev = c->prev;
	if (--h->n_calls == 0 && h2_client_is_live(h))
		calls_are_over(h);
	free(c);
}

static enum cage_status how_broken(const struct h2_call *c)
{
	return c->fault == H2_CALL_MALFORMED || c->client->is_malformed ? CAGE_EPROTO : CAGE_TRUNCATED;
}

static void end_inner(struct h2_call *c)
{
	switch (c->in) {
	case H2_CALL_IN_HEAD:
		if (c->fault == H2_CALL_UNSEEN || c->id == 0)
			stream_close(&c->inner);
		else
			stream_break(&c->inner, how_broken(c));
		break;
	case H2_CALL_IN_BODY:
		stream_break(&c->inner, how_broken(c));
		break;
	case H2_CALL_IN_ENDED:
		stream_finish(&c->inner);
		break;
	}
}

void h2_call_end(struct h2_call *c)
{
	nghttp2_session *session = c->client->session;
	if (c->id != 0)
		nghttp2_session_set_stream_user_data(session, c->id, NULL);
	h2_untaken_forget(&c->untaken, &c->client->windows);
	end_inner(c);
	call_free(c);
}

void h2_call_cancel(struct h2_call *c, uint32_t code)
{
	struct h2_client *h = c->client;
	if (c->id != 0)
		nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, c->id, code);
	h2_client_send_later(h);
	h2_call_end(c);
}

void h2_call_refuse(struct h2_call *c, uint32_t code)
{
	c->fault = H2_CALL_MALFORMED;
	h2_call_cancel(c, code);
}

/* ---- the callbacks of the inner stream ---- */

static void on_ready(struct stream *s, void *arg)
{
	(void)s, (void)arg; /* there is no handshake in memory */
}

static void on_data(struct stream *s, void *arg)
{
	(void)s;
	h2_call_pump(arg);
}

static void acknowledge(struct h2_call *c)
{
	if (c->untaken.stream == 0)
		return;
	h2_untaken_take(&c->untaken, &c->client->windows, c->id);
	h2_client_send_later(c->client);
}

static void on_drained(struct stream *s, void *arg)
{
	(void)s;
	acknowledge(arg);
}

/* Whoever asked does not wait for the answer any more. */
static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s, (void)why;
	h2_call_cancel(arg, NGHTTP2_CANCEL);
}

static const struct stream_cb inner_cb = {
	.on_ready = on_ready, .on_data = on_data, .on_drained = on_drained, .on_end = on_end};

/* ---- the beginning ---- */

static void ignore(struct stream *s, void *arg)
{
	(void)s, (void)arg;
}

static void ignore_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s, (void)why, (void)arg;
}

/* Of the other end until it has an owner. */
static const struct stream_cb no_owner_cb = {
	.on_ready = ignore, .on_data = ignore, .on_drained = ignore, .on_end = ignore_end};

struct h2_call *h2_call_new(struct h2_client *h, struct stream **theirs)
{
	struct stream *ends[2];
	struct h2_call *c = calloc(1, sizeof(*c));
	if (!c || !stream_pair(h->loop, ends, &inner_cb, c)) {
		free(c);
		return NULL;
	}
	stream_cleanse_input(ends[0]);
	stream_set_owner(ends[1], &no_owner_cb, NULL);
	*c = (struct h2_call){.client = h, .inner = ends[0], .gate = {.kind = H1_GATE_REQUEST}};
	c->next = h->calls;
	if (c->next)
		c->next->prev = c;
	h->calls = c;
	h->n_calls++;
	*theirs = ends[1];
	return c;
}

struct h2_call *h2_call_of(struct h2_client *h, int32_t id)
{
	return id == 0 ? NULL : nghttp2_session_get_stream_user_data(h->session, id);
}

/* ---- the response ---- */

static void response_ended(struct h2_call *c, const struct h2_fields *trailers)
{
	if (h2_body_end(&c->reply, c->inner, trailers) == CAGE_OK)
		c->in = H2_CALL_IN_ENDED;
	else
		h2_call_refuse(c, NGHTTP2_PROTOCOL_ERROR);
}

/* CAGE_OK: the head is on its way. */
static enum cage_status pass_head(struct h2_call *c, bool end)
{
	struct text head = text_in(head_room, sizeof(head_room));
	enum cage_status st = h2_write_response(&c->client->fields, end, c->method, &head, &c->reply);
	if (st == CAGE_OK)
		stream_write_secret(c->inner, text_slice(&head));
	OPENSSL_cleanse(head_room, head.len);
	return st;
}

static void take_head(struct h2_call *c, bool end)
{
	bool is_interim = h2_fields_status(&c->client->fields) < 200;
	if ((is_interim && ++c->interim > LIMIT_INTERIM) || pass_head(c, end) != CAGE_OK) {
		h2_call_refuse(c, NGHTTP2_PROTOCOL_ERROR);
		return;
	}
	if (is_interim)
		return;
	c->in = H2_CALL_IN_BODY;
	if (end)
		response_ended(c, NULL);
}

void h2_call_list(struct h2_call *c, bool end)
{
	if (c->in == H2_CALL_IN_HEAD)
		take_head(c, end);
	else if (c->in == H2_CALL_IN_BODY && end)
		response_ended(c, &c->client->fields);
	else
		h2_call_refuse(c, NGHTTP2_PROTOCOL_ERROR); /* trailers end the stream */
}

void h2_call_data(struct h2_call *c, struct slice data)
{
	h2_untaken_add(&c->untaken, &c->client->windows, data.len);
	if (c->in != H2_CALL_IN_BODY || h2_body_write(&c->reply, c->inner, data) != CAGE_OK)
		h2_call_refuse(c, NGHTTP2_PROTOCOL_ERROR);
	else if (!stream_is_clogged(c->inner))
		acknowledge(c);
}

void h2_call_data_end(struct h2_call *c)
{
	if (c->in == H2_CALL_IN_BODY)
		response_ended(c, NULL);
	else
		h2_call_refuse(c, NGHTTP2_PROTOCOL_ERROR);
}
