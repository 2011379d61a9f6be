/* The HTTP/2 server: what becomes of requests and responses, of resets and of the end of the connection. */
#include "tests/unit/proxy/h2_server.h"

#define HOST_LINE "host: a.test\r\n"
#define GET_TEXT "GET https://a.test/x HTTP/1.1\r\n" HOST_LINE
#define POST_TEXT "POST https://a.test/x HTTP/1.1\r\n" HOST_LINE

/* ---- requests ---- */

static void a_request_without_body(void **state)
{
	(void)state;
	int32_t id = request(GET "accept=*/*\ncookie=a=1\ncookie=b=2\n", true);
	RUN_UNTIL(fx->n_inner == 1 && fx->inner[0].len > 0);
	assert_inner_text(0, GET_TEXT "accept: */*\r\ncookie: a=1; b=2\r\n\r\n");
	assert_int_equal(h2_server_streams(fx->server), 1);
	reply(0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\nConnection: keep-alive\r\n\r\nok\r\n");
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_fields(id, ":status=200\ncontent-length=2\nx-a=b\n--\n");
	assert_body(id, "ok");
	assert_int_equal(seen_of(id)->closed, NGHTTP2_NO_ERROR);
	RUN_UNTIL(fx->inner[0].ends == 1);
	assert_int_equal(fx->inner[0].how, CAGE_EOF);
	assert_int_equal(h2_server_streams(fx->server), 0);
	assert_int_equal(fx->ended, 0);
}

static void a_body_with_a_length(void **state)
{
	(void)state;
	int32_t id = request(POST "content-length=5\n", false);
	upload(id, SLICE("he"), false);
	RUN_UNTIL(fx->n_inner == 1 && fx->inner[0].len > 50);
	upload(id, SLICE("llo"), true);
	run_passes(10);
	assert_inner_text(0, POST_TEXT "content-length: 5\r\n\r\nhello\r\n");
	assert_int_equal(fx->inner[0].ends, 0); /* the end of a body is no end of the stream */
}

static void a_body_with_a_length_and_trailers(void **state)
{
	(void)state;
	int32_t id = request(POST "content-length=5\n", false);
	upload_with_trailer(id, SLICE("hello"));
	run_passes(10);
	assert_inner_text(0, POST_TEXT "content-length: 5\r\n\r\nhellot: v\r\n\r\n");
	reply(0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	run_passes(10);
	assert_false(seen_of(id)->end);
	reply(0, "X-T: w\r\n\r\n");
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_fields(id, ":status=200\ncontent-length=2\n--\nx-t=w\n--\n");
	assert_body(id, "ok");
}

/* The end of one without data goes with the head, once it is known that nothing follows. */
static void the_end_of_a_response_without_data(void **state)
{
	(void)state;
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	reply(0, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	run_passes(10);
	assert_int_equal(seen_of(id)->n_data, 0);
	assert_fields(id, "");
	reply(0, "\r\n");
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_fields(id, ":status=200\ncontent-length=0\n--\n");
	assert_int_equal(seen_of(id)->n_data, 0);
	id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 2);
	reply(1, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nx-t: w\r\n\r\n");
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_fields(id, ":status=200\ncontent-length=0\n--\nx-t=w\n--\n");
}

static void a_body_without_a_length_and_trailers(void **state)
{
	(void)state;
	int32_t id = request(POST, false);
	upload(id, SLICE("he"), false);
	RUN_UNTIL(fx->n_inner == 1 && fx->inner[0].len > 50);
	run_passes(5);
	upload_with_trailer(id, SLICE("llo"));
	run_passes(10);
	assert_inner_text(0, POST_TEXT "transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nt: v\r\n\r\n");
}

static void a_body_that_is_shorter_than_it_says(void **state)
{
	(void)state;
	int32_t id = request(POST "content-length=5\n", false);
	upload(id, SLICE("he"), true);
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->reset, NGHTTP2_PROTOCOL_ERROR);
	RUN_UNTIL(fx->inner[0].ends == 1);
	assert_int_equal(fx->inner[0].how, CAGE_EPROTO);
	assert_int_equal(fx->malformed, 0); /* it was a request: its owner says what became of it */
}

static void bytes_of_the_client_one_by_one(void **state)
{
	(void)state;
	const uint8_t *bytes;
	ssize_t n;
	int32_t id = request(POST "content-length=5\n", false);
	upload(id, SLICE("hello"), true);
	while ((n = nghttp2_session_mem_send(fx->client, &bytes)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			stream_write(fx->up, slice_of(bytes + i, 1));
			turn();
		}
	}
	run_passes(10);
	assert_inner_text(0, POST_TEXT "content-length: 5\r\n\r\nhello\r\n");
}

/* ---- responses ---- */

#define CHUNKED_REPLY                                                             \
	"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n"                                   \
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n" \
	"3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\nX-Sum: 7\r\n\r\n"
#define CHUNKED_FIELDS ":status=103\nlink=x\n--\n:status=200\ntrailer=x-sum\n--\nx-sum=7\n--\n"

static void an_interim_response_chunks_and_trailers(void **state)
{
	(void)state;
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	reply(0, CHUNKED_REPLY);
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_fields(id, CHUNKED_FIELDS);
	assert_body(id, "abcdefg");
	assert_int_equal(seen_of(id)->closed, NGHTTP2_NO_ERROR);
}

static void a_response_byte_by_byte(void **state)
{
	(void)state;
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	for (const char *c = CHUNKED_REPLY; *c; c++) {
		stream_write(fx->inner[0].s, slice_of(c, 1));
		run_passes(3);
	}
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_fields(id, CHUNKED_FIELDS);
	assert_body(id, "abcdefg");
}

static void a_response_cut_in_two_anywhere(void **state)
{
	(void)state;
	struct slice all = SLICE(CHUNKED_REPLY);
	for (size_t cut = 1; cut < all.len; cut++) {
		int32_t id = request(GET, true);
		size_t i = fx->n_inner;
		RUN_UNTIL(fx->n_inner == i + 1);
		stream_write(fx->inner[i].s, slice_head(all, cut));
		run_passes(3);
		stream_write(fx->inner[i].s, slice_from(all, cut));
		RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
		assert_fields(id, CHUNKED_FIELDS);
		assert_body(id, "abcdefg");
		RUN_UNTIL(fx->inner[i].ends == 1);
	}
}

static void trailers_that_are_longer_than_the_window(void **state)
{
	(void)state;
	nghttp2_settings_entry narrow = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 8};
	nghttp2_submit_settings(fx->client, NGHTTP2_FLAG_NONE, &narrow, 1);
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	reply(0, CHUNKED_REPLY);
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_fields(id, CHUNKED_FIELDS);
	assert_body(id, "abcdefg");
}

static void responses_without_a_body(void **state)
{
	(void)state;
	static const char *const replies[] = {
		"HTTP/1.1 204 No\r\n\r\n",
		"HTTP/1.1 304 Same\r\nContent-Length: 7\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\r\n",
	};
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		int32_t id = request(GET, true);
		RUN_UNTIL(fx->n_inner == i + 1);
		reply(i, replies[i]);
		RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
		assert_int_equal(seen_of(id)->closed, NGHTTP2_NO_ERROR);
		assert_body(id, "");
	}
	int32_t id = request(":method=HEAD\n:scheme=https\n:authority=a.test\n:path=/\n", true);
	RUN_UNTIL(fx->n_inner == 4);
	reply(3, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n");
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_fields(id, ":status=200\ncontent-length=7\n--\n");
}

static void a_response_that_ends_with_its_stream(void **state)
{
	(void)state;
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	reply(0, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc");
	RUN_UNTIL(seen_of(id)->body_len == 3);
	assert_false(seen_of(id)->end);
	stream_finish(&fx->inner[0].s);
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_true(seen_of(id)->end);
	assert_int_equal(seen_of(id)->closed, NGHTTP2_NO_ERROR);
}

static void a_large_response(void **state)
{
	(void)state;
	size_t size = 3000000;
	char *body = malloc(size);
	assert_non_null(body);
	memset(body, 'x', size);
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	reply(0, "HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n");
	stream_write(fx->inner[0].s, slice_of(body, size));
	stream_write(fx->inner[0].s, SLICE("\r\n"));
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->body_len, size);
	free(body);
}

static void a_response_before_the_request_is_whole(void **state)
{
	(void)state;
	int32_t id = request(POST, false);
	upload(id, SLICE("he"), false);
	RUN_UNTIL(fx->n_inner == 1);
	reply(0, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno\r\n");
	RUN_UNTIL(seen_of(id)->end);
	assert_body(id, "no");
	run_passes(20);
	assert_int_equal(seen_of(id)->closed, NOT_CLOSED); /* it may read that first */
	upload(id, SLICE("llo"), true);
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->reset, NOT_CLOSED);
	int32_t next = request(GET, true);
	RUN_UNTIL(fx->n_inner == 2);
	reply(1, "HTTP/1.1 204 No\r\n\r\n");
	RUN_UNTIL(seen_of(next)->end);
}

static void both_directions_flow_at_once(void **state)
{
	(void)state;
	int32_t id = request(POST, false);
	RUN_UNTIL(fx->n_inner == 1);
	reply(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nr1\r\n");
	RUN_UNTIL(seen_of(id)->body_len == 2);
	uint64_t before = fx->inner[0].len;
	upload(id, SLICE("q1"), false);
	RUN_UNTIL(fx->inner[0].len > before);
	reply(0, "2\r\nr2\r\n");
	RUN_UNTIL(seen_of(id)->body_len == 4);
	upload(id, SLICE_NONE, true);
	run_passes(5);
	reply(0, "0\r\n\r\n");
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->reset, NOT_CLOSED);
	assert_body(id, "r1r2");
}

/* ---- resets ---- */

static void assert_broken_reply(const char *text)
{
	size_t i = fx->n_inner;
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == i + 1);
	reply(i, text);
	run_passes(5);
	stream_close(&fx->inner[i].s);
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->reset, NGHTTP2_INTERNAL_ERROR);
}

static void a_response_that_breaks_is_a_stream_error(void **state)
{
	(void)state;
	assert_broken_reply("");
	assert_broken_reply("HTTP/1.1 200 OK\r\nConte");
	assert_broken_reply("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc");
	assert_broken_reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
	assert_broken_reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
	assert_broken_reply("SSH-2.0-x\r\n\r\n");
	assert_broken_reply("HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
	assert_int_equal(fx->ended, 0);
}

static void a_reset_of_the_inner_stream_is_no_end(void **state)
{
	(void)state;
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	reply(0, "HTTP/1.1 200 OK\r\n\r\nabc"); /* until the end */
	RUN_UNTIL(seen_of(id)->body_len == 3);
	stream_reset(&fx->inner[0].s);
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->reset, NGHTTP2_INTERNAL_ERROR);
	assert_false(seen_of(id)->end);
}

static void too_many_interim_responses(void **state)
{
	(void)state;
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	for (unsigned i = 0; i < LIMIT_INTERIM + 1; i++)
		reply(0, "HTTP/1.1 103 Early\r\n\r\n");
	run_passes(10);
	assert_int_equal(seen_of(id)->closed, NOT_CLOSED);
	reply(0, "HTTP/1.1 103 Early\r\n\r\n");
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->reset, NGHTTP2_INTERNAL_ERROR);
}

static void a_client_that_gives_up_is_gone_at_once(void **state)
{
	(void)state;
	int32_t a = request(GET, true), b = request(GET, true);
	RUN_UNTIL(fx->n_inner == 2);
	nghttp2_submit_rst_stream(fx->client, NGHTTP2_FLAG_NONE, a, NGHTTP2_CANCEL);
	RUN_UNTIL(fx->inner[0].ends == 1);
	assert_int_equal(fx->inner[0].how, CAGE_TRUNCATED);
	reply(1, "HTTP/1.1 204 No\r\n\r\n");
	RUN_UNTIL(seen_of(b)->end);
	assert_int_equal(h2_server_streams(fx->server), 0);
}

/* ---- websocket ---- */

/* The key in the head that the inner stream got. */
static struct slice inner_key(size_t i)
{
	struct slice text = slice_of(fx->inner[i].text, (size_t)fx->inner[i].len);
	struct slice name = SLICE("sec-websocket-key: ");
	while (text.len > 0 && !slice_starts(text, name))
		slice_cut(&text, '\n');
	assert_true(text.len > name.len + WS_NONCE_LEN);
	return slice_head(slice_from(text, name.len), WS_NONCE_LEN);
}

static void accept_websocket(size_t i, bool rightly)
{
	char accept[WS_ACCEPT_LEN], room[300];
	assert_true(ws_make_accept(inner_key(i), accept));
	if (!rightly)
		accept[0] = accept[0] == 'A' ? 'B' : 'A';
	struct text t = text_in(room, sizeof(room));
	text_put(&t, SLICE("HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: "));
	text_put(&t, slice_of(accept, sizeof(accept)));
	text_put(&t, SLICE("\r\nSec-WebSocket-Protocol: chat\r\n\r\n"));
	stream_write(fx->inner[i].s, text_slice(&t));
}

static int32_t open_websocket(size_t i)
{
	int32_t id = request(WEBSOCKET "sec-websocket-version=13\n", false);
	RUN_UNTIL(fx->n_inner == i + 1 && fx->inner[i].len > 50);
	assert_true(slice_starts(slice_of(fx->inner[i].text, 40), SLICE("GET https://a.test/ws HTTP/1.1\r\n")));
	return id;
}

static void a_websocket_passes_bytes_both_ways(void **state)
{
	(void)state;
	int32_t id = open_websocket(0);
	uint32_t says = nghttp2_session_get_remote_settings(fx->client, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL);
	assert_int_equal(says, 1);
	accept_websocket(0, true);
	RUN_UNTIL(seen_of(id)->fields_len > 0);
	assert_fields(id, ":status=200\nsec-websocket-protocol=chat\n--\n");
	uint64_t before = fx->inner[0].len;
	upload(id, SLICE("\x81\x80mask"), false);
	RUN_UNTIL(fx->inner[0].len == before + 6);
	reply(0, "\x81\x02hi");
	RUN_UNTIL(seen_of(id)->body_len == 4);
	upload(id, SLICE_NONE, true);
	RUN_UNTIL(fx->inner[0].ends == 1);
	assert_int_equal(fx->inner[0].how, CAGE_EOF);
	reply(0, "bye");
	stream_finish(&fx->inner[0].s);
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->closed, NGHTTP2_NO_ERROR);
	assert_body(id, "\x81\x02hibye");
}

static void a_websocket_that_is_refused(void **state)
{
	(void)state;
	int32_t id = open_websocket(0);
	reply(0, "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno\r\n");
	RUN_UNTIL(seen_of(id)->end);
	assert_fields(id, ":status=403\ncontent-length=2\n--\n");
	assert_body(id, "no");
}

/* 200 would tell the client that it is open. */
static void a_websocket_that_is_answered_as_a_page(void **state)
{
	(void)state;
	int32_t id = open_websocket(0);
	reply(0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->reset, NGHTTP2_INTERNAL_ERROR);
}

static void a_websocket_with_the_wrong_answer(void **state)
{
	(void)state;
	int32_t id = open_websocket(0);
	accept_websocket(0, false);
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->reset, NGHTTP2_INTERNAL_ERROR);
	int32_t next = open_websocket(1);
	assert_false(slice_eq(inner_key(0), inner_key(1)));
	assert_int_equal(seen_of(next)->closed, NOT_CLOSED);
}

/* ---- the end of the connection ---- */

static void a_client_that_goes_takes_all_requests_along(void **state)
{
	(void)state;
	request(GET, true);
	request(POST, false);
	RUN_UNTIL(fx->n_inner == 2);
	stream_close(&fx->up);
	RUN_UNTIL(fx->inner[0].ends == 1 && fx->inner[1].ends == 1);
	assert_int_equal(fx->inner[0].how, CAGE_TRUNCATED);
	assert_int_equal(fx->inner[1].how, CAGE_TRUNCATED);
	assert_int_equal(fx->ended, 1);
	assert_int_equal(fx->end_reason, REASON_CLIENT_GONE);
}

static void a_client_that_goes_without_a_request(void **state)
{
	(void)state;
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	reply(0, "HTTP/1.1 204 No\r\n\r\n");
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	stream_close(&fx->up);
	RUN_UNTIL(fx->ended == 1);
	assert_int_equal(fx->end_reason, REASON_NONE);
}

static void a_client_that_says_goodbye(void **state)
{
	(void)state;
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	nghttp2_submit_goaway(fx->client, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
	run_passes(5);
	assert_int_equal(fx->ended, 0);
	reply(0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\r\n");
	RUN_UNTIL(fx->ended == 1);
	assert_int_equal(fx->end_reason, REASON_NONE);
	RUN_UNTIL(seen_of(id)->end);
}

static void a_client_that_never_speaks(void **state)
{
	(void)state;
	struct stream *up = fx->up;
	fx->up = NULL; /* nothing is sent */
	stream_set_deadline(fx->server->down, 5);
	RUN_UNTIL(fx->ended == 1);
	assert_int_equal(fx->end_reason, REASON_CLIENT_TIMEOUT);
	stream_close(&up);
}

static void a_client_that_turns_away(void **state)
{
	(void)state;
	stream_reset(&fx->up);
	RUN_UNTIL(fx->ended == 1);
	assert_int_equal(fx->end_reason, REASON_CLIENT_TLS_FAILED);
}

static void an_idle_connection_ends_in_good_order(void **state)
{
	(void)state;
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	stream_set_deadline(fx->server->down, 0);
	reply(0, "HTTP/1.1 204 No\r\n\r\n");
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	run_passes(3);
	assert_int_equal(h2_server_streams(fx->server), 0);
	stream_set_deadline(fx->server->down, 5);
	RUN_UNTIL(fx->ended == 1 && fx->goaway != NOT_CLOSED);
	assert_int_equal(fx->end_reason, REASON_NONE);
	assert_int_equal(fx->goaway, NGHTTP2_NO_ERROR);
}

static void draining_lets_requests_through(void **state)
{
	(void)state;
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	h2_server_drain(fx->server);
	RUN_UNTIL(fx->goaway != NOT_CLOSED);
	assert_int_equal(fx->goaway, NGHTTP2_NO_ERROR);
	run_passes(5);
	assert_int_equal(fx->ended, 0);
	reply(0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\r\n");
	RUN_UNTIL(fx->ended == 1);
	assert_int_equal(fx->end_reason, REASON_NONE);
	RUN_UNTIL(seen_of(id)->end);
	assert_body(id, "ok");
}

static void answers_before_the_goodbye(void **state)
{
	(void)state;
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	h2_server_drain_after(fx->server);
	reply(0, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\r\n");
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_body(id, "ok");
	int32_t late = request(GET, true);
	RUN_UNTIL(fx->n_inner == 2);
	assert_int_equal(fx->goaway, NOT_CLOSED);
	reply(1, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\r\n");
	RUN_UNTIL(seen_of(late)->closed != NOT_CLOSED);
	stream_set_deadline(fx->server->down, 5); /* as if the time was over */
	RUN_UNTIL(fx->ended == 1 && fx->goaway != NOT_CLOSED);
	assert_int_equal(fx->goaway, NGHTTP2_NO_ERROR);
	assert_int_equal(fx->end_reason, REASON_NONE);
}

static void nothing_to_answer_before_the_goodbye(void **state)
{
	(void)state;
	run_passes(5);
	h2_server_drain_after(fx->server);
	RUN_UNTIL(fx->ended == 1);
	assert_int_equal(fx->end_reason, REASON_NONE);
}

static void draining_without_requests_ends_it(void **state)
{
	(void)state;
	run_passes(5);
	h2_server_drain(fx->server);
	RUN_UNTIL(fx->ended == 1);
	assert_int_equal(fx->end_reason, REASON_NONE);
}

static void freeing_resets_what_is_open(void **state)
{
	(void)state;
	request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	h2_server_free(&fx->server);
	RUN_UNTIL(fx->inner[0].ends == 1);
	assert_int_equal(fx->inner[0].how, CAGE_TRUNCATED);
	assert_int_equal(fx->ended, 0);
}

static void freeing_inside_a_callback(void **state)
{
	(void)state;
	fx->free_at_request = true;
	request(GET, true);
	request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	run_passes(5);
	assert_int_equal(fx->n_inner, 1);
	assert_int_equal(fx->inner[0].ends, 1);
	assert_int_equal(fx->ended, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_request_without_body),
		T(a_body_with_a_length),
		T(a_body_with_a_length_and_trailers),
		T(the_end_of_a_response_without_data),
		T(a_body_without_a_length_and_trailers),
		T(a_body_that_is_shorter_than_it_says),
		T(bytes_of_the_client_one_by_one),
		T(an_interim_response_chunks_and_trailers),
		T(a_response_byte_by_byte),
		T(a_response_cut_in_two_anywhere),
		T(trailers_that_are_longer_than_the_window),
		T(responses_without_a_body),
		T(a_response_that_ends_with_its_stream),
		T(a_large_response),
		T(a_response_before_the_request_is_whole),
		T(both_directions_flow_at_once),
		T(a_response_that_breaks_is_a_stream_error),
		T(a_reset_of_the_inner_stream_is_no_end),
		T(too_many_interim_responses),
		T(a_client_that_gives_up_is_gone_at_once),
		T(a_websocket_passes_bytes_both_ways),
		T(a_websocket_that_is_refused),
		T(a_websocket_that_is_answered_as_a_page),
		T(a_websocket_with_the_wrong_answer),
		T(a_client_that_goes_takes_all_requests_along),
		T(a_client_that_goes_without_a_request),
		T(a_client_that_says_goodbye),
		T(a_client_that_never_speaks),
		T(a_client_that_turns_away),
		T(an_idle_connection_ends_in_good_order),
		T(draining_lets_requests_through),
		T(draining_without_requests_ends_it),
		T(answers_before_the_goodbye),
		T(nothing_to_answer_before_the_goodbye),
		T(freeing_resets_what_is_open),
		T(freeing_inside_a_callback),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
