/* The origin of the tests of the HTTP/2 client. */
#include "tests/unit/proxy/h2_origin.h"

#define MAX_SEEN 4096
#define MAX_LIST 256

struct fixture fx;

/* ---- the origin's side of the wire ---- */

struct seen *seen(int32_t id)
{
	assert_true(id / 2 < MAX_SEEN);
	return &fx.seen[id / 2];
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
		     const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
	(void)session, (void)arg;
	struct bytes *b = &seen(frame->hd.stream_id)->fields;
	if (flags & NGHTTP2_NV_FLAG_NO_INDEX)
		bytes_add_char(b, '!');
	bytes_add(b, slice_of(name, name_len));
	bytes_add_char(b, '=');
	bytes_add(b, slice_of(value, value_len));
	bytes_add_char(b, '\n');
	return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	(void)session, (void)arg;
	if (frame->hd.type == NGHTTP2_GOAWAY)
		fx.goaway = frame->goaway.error_code;
	if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK))
		fx.settings_acks++;
	if (frame->hd.type == NGHTTP2_HEADERS)
		bytes_add(&seen(frame->hd.stream_id)->fields, SLICE("--\n"));
	if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
	    (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		seen(frame->hd.stream_id)->end = true;
	return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
			 void *arg)
{
	(void)flags, (void)arg;
	bytes_add(&seen(id)->body, slice_of(data, len));
	if (!fx.origin_takes_nothing)
		nghttp2_session_consume(session, id, len);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
	(void)session, (void)arg;
	seen(id)->closed = code;
	return 0;
}

/* As it stands: nghttp2 would write names in lower case if it copied them. */
static size_t make_list(nghttp2_nv nv[MAX_LIST], const struct pair *list)
{
	size_t n = 0;
	for (; list[n].name; n++) {
		assert_true(n < MAX_LIST);
		nv[n] = (nghttp2_nv){.name = (uint8_t *)list[n].name,
				     .value = (uint8_t *)list[n].value,
				     .namelen = strlen(list[n].name),
				     .valuelen = strlen(list[n].value),
				     .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME};
	}
	return n;
}

static ssize_t read_reply(nghttp2_session *session, int32_t id, uint8_t *buf, size_t room, uint32_t *flags,
			  nghttp2_data_source *source, void *arg)
{
	(void)arg;
	struct seen *s = source->ptr;
	struct slice piece = slice_head(s->reply, room);
	nghttp2_nv nv[MAX_LIST];
	if (piece.len == 0 && s->reply_pauses)
		return NGHTTP2_ERR_DEFERRED;
	if (piece.len > 0)
		memcpy(buf, piece.ptr, piece.len);
	s->reply = slice_from(s->reply, piece.len);
	if (s->reply.len > 0 || s->reply_pauses)
		return (ssize_t)piece.len;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (s->reply_trailers) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		assert_int_equal(nghttp2_submit_trailer(session, id, nv, make_list(nv, s->reply_trailers)), 0);
	}
	return (ssize_t)piece.len;
}

void answer(int32_t id, const struct pair *list, struct slice body, const struct pair *trailers)
{
	nghttp2_nv nv[MAX_LIST];
	struct seen *s = seen(id);
	nghttp2_data_provider provider = {.source.ptr = s, .read_callback = read_reply};
	s->reply = body;
	s->reply_trailers = trailers;
	assert_int_equal(nghttp2_submit_response(fx.origin, id, nv, make_list(nv, list), &provider), 0);
}

void send_list(int32_t id, const struct pair *list, bool end)
{
	nghttp2_nv nv[MAX_LIST];
	uint8_t flags = end ? NGHTTP2_FLAG_END_STREAM : NGHTTP2_FLAG_NONE;
	assert_int_equal(nghttp2_submit_headers(fx.origin, flags, id, NULL, nv, make_list(nv, list), NULL), 0);
}

static void origin_sends(void)
{
	const uint8_t *bytes;
	ssize_t n;
	while (fx.down && !stream_is_clogged(fx.down) && (n = nghttp2_session_mem_send(fx.origin, &bytes)) > 0)
		stream_write(fx.down, slice_of(bytes, (size_t)n));
}

void send_raw(struct slice bytes)
{
	origin_sends();
	stream_write(fx.down, bytes);
}

/* ---- callbacks ---- */

static void ignore(struct stream *s, void *arg)
{
	(void)s, (void)arg;
}

static void ignore_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s, (void)why, (void)arg;
}

static void down_data(struct stream *s, void *arg)
{
	(void)arg;
	struct slice in = stream_input(s);
	assert_int_equal(nghttp2_session_mem_recv(fx.origin, (const uint8_t *)in.ptr, in.len), in.len);
	stream_consume(s, in.len);
}

static const struct stream_cb down_cb = {
	.on_ready = ignore, .on_data = down_data, .on_drained = ignore, .on_end = ignore_end};

static void take(struct inner *in)
{
	if (in->hold || !in->s)
		return;
	struct slice input = stream_input(in->s);
	bytes_add(&in->got, input);
	stream_consume(in->s, input.len);
}

static void inner_data(struct stream *s, void *arg)
{
	(void)s;
	take(arg);
}

static void inner_drained(struct stream *s, void *arg)
{
	(void)s;
	struct inner *in = arg;
	in->drained++;
}

static void inner_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	struct inner *in = arg;
	in->ends++;
	in->how = why;
}

static const struct stream_cb inner_cb = {
	.on_ready = ignore, .on_data = inner_data, .on_drained = inner_drained, .on_end = inner_end};

static void client_ended(struct h2_client *h, void *arg)
{
	assert_ptr_equal(arg, &fx);
	assert_ptr_equal(h, fx.client);
	fx.ended++;
	if (fx.frees_at_end)
		h2_client_free(&fx.client);
}

static const struct h2_client_cb client_cb = {.on_end = client_ended};

/* ---- the inner streams ---- */

struct inner *ask(size_t i, const char *text)
{
	struct inner *in = &fx.inner[i];
	assert_null(in->s);
	in->s = h2_client_open(fx.client);
	assert_non_null(in->s);
	stream_set_owner(in->s, &inner_cb, in);
	stream_write(in->s, slice_str(text));
	return in;
}

struct inner *ask_get(size_t i)
{
	return ask(i, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
}

bool inner_has(const struct inner *in, const char *text)
{
	return slice_starts(bytes_slice(&in->got), slice_str(text));
}

bool inner_is(const struct inner *in, const char *text)
{
	return slice_eq(bytes_slice(&in->got), slice_str(text));
}

bool has_field(int32_t id, const char *line)
{
	struct slice all = bytes_slice(&seen(id)->fields);
	while (all.len > 0)
		if (slice_eq(slice_cut(&all, '\n'), slice_str(line)))
			return true;
	return false;
}

/* ---- life ---- */

void pass(void)
{
	origin_sends();
	loop_once(fx.loop);
	for (size_t i = 0; i < MAX_INNER; i++)
		take(&fx.inner[i]);
}

void run_passes(unsigned n)
{
	while (n-- > 0)
		pass();
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

static void start_origin(void)
{
	nghttp2_session_callbacks *c;
	nghttp2_option *o;
	assert_int_equal(nghttp2_session_callbacks_new(&c), 0);
	assert_int_equal(nghttp2_option_new(&o), 0);
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_max_send_header_block_length(o, 4 * LIMIT_HEAD);
	nghttp2_session_callbacks_set_on_header_callback(c, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
	assert_int_equal(nghttp2_session_server_new2(&fx.origin, c, NULL, o), 0);
	assert_int_equal(nghttp2_submit_settings(fx.origin, NGHTTP2_FLAG_NONE, NULL, 0), 0);
	nghttp2_session_callbacks_del(c);
	nghttp2_option_del(o);
}

int setup(void **state)
{
	(void)state;
	struct timeval often = loop_ms(1);
	struct stream *ends[2];
	fx = (struct fixture){.loop = loop_new(), .goaway = NOT_CLOSED};
	fx.seen = calloc(MAX_SEEN, sizeof(*fx.seen));
	assert_true(fx.loop && fx.seen);
	for (size_t i = 0; i < MAX_SEEN; i++)
		fx.seen[i].closed = NOT_CLOSED;
	fx.tick = event_new(loop_base(fx.loop), -1, EV_PERSIST, on_tick, NULL);
	event_add(fx.tick, &often);
	assert_true(stream_pair(fx.loop, ends, &down_cb, NULL));
	fx.up = ends[0];
	fx.down = ends[1];
	start_origin();
	fx.client = h2_client_new(fx.loop, fx.up, &client_cb, &fx);
	assert_non_null(fx.client);
	RUN_UNTIL(fx.settings_acks == 1);
	return 0;
}

int teardown(void **state)
{
	(void)state;
	h2_client_free(&fx.client);
	stream_close(&fx.down);
	for (size_t i = 0; i < MAX_INNER; i++) {
		stream_close(&fx.inner[i].s);
		bytes_free(&fx.inner[i].got);
	}
	RUN_UNTIL(stream_count(fx.loop) == 0);
	nghttp2_session_del(fx.origin);
	for (size_t i = 0; i < MAX_SEEN; i++) {
		bytes_free(&fx.seen[i].fields);
		bytes_free(&fx.seen[i].body);
	}
	free(fx.seen);
	event_free(fx.tick);
	loop_free(&fx.loop);
	return 0;
}
