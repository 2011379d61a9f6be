/* The client of the tests of the HTTP/2 server. */
#include "tests/unit/proxy/h2_server.h"

#define MAX_FIELDS 260

struct fixture *fx;

/* ---- inner streams ---- */

static void inner_ready(struct stream *s, void *arg)
{
	(void)s, (void)arg;
	fail();
}

static void inner_data(struct stream *s, void *arg)
{
	struct inner *in = arg;
	if (in->hold)
		return;
	struct slice piece = stream_input(s);
	if (in->len < TEXT_ROOM) {
		struct slice kept = slice_head(piece, TEXT_ROOM - in->len);
		memcpy(in->text + in->len, kept.ptr, kept.len);
	}
	in->len += piece.len;
	stream_consume(s, piece.len);
}

static void inner_drained(struct stream *s, void *arg)
{
	(void)s, (void)arg;
}

static void inner_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	struct inner *in = arg;
	in->ends++;
	in->how = why;
}

static const struct stream_cb inner_cb = {inner_ready, inner_data, inner_drained, inner_end};

void reply(size_t i, const char *text)
{
	stream_write(fx->inner[i].s, slice_str(text));
}

void let_go(size_t i)
{
	fx->inner[i].hold = false;
	inner_data(fx->inner[i].s, &fx->inner[i]);
}

/* ---- the server's owner ---- */

static void on_request(struct h2_server *h, struct stream *s, void *arg)
{
	assert_ptr_equal(arg, fx);
	assert_true(fx->n_inner < MAX_INNER);
	struct inner *in = &fx->inner[fx->n_inner++];
	in->s = s;
	stream_set_owner(s, &inner_cb, in);
	assert_true(h == fx->server);
	if (fx->free_at_request)
		h2_server_free(&fx->server);
}

static void on_malformed(struct h2_server *h, enum reason reason, void *arg)
{
	(void)h, (void)arg;
	fx->malformed++;
	fx->reason = reason;
}

static void on_end(struct h2_server *h, enum reason reason, void *arg)
{
	(void)arg;
	assert_true(h == fx->server);
	fx->ended++;
	fx->end_reason = reason;
	h2_server_free(&fx->server);
}

static const struct h2_server_cb server_cb = {on_request, on_malformed, on_end};

/* ---- the client's nghttp2 ---- */

struct seen *seen_of(int32_t id)
{
	struct seen **slot = &fx->seen[id / 2];
	assert_true(id / 2 < MAX_STREAMS);
	if (!*slot) {
		*slot = calloc(1, sizeof(**slot));
		assert_non_null(*slot);
		(*slot)->closed = (*slot)->reset = NOT_CLOSED;
	}
	return *slot;
}

static void note(struct seen *sn, struct slice text)
{
	assert_true(text.len <= TEXT_ROOM - sn->fields_len);
	if (text.len > 0)
		memcpy(sn->fields + sn->fields_len, text.ptr, text.len);
	sn->fields_len += text.len;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
		     const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
	(void)session, (void)flags, (void)arg;
	struct seen *sn = seen_of(frame->hd.stream_id);
	note(sn, slice_of(name, name_len));
	note(sn, SLICE("="));
	note(sn, slice_of(value, value_len));
	note(sn, SLICE("\n"));
	return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	(void)session, (void)arg;
	if (frame->hd.type == NGHTTP2_GOAWAY)
		fx->goaway = frame->goaway.error_code;
	if (frame->hd.stream_id == 0)
		return 0;
	struct seen *sn = seen_of(frame->hd.stream_id);
	if (frame->hd.type == NGHTTP2_HEADERS)
		note(sn, SLICE("--\n"));
	sn->n_data += frame->hd.type == NGHTTP2_DATA;
	if (frame->hd.type == NGHTTP2_RST_STREAM)
		sn->reset = frame->rst_stream.error_code;
	else if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		sn->end = true;
	return 0;
}

/* The window of the connection is always opened again, so that only streams can stall. */
static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
			 void *arg)
{
	(void)flags, (void)arg;
	struct seen *sn = seen_of(id);
	if (sn->body_len < TEXT_ROOM) {
		size_t n = len < TEXT_ROOM - sn->body_len ? len : (size_t)(TEXT_ROOM - sn->body_len);
		memcpy(sn->body + sn->body_len, data, n);
	}
	sn->body_len += len;
	nghttp2_session_consume_connection(session, len);
	if (!fx->client_takes_nothing)
		nghttp2_session_consume_stream(session, id, len);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
	(void)session, (void)arg;
	seen_of(id)->closed = code;
	return 0;
}

static nghttp2_session *client_new(void)
{
	nghttp2_session_callbacks *c;
	nghttp2_option *o;
	nghttp2_session *session;
	nghttp2_session_callbacks_new(&c);
	nghttp2_session_callbacks_set_on_header_callback(c, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
	nghttp2_option_new(&o);
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_no_http_messaging(o, 1); /* it may send what it should not */
	nghttp2_option_set_peer_max_concurrent_streams(o, 1000);
	nghttp2_option_set_max_send_header_block_length(o, MIB(1));
	assert_int_equal(nghttp2_session_client_new2(&session, c, NULL, o), 0);
	nghttp2_option_del(o);
	nghttp2_session_callbacks_del(c);
	nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0);
	return session;
}

/* ---- requests ---- */

static ssize_t read_upload(nghttp2_session *session, int32_t id, uint8_t *buf, size_t room, uint32_t *flags,
			   nghttp2_data_source *source, void *arg)
{
	(void)source, (void)arg;
	struct seen *sn = seen_of(id);
	if (sn->upload.len == 0 && !sn->upload_ends)
		return NGHTTP2_ERR_DEFERRED;
	struct slice piece = slice_head(sn->upload, room);
	if (piece.len > 0)
		memcpy(buf, piece.ptr, piece.len);
	sn->upload = slice_from(sn->upload, piece.len);
	if (sn->upload.len > 0 || !sn->upload_ends)
		return (ssize_t)piece.len;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (sn->has_trailer) {
		nghttp2_nv nv = {(uint8_t *)"t", (uint8_t *)"v", 1, 1, NGHTTP2_NV_FLAG_NONE};
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		nghttp2_submit_trailer(session, id, &nv, 1);
	}
	return (ssize_t)piece.len;
}

static nghttp2_nv field(struct slice line)
{
	size_t n = slice_find(line, '=');
	assert_true(n < line.len);
	struct slice value = slice_from(line, n + 1);
	return (nghttp2_nv){(uint8_t *)line.ptr, (uint8_t *)value.ptr, n, value.len, NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

int32_t request(const char *fields, bool end)
{
	nghttp2_nv nv[MAX_FIELDS];
	nghttp2_data_provider body = {.read_callback = read_upload};
	struct slice rest = slice_str(fields);
	size_t n = 0;
	while (rest.len > 0) {
		assert_true(n < MAX_FIELDS);
		nv[n++] = field(slice_cut(&rest, '\n'));
	}
	int32_t id = nghttp2_submit_request(fx->client, NULL, nv, n, end ? NULL : &body, NULL);
	assert_true(id > 0);
	return id;
}

void upload(int32_t id, struct slice bytes, bool end)
{
	struct seen *sn = seen_of(id);
	assert_int_equal(sn->upload.len, 0);
	sn->upload = bytes;
	sn->upload_ends = end;
	nghttp2_session_resume_data(fx->client, id);
}

void upload_with_trailer(int32_t id, struct slice bytes)
{
	seen_of(id)->has_trailer = true;
	upload(id, bytes, true);
}

/* ---- its stream ---- */

static void client_ready(struct stream *s, void *arg)
{
	(void)s, (void)arg;
	fail();
}

static void client_data(struct stream *s, void *arg)
{
	(void)arg;
	if (fx->client_is_deaf)
		return;
	struct slice in = stream_input(s);
	assert_int_equal(nghttp2_session_mem_recv(fx->client, (const uint8_t *)in.ptr, in.len), in.len);
	stream_consume(s, in.len);
}

static void client_drained(struct stream *s, void *arg)
{
	(void)s, (void)arg;
}

static void client_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s, (void)why, (void)arg;
}

static const struct stream_cb client_cb = {client_ready, client_data, client_drained, client_end};

void turn(void)
{
	event_active(fx->keep_alive, EV_TIMEOUT, 0);
	loop_once(fx->loop);
}

void pass(void)
{
	const uint8_t *bytes;
	ssize_t n;
	if (fx->up && !fx->client_is_deaf && stream_input(fx->up).len > 0)
		client_data(fx->up, NULL);
	while (fx->up && !stream_is_clogged(fx->up) && (n = nghttp2_session_mem_send(fx->client, &bytes)) > 0)
		stream_write(fx->up, slice_of(bytes, (size_t)n));
	turn();
}

void run_passes(unsigned n)
{
	while (n-- > 0)
		pass();
}

/* ---- life ---- */

static void on_keep_alive(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

int setup(void **state)
{
	struct stream *ends[2];
	(void)state;
	fx = calloc(1, sizeof(*fx));
	assert_non_null(fx);
	fx->goaway = NOT_CLOSED;
	fx->loop = loop_new();
	fx->keep_alive = event_new(loop_base(fx->loop), -1, EV_PERSIST, on_keep_alive, NULL);
	assert_true(stream_pair(fx->loop, ends, &client_cb, NULL));
	fx->up = ends[0];
	fx->server = h2_server_new(fx->loop, ends[1], &server_cb, fx);
	assert_non_null(fx->server);
	fx->client = client_new();
	return 0;
}

int teardown(void **state)
{
	(void)state;
	h2_server_free(&fx->server);
	stream_close(&fx->up);
	for (size_t i = 0; i < fx->n_inner; i++)
		stream_close(&fx->inner[i].s);
	for (unsigned left = MAX_PASSES; left > 0 && stream_count(fx->loop) > 0; left--)
		turn();
	assert_int_equal(stream_count(fx->loop), 0);
	nghttp2_session_del(fx->client);
	for (size_t i = 0; i < MAX_STREAMS; i++)
		free(fx->seen[i]);
	event_free(fx->keep_alive);
	loop_free(&fx->loop);
	free(fx);
	return 0;
}

/* ---- what is expected ---- */

static void assert_text(const char *text, uint64_t len, const char *expected)
{
	if (len != strlen(expected) || memcmp(text, expected, strlen(expected)) != 0)
		print_error("got:\n%.*s\n", (int)(len < TEXT_ROOM ? len : TEXT_ROOM), text);
	assert_int_equal(len, strlen(expected));
	assert_memory_equal(text, expected, strlen(expected));
}

void assert_fields(int32_t id, const char *expected)
{
	assert_text(seen_of(id)->fields, seen_of(id)->fields_len, expected);
}

void assert_body(int32_t id, const char *expected)
{
	assert_text(seen_of(id)->body, seen_of(id)->body_len, expected);
}

void assert_inner_text(size_t i, const char *expected)
{
	assert_true(i < fx->n_inner);
	assert_text(fx->inner[i].text, fx->inner[i].len, expected);
}
