/* The bounds of the HTTP/2 server: windows, floods, sizes, and streams that are refused (THREATS T12, T24). */
#include "tests/unit/proxy/h2_server.h"

#define BIG 4000000

static char *big; /* BIG bytes to send */

static int make_big(void **state)
{
	(void)state;
	big = malloc(BIG);
	if (big)
		memset(big, 'x', BIG);
	return big ? 0 : -1;
}

static int free_big(void **state)
{
	(void)state;
	free(big);
	return 0;
}

/* A frame as no library would send it. */
static void send_frame(uint8_t type, uint8_t flags, int32_t id, struct slice payload)
{
	char head[9] = {(char)(payload.len >> 16), (char)(payload.len >> 8), (char)payload.len, (char)type, (char)flags,
			(char)(id >> 24),          (char)(id >> 16),         (char)(id >> 8),   (char)id};
	stream_write(fx->up, slice_of(head, sizeof(head)));
	stream_write(fx->up, payload);
}

static void assert_calmed(void)
{
	RUN_UNTIL(fx->ended == 1 && fx->goaway != NOT_CLOSED);
	assert_int_equal(fx->goaway, NGHTTP2_ENHANCE_YOUR_CALM);
	assert_int_equal(fx->end_reason, REASON_LIMIT_RATE);
}

/* ---- windows ---- */

/* What can wait in memory for an inner stream that does not read: its buffers, and a chunk that was cut. */
#define INNER_ROOM (2 * LIMIT_PIPE + LIMIT_STREAM_IN + 2 * 16384)

static int32_t start_upload(size_t i)
{
	int32_t id = request(POST, false);
	RUN_UNTIL(fx->n_inner == i + 1);
	upload(id, slice_of(big, BIG), true);
	return id;
}

static size_t sent_of(int32_t id)
{
	return BIG - seen_of(id)->upload.len;
}

static int32_t start_stalled_upload(size_t i)
{
	fx->inner[i].hold = true;
	return start_upload(i);
}

static void a_stalled_upload_stops_no_other(void **state)
{
	(void)state;
	int32_t a = start_stalled_upload(0);
	RUN_UNTIL(sent_of(a) >= LIMIT_H2_WINDOW);
	run_passes(50);
	assert_true(sent_of(a) <= LIMIT_H2_WINDOW + INNER_ROOM);
	int32_t b = start_upload(1);
	RUN_UNTIL(fx->inner[1].len > BIG);
	assert_int_equal(sent_of(b), BIG);
	assert_true(sent_of(a) <= LIMIT_H2_WINDOW + INNER_ROOM);
	let_go(0);
	RUN_UNTIL(fx->inner[0].len > BIG);
	assert_int_equal(sent_of(a), BIG);
}

/* More of them than windows of streams fit into that of the connection. */
static void stalled_uploads_stop_no_other(void **state)
{
	(void)state;
	int32_t id[8];
	for (size_t i = 0; i < 8; i++)
		id[i] = start_stalled_upload(i);
	for (size_t i = 0; i < 8; i++)
		RUN_UNTIL(sent_of(id[i]) >= LIMIT_H2_WINDOW);
	run_passes(50);
	for (size_t i = 0; i < 8; i++)
		assert_true(sent_of(id[i]) <= LIMIT_H2_WINDOW + INNER_ROOM);
	start_upload(8);
	RUN_UNTIL(fx->inner[8].len > BIG);
}

static void beyond_what_may_wait_the_connection_waits(void **state)
{
	(void)state;
	struct h2_windows *w = &fx->server->windows;
	struct h2_untaken a = {0}, b = {0};
	h2_untaken_add(&a, w, LIMIT_H2_UNTAKEN);
	assert_int_equal(a.connection, 0);
	h2_untaken_add(&b, w, 1);
	assert_int_equal(b.connection, 1);
	assert_true(h2_windows_are_open(w));
	h2_untaken_add(&b, w, LIMIT_H2_WINDOW);
	assert_false(h2_windows_are_open(w));
	h2_untaken_forget(&a, w);
	h2_untaken_forget(&b, w);
	assert_true(h2_windows_are_open(w));
	h2_untaken_add(&b, w, 1);
	assert_int_equal(b.connection, 0);
	h2_untaken_forget(&b, w);
	assert_int_equal(w->ahead + w->closed, 0);
}

/* What the others have used up leaves each connection its own. */
static void each_connection_has_a_share(void **state)
{
	(void)state;
	struct h2_windows *w = &fx->server->windows, other = {.session = fx->server->session};
	struct h2_untaken a = {0}, b = {0};
	h2_untaken_add(&a, &other, LIMIT_H2_UNTAKEN);
	h2_untaken_add(&b, w, LIMIT_H2_AHEAD);
	assert_int_equal(b.connection, 0);
	h2_untaken_add(&b, w, 1);
	assert_int_equal(b.connection, 1);
	h2_untaken_forget(&a, &other);
	h2_untaken_forget(&b, w);
}

/* One that goes on sending behind its answer. */
static void an_answered_upload_has_only_so_much_time(void **state)
{
	(void)state;
	int32_t id = start_stalled_upload(0);
	run_passes(50);
	fx->client_takes_nothing = true;
	stream_write(fx->inner[0].s, SLICE("HTTP/1.1 413 Big\r\nContent-Length: 2\r\n\r\nno\r\n"));
	RUN_UNTIL(fx->server->streams->in == H2_IN_LEFT);
	event_active(&fx->server->streams->linger, EV_TIMEOUT, 0);
	fx->client_takes_nothing = false;
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->reset, NGHTTP2_NO_ERROR);
	assert_body(id, "no");
}

static void an_answered_upload_has_only_so_much_to_say(void **state)
{
	(void)state;
	int32_t id = start_stalled_upload(0);
	run_passes(50);
	stream_write(fx->inner[0].s, SLICE("HTTP/1.1 413 Big\r\nContent-Length: 2\r\n\r\nno\r\n"));
	RUN_UNTIL(fx->server->streams->in == H2_IN_LEFT);
	fx->server->streams->dropped = LIMIT_H2_LINGER_BYTES - 1; /* nearly all of it */
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->reset, NGHTTP2_NO_ERROR);
	assert_body(id, "no");
}

static void a_stalled_upload_that_is_given_up_frees_the_window(void **state)
{
	(void)state;
	int32_t id[4];
	for (size_t i = 0; i < 4; i++)
		id[i] = start_stalled_upload(i);
	run_passes(300);
	for (size_t i = 0; i < 4; i++)
		nghttp2_submit_rst_stream(fx->client, NGHTTP2_FLAG_NONE, id[i], NGHTTP2_CANCEL);
	start_upload(4);
	RUN_UNTIL(fx->inner[4].len > BIG);
}

static void an_upload_to_an_inner_stream_that_has_closed(void **state)
{
	(void)state;
	int32_t id = start_stalled_upload(0);
	run_passes(50);
	stream_write(fx->inner[0].s, SLICE("HTTP/1.1 413 Big\r\nContent-Length: 2\r\n\r\nno\r\n"));
	stream_finish(&fx->inner[0].s);
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->reset, NOT_CLOSED);
	assert_body(id, "no");
	start_upload(1);
	RUN_UNTIL(fx->inner[1].len > BIG);
}

static int32_t start_stalled_response(void)
{
	int32_t id = request(GET, true);
	fx->client_takes_nothing = true;
	RUN_UNTIL(fx->n_inner == 1);
	reply(0, "HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n");
	stream_write(fx->inner[0].s, slice_of(big, BIG));
	stream_write(fx->inner[0].s, SLICE("\r\n"));
	run_passes(100);
	return id;
}

static void a_stalled_response_stops_no_other(void **state)
{
	(void)state;
	int32_t a = start_stalled_response();
	assert_int_equal(seen_of(a)->body_len, NGHTTP2_INITIAL_WINDOW_SIZE);
	assert_true(stream_is_clogged(fx->inner[0].s));
	assert_true(stream_unsent(fx->inner[0].s) > BIG - NGHTTP2_INITIAL_WINDOW_SIZE - INNER_ROOM);
	int32_t b = request(GET, true);
	RUN_UNTIL(fx->n_inner == 2);
	reply(1, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\r\n");
	RUN_UNTIL(seen_of(b)->closed != NOT_CLOSED);
	assert_body(b, "hello");
	fx->client_takes_nothing = false;
	nghttp2_session_consume_stream(fx->client, a, NGHTTP2_INITIAL_WINDOW_SIZE);
	RUN_UNTIL(seen_of(a)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(a)->body_len, BIG);
}

static void look(void)
{
	event_active(&fx->server->look, EV_TIMEOUT, 0);
	run_passes(3);
}

static void a_response_that_is_not_taken_has_an_end(void **state)
{
	(void)state;
	int32_t id = start_stalled_response();
	for (unsigned i = 0; i < LIMIT_H2_STALL_LOOKS; i++)
		look(); /* at the first of them something has moved */
	nghttp2_session_consume_stream(fx->client, id, NGHTTP2_INITIAL_WINDOW_SIZE);
	run_passes(10);
	for (unsigned i = 0; i < LIMIT_H2_STALL_LOOKS; i++)
		look();
	assert_int_equal(seen_of(id)->closed, NOT_CLOSED);
	look();
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->reset, NGHTTP2_CANCEL);
	RUN_UNTIL(fx->inner[0].ends > 0);
	assert_int_equal(fx->inner[0].how, CAGE_TRUNCATED);
}

static void a_server_that_thinks_is_not_stuck(void **state)
{
	(void)state;
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	for (unsigned i = 0; i < 3 * LIMIT_H2_STALL_LOOKS; i++)
		look();
	reply(0, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (unsigned i = 0; i < 3 * LIMIT_H2_STALL_LOOKS; i++)
		look();
	reply(0, "0\r\n\r\n");
	RUN_UNTIL(seen_of(id)->end);
}

/* ---- floods ---- */

/* A request whose inner stream is the first, over and over. */
static int32_t request_again(void)
{
	stream_close(&fx->inner[0].s);
	fx->n_inner = 0;
	fx->inner[0] = (struct inner){0};
	int32_t id = request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	return id;
}

static void t24_rapid_reset(void **state)
{
	(void)state;
	for (unsigned i = 0; i < LIMIT_H2_RESETS; i++) {
		int32_t id = request_again();
		nghttp2_submit_rst_stream(fx->client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
	}
	run_passes(3);
	assert_int_equal(fx->ended, 0);
	for (unsigned i = 0; i < 100 * LIMIT_H2_RESETS_RATE && fx->ended == 0; i++) {
		int32_t id = request_again();
		nghttp2_submit_rst_stream(fx->client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
		run_passes(3);
	}
	assert_calmed();
}

static void t24_requests_that_are_answered_pay_for_resets(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3 * LIMIT_H2_RESETS; i++) {
		int32_t id = request_again();
		if (i % 2 == 0)
			nghttp2_submit_rst_stream(fx->client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
		else
			reply(0, "HTTP/1.1 204 No\r\n\r\n");
		RUN_UNTIL(fx->inner[0].ends == 1);
	}
	assert_int_equal(fx->ended, 0);
}

static void t24_malformed_requests_are_resets(void **state)
{
	(void)state;
	for (unsigned i = 0; i < LIMIT_H2_RESETS + LIMIT_H2_RESETS_RATE + 1 && fx->ended == 0; i++) {
		request(GET "connection=close\n", true);
		pass();
	}
	assert_calmed();
	assert_int_equal(fx->n_inner, 0);
	assert_true(fx->malformed > 0);
}

enum flood {
	FLOOD_PING,
	FLOOD_SETTINGS,
	FLOOD_PRIORITY,
	FLOOD_WINDOW,
	FLOOD_EMPTY_DATA,
	FLOOD_PADDING,
	FLOOD_UNKNOWN,
	FLOOD_GONE_HEAD, /* of a stream that was reset */
	FLOOD_GONE_DATA,
	FLOOD_KINDS
};

#define GONE 1

static void request_that_is_given_up(void)
{
	assert_int_equal(request(POST, false), GONE);
	RUN_UNTIL(fx->n_inner == 1);
	nghttp2_submit_rst_stream(fx->client, NGHTTP2_FLAG_NONE, GONE, NGHTTP2_CANCEL);
	RUN_UNTIL(!fx->server->streams);
	stream_close(&fx->inner[0].s);
	fx->n_inner = 0;
	fx->inner[0] = (struct inner){0};
}

static void flood_once(enum flood kind, int32_t id)
{
	switch (kind) {
	case FLOOD_PING:
		send_frame(NGHTTP2_PING, 0, 0, SLICE("12345678"));
		break;
	case FLOOD_SETTINGS:
		nghttp2_submit_settings(fx->client, NGHTTP2_FLAG_NONE, NULL, 0); /* it must expect the answer */
		break;
	case FLOOD_PRIORITY:
		send_frame(NGHTTP2_PRIORITY, 0, id, SLICE("\0\0\0\0\5"));
		break;
	case FLOOD_WINDOW:
		send_frame(NGHTTP2_WINDOW_UPDATE, 0, 0, SLICE("\0\0\0\1"));
		break;
	case FLOOD_EMPTY_DATA:
		send_frame(NGHTTP2_DATA, 0, id, SLICE_NONE);
		break;
	case FLOOD_PADDING:
		send_frame(NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, id, SLICE("\3\0\0\0"));
		break;
	case FLOOD_UNKNOWN:
		send_frame(0x55, 0, 0, SLICE("nobody knows"));
		break;
	case FLOOD_GONE_HEAD:
		send_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, GONE, SLICE_NONE);
		break;
	case FLOOD_GONE_DATA:
		send_frame(NGHTTP2_DATA, 0, GONE, SLICE_NONE);
		break;
	case FLOOD_KINDS:
		fail();
	}
}

/* Some are a flood; some are not, and not when there is payload among them. */
static void t24_frames_that_carry_nothing(void **state)
{
	for (enum flood kind = 0; kind < FLOOD_KINDS; kind++) {
		request_that_is_given_up();
		int32_t id = request(POST, false);
		RUN_UNTIL(fx->n_inner == 1);
		for (unsigned i = 0; i < LIMIT_H2_CONTROL / 2; i++) {
			flood_once(kind, id);
			if (i % 50 == 0)
				run_passes(3);
		}
		run_passes(3);
		assert_int_equal(fx->ended, 0);
		for (unsigned i = 0; i < LIMIT_H2_CONTROL; i++) {
			flood_once(kind, id);
			send_frame(NGHTTP2_DATA, 0, id, SLICE("x"));
			if (i % 50 == 0)
				run_passes(3);
		}
		run_passes(20);
		assert_int_equal(fx->ended, 0);
		for (unsigned i = 0; i < 2 * LIMIT_H2_CONTROL; i++)
			flood_once(kind, id);
		assert_calmed();
		assert_int_equal(fx->inner[0].how, CAGE_TRUNCATED);
		teardown(state);
		setup(state);
	}
}

/* A response of BIG bytes to a client that has room for it and reads none of it. */
static void respond_to_the_deaf(void)
{
	nghttp2_settings_entry wide = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, BIG};
	nghttp2_submit_settings(fx->client, NGHTTP2_FLAG_NONE, &wide, 1);
	nghttp2_session_set_local_window_size(fx->client, NGHTTP2_FLAG_NONE, 0, BIG);
	request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	run_passes(5);
	fx->client_is_deaf = true;
	reply(0, "HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n");
	stream_write(fx->inner[0].s, slice_of(big, BIG));
	stream_write(fx->inner[0].s, SLICE("\r\n"));
	RUN_UNTIL(stream_is_clogged(fx->server->down));
}

static void a_client_that_does_not_read_gets_no_more(void **state)
{
	(void)state;
	respond_to_the_deaf();
	run_passes(100);
	assert_true(stream_unsent(fx->server->down) <= LIMIT_PIPE + 16384 + 9);
	assert_true(stream_unsent(fx->inner[0].s) > BIG - 2 * INNER_ROOM);
	fx->client_is_deaf = false;
	RUN_UNTIL(seen_of(1)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(1)->body_len, BIG);
}

static void t24_answers_that_nobody_reads(void **state)
{
	(void)state;
	respond_to_the_deaf();
	for (unsigned i = 0; i < LIMIT_H2_ACKS + 1; i++)
		send_frame(NGHTTP2_PING, 0, 0, SLICE("12345678"));
	RUN_UNTIL(fx->ended == 1);
	assert_int_equal(fx->end_reason, REASON_LIMIT_RATE);
}

static void t24_endless_continuations(void **state)
{
	(void)state;
	run_passes(5);
	send_frame(NGHTTP2_HEADERS, 0, 1, SLICE_NONE);
	for (unsigned i = 0; i < 1000; i++)
		send_frame(NGHTTP2_CONTINUATION, 0, 1, SLICE_NONE);
	RUN_UNTIL(fx->ended == 1);
	assert_int_equal(fx->end_reason, REASON_LIMIT_RATE);
	assert_int_equal(fx->n_inner, 0);
}

/* ---- sizes ---- */

static void assert_refused(int32_t id, uint32_t code, enum reason reason)
{
	RUN_UNTIL(seen_of(id)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(id)->reset, code);
	assert_int_equal(fx->malformed, 1);
	assert_int_equal(fx->reason, reason);
	assert_int_equal(fx->n_inner, 0);
	assert_int_equal(fx->ended, 0);
}

/* GET with n fields more, all alike: each but the first is one byte of HPACK. */
static int32_t request_with_fields(size_t n, size_t value_len)
{
	size_t room = n * (value_len + 4) + sizeof(GET);
	char *text = malloc(room);
	assert_non_null(text);
	struct text t = text_in(text, room);
	text_put(&t, SLICE(GET));
	for (size_t i = 0; i < n; i++) {
		text_put(&t, SLICE("x="));
		text_put(&t, slice_of(big, value_len));
		text_put(&t, SLICE("\n"));
	}
	text_put(&t, slice_of("", 1));
	assert_true(text_ok(&t));
	int32_t id = request(text, true);
	run_passes(1); /* names are not copied */
	free(text);
	return id;
}

static void t24_a_head_that_is_too_long(void **state)
{
	(void)state;
	int32_t id = request_with_fields(1, LIMIT_HEAD);
	assert_refused(id, NGHTTP2_ENHANCE_YOUR_CALM, REASON_HEAD_TOO_LARGE);
}

static void t24_a_head_with_too_many_fields(void **state)
{
	(void)state;
	int32_t id = request_with_fields(LIMIT_HEADERS, 1);
	assert_refused(id, NGHTTP2_ENHANCE_YOUR_CALM, REASON_HEAD_TOO_LARGE);
}

static void t24_hpack_bomb(void **state)
{
	(void)state;
	int32_t id = request_with_fields(100, 3000);
	assert_refused(id, NGHTTP2_ENHANCE_YOUR_CALM, REASON_HEAD_TOO_LARGE);
}

static void a_head_as_long_as_may_be(void **state)
{
	(void)state;
	request_with_fields(10, LIMIT_HEAD / 10 - 100);
	RUN_UNTIL(fx->n_inner == 1);
	assert_int_equal(fx->malformed, 0);
}

static void t24_more_streams_than_may_be(void **state)
{
	(void)state;
	fx->client_is_deaf = true; /* so that it does not know the bound */
	int32_t last = 0;
	for (unsigned i = 0; i < LIMIT_H2_STREAMS + 20; i++)
		last = request(GET, true);
	run_passes(20);
	assert_int_equal(fx->n_inner, LIMIT_H2_STREAMS);
	assert_int_equal(h2_server_streams(fx->server), LIMIT_H2_STREAMS);
	fx->client_is_deaf = false;
	RUN_UNTIL(seen_of(last)->closed != NOT_CLOSED);
	assert_int_equal(seen_of(last)->reset, NGHTTP2_REFUSED_STREAM);
	assert_int_equal(fx->ended, 0);
}

/* ---- what is no request ---- */

static void malformed_requests_are_refused_and_told(void **state)
{
	static const char *const lists[] = {
		GET "connection=close\n",
		GET "Upper=x\n",
		GET "x= blank\n",
		GET "transfer-encoding=chunked\n",
		GET ":path=/y\n",
		GET "content-length=+5\n",
		":method=GET\n:scheme=https\n:authority=a.test\n",
		":method=GET\n:scheme=https\n:authority=a.test\n:path=x\n",
		":method=GET\n:scheme=https\n:authority=a.test/x\n:path=/\n",
		":method=GET\n:scheme=http\n:authority=a.test\n:path=/\n",
		":method=CONNECT\n:protocol=other\n:scheme=https\n:authority=a.test\n:path=/\n",
		":method=GET\n:protocol=websocket\n:scheme=https\n:authority=a.test\n:path=/\n",
		WEBSOCKET, /* that ends at once */
	};
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		int32_t id = request(lists[i], true);
		assert_refused(id, NGHTTP2_PROTOCOL_ERROR, REASON_HEAD_MALFORMED);
		int32_t good = request(GET, true);
		RUN_UNTIL(fx->n_inner == 1);
		reply(0, "HTTP/1.1 204 No\r\n\r\n");
		RUN_UNTIL(seen_of(good)->end);
		teardown(state);
		setup(state);
	}
}

static void t12_bytes_that_are_no_http2(void **state)
{
	(void)state;
	nghttp2_session_del(fx->client);
	fx->client = NULL;
	fx->client_is_deaf = true;
	stream_write(fx->up, SLICE("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"));
	for (unsigned left = MAX_PASSES; fx->ended == 0 && left > 0; left--)
		turn();
	assert_int_equal(fx->ended, 1);
	assert_int_equal(fx->end_reason, REASON_PROTOCOL_UNKNOWN);
	assert_int_equal(fx->n_inner, 0);
}

static void frames_that_break_the_connection(void **state)
{
	(void)state;
	request(GET, true);
	RUN_UNTIL(fx->n_inner == 1);
	send_frame(NGHTTP2_DATA, 0, 0, SLICE("x"));
	RUN_UNTIL(fx->ended == 1 && fx->goaway != NOT_CLOSED);
	assert_int_equal(fx->goaway, NGHTTP2_PROTOCOL_ERROR);
	assert_int_equal(fx->end_reason, REASON_PROTOCOL_UNKNOWN);
	RUN_UNTIL(fx->inner[0].ends == 1);
}

static void a_head_that_can_not_be_decoded(void **state)
{
	(void)state;
	run_passes(5);
	send_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, SLICE("\xff\xff\xff\xff\xff"));
	RUN_UNTIL(fx->ended == 1 && fx->goaway != NOT_CLOSED);
	assert_int_equal(fx->goaway, NGHTTP2_COMPRESSION_ERROR);
	assert_int_equal(fx->end_reason, REASON_HEAD_MALFORMED);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_stalled_upload_stops_no_other),
		T(stalled_uploads_stop_no_other),
		T(beyond_what_may_wait_the_connection_waits),
		T(each_connection_has_a_share),
		T(an_answered_upload_has_only_so_much_time),
		T(an_answered_upload_has_only_so_much_to_say),
		T(a_stalled_upload_that_is_given_up_frees_the_window),
		T(an_upload_to_an_inner_stream_that_has_closed),
		T(a_stalled_response_stops_no_other),
		T(a_response_that_is_not_taken_has_an_end),
		T(a_server_that_thinks_is_not_stuck),
		T(a_client_that_does_not_read_gets_no_more),
		T(t24_rapid_reset),
		T(t24_requests_that_are_answered_pay_for_resets),
		T(t24_malformed_requests_are_resets),
		T(t24_frames_that_carry_nothing),
		T(t24_answers_that_nobody_reads),
		T(t24_endless_continuations),
		T(t24_a_head_that_is_too_long),
		T(t24_a_head_with_too_many_fields),
		T(t24_hpack_bomb),
		T(a_head_as_long_as_may_be),
		T(t24_more_streams_than_may_be),
		T(malformed_requests_are_refused_and_told),
		T(t12_bytes_that_are_no_http2),
		T(frames_that_break_the_connection),
		T(a_head_that_can_not_be_decoded),
	};
	return cmocka_run_group_tests(tests, make_big, free_big);
}
