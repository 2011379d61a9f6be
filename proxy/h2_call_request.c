/* The request of a call: HTTP/1.1 from the inner stream becomes HEADERS and DATA. nghttp2 asks for bytes of the body
 * when the origin's windows have room for them; until then they stay in the inner stream, whose writer has to wait. */
#include "core/base/limits.h"
#include "proxy/h2_client_private.h"

/* What was parsed may carry secrets. */
static void forget(struct arena *a)
{
	arena_cleanse(a);
	arena_reset(a);
}

/* ---- the body ---- */

static bool is_at_data(const struct h2_call *c)
{
	return c->request.state == H1_BODY_DATA || c->request.state == H1_BODY_CHUNK_DATA;
}

/* What the body reader gets next, so that it gives no more data than there is room for: what stands between data comes
 * byte by byte, and trailers as a whole. */
static struct slice next_step(const struct h2_call *c, size_t room)
{
	struct slice input = stream_input(c->inner);
	if (c->request.state == H1_BODY_TRAILERS)
		return input;
	return slice_head(input, is_at_data(c) ? room : 1);
}

/* CAGE_OK: there may be more. */
static enum cage_status take_piece(struct h2_call *c, uint8_t *buf, size_t room, size_t *n)
{
	struct slice data = SLICE_NONE;
	size_t used = 0;
	enum cage_status st = h1_body_feed(&c->request, next_step(c, room), &c->client->scratch, &used, &data);
	if (data.len > 0)
		memcpy(buf, data.ptr, data.len);
	*n = data.len;
	stream_consume(c->inner, used);
	return st == CAGE_AGAIN && used > 0 ? CAGE_OK : st;
}

/* As much as there is room for, and the end if it stands right behind: the origin may open its window only when it has
 * seen that. CAGE_AGAIN: the inner stream has no more now. */
static enum cage_status take_body(struct h2_call *c, uint8_t *buf, size_t room, size_t *total)
{
	enum cage_status st = CAGE_OK;
	*total = 0;
	while (st == CAGE_OK && (*total < room || !is_at_data(c))) {
		size_t n = 0;
		st = take_piece(c, buf + *total, room - *total, &n);
		*total += n;
	}
	return st;
}

/* The last DATA does not end the stream when trailers follow. */
static bool finish_body(struct h2_call *c, uint32_t *flags)
{
	struct h2_client *h = c->client;
	struct h2_nv list;
	bool ok = true;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (c->request.n_trailers > 0) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		ok = h2_nv_trailers(c->request.trailers, c->request.n_trailers, &h->scratch, &list) == CAGE_OK &&
		     nghttp2_submit_trailer(h->session, c->id, list.nv, list.n) == 0;
	}
	forget(&h->scratch);
	c->out = H2_CALL_OUT_ENDED;
	return ok;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t room, uint32_t *flags,
			 nghttp2_data_source *source, void *arg)
{
	(void)session, (void)source;
	struct h2_call *c = h2_call_of(arg, id);
	size_t n = 0;
	if (!c)
		return NGHTTP2_ERR_DEFERRED; /* it was given up, and the origin is about to see that */
	enum cage_status st = take_body(c, buf, room, &n);
	if (st == CAGE_OK || (st == CAGE_AGAIN && n > 0))
		return (ssize_t)n;
	if (st == CAGE_EOF && finish_body(c, flags))
		return (ssize_t)n;
	if (st == CAGE_AGAIN) {
		c->out = H2_CALL_OUT_WAITING;
		return NGHTTP2_ERR_DEFERRED;
	}
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* RST_STREAM, and the call ends with its stream */
}

/* ---- the head ---- */

static bool submit(struct h2_call *c, const struct message *m, const struct h2_nv *list)
{
	nghttp2_data_provider body = {.read_callback = read_body};
	h1_body_init_inner(&c->request, m);
	bool is_whole = h1_body_is_done(&c->request);
	c->method = slice_eq(m->method, SLICE("HEAD")) ? SLICE("HEAD") : SLICE("GET");
	c->out = is_whole ? H2_CALL_OUT_ENDED : H2_CALL_OUT_BODY;
	int32_t id = nghttp2_submit_request(c->client->session, NULL, list->nv, list->n, is_whole ? NULL : &body, c);
	if (id > 0)
		c->id = id;
	return id > 0;
}

static bool send_head(struct h2_call *c, struct slice head)
{
	struct arena *scratch = &c->client->scratch;
	struct message m;
	struct h1_error err;
	struct h2_nv list;
	bool ok = h1_parse_request(head, scratch, &m, &err) == CAGE_OK &&
		  h2_nv_request(&m, scratch, &list) == CAGE_OK && submit(c, &m, &list);
	forget(scratch);
	return ok;
}

/* false: it is no head, or can't be sent. */
static bool take_head(struct h2_call *c)
{
	struct slice input = stream_input(c->inner);
	size_t len = 0;
	enum cage_status st = h1_gate(&c->gate, input, &len);
	if (st == CAGE_AGAIN)
		return true;
	if (st != CAGE_OK || !send_head(c, slice_head(input, len)))
		return false;
	stream_consume(c->inner, len);
	return true;
}

void h2_call_pump(struct h2_call *c)
{
	struct h2_client *h = c->client;
	if (c->out == H2_CALL_OUT_HEAD && !take_head(c)) {
		h2_call_cancel(c, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	if (c->out == H2_CALL_OUT_WAITING) {
		c->out = H2_CALL_OUT_BODY;
		nghttp2_session_resume_data(h->session, c->id);
	}
	h2_client_send_later(h);
}
