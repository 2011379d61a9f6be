/* The HTTP/2 client and an origin that is slow, malformed or hostile: nothing grows, and one call stalls no other. */
#include "tests/unit/proxy/h2_origin.h"

#include "core/net/stream_internal.h"

#define MANY MIB(2)

/* One frame after the other of the same bytes. */
static void flood(struct slice frame, unsigned n)
{
	for (unsigned i = 0; i < n && fx.ended == 0; i++) {
		send_raw(frame);
		if (i % 100 == 0)
			pass();
	}
}

static char *pattern(void)
{
	char *p = malloc(MANY);
	assert_non_null(p);
	for (size_t i = 0; i < MANY; i++)
		p[i] = (char)('a' + i * 7 % 26);
	return p;
}

/* ---- room ---- */

static void as_many_as_the_origin_allows(void **state)
{
	(void)state;
	const nghttp2_settings_entry two = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 2};
	nghttp2_submit_settings(fx.origin, NGHTTP2_FLAG_NONE, &two, 1);
	RUN_UNTIL(fx.settings_acks == 2);
	struct inner *a = ask_get(0);
	assert_true(h2_client_has_room(fx.client));
	ask_get(1);
	assert_false(h2_client_has_room(fx.client));
	assert_null(h2_client_open(fx.client));
	RUN_UNTIL(seen(1)->end);
	send_list(1, LIST(HTTP_200), true);
	RUN_UNTIL(a->ends == 1);
	assert_true(h2_client_has_room(fx.client));
}

static void as_many_as_we_allow(void **state)
{
	(void)state;
	for (size_t i = 0; i < LIMIT_H2_STREAMS; i++)
		ask_get(i);
	assert_false(h2_client_has_room(fx.client));
	assert_null(h2_client_open(fx.client));
	RUN_UNTIL(seen(2 * LIMIT_H2_STREAMS - 1)->end);
	for (int32_t i = 0; i < LIMIT_H2_STREAMS; i++)
		answer(2 * i + 1, LIST(HTTP_200), SLICE("x"), NULL);
	RUN_UNTIL(fx.client->n_calls == 0);
	assert_true(h2_client_has_room(fx.client));
}

/* Those that are beyond what it allows later wait for their turn. */
static void origin_allows_less_later(void **state)
{
	(void)state;
	const nghttp2_settings_entry one = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1};
	struct inner *a = ask(0, ""), *b = ask(1, "");
	nghttp2_submit_settings(fx.origin, NGHTTP2_FLAG_NONE, &one, 1);
	RUN_UNTIL(fx.settings_acks == 2);
	stream_write(a->s, SLICE("GET /1 HTTP/1.1\r\nHost: a.test\r\n\r\n"));
	RUN_UNTIL(seen(1)->end);
	stream_write(b->s, SLICE("GET /2 HTTP/1.1\r\nHost: a.test\r\n\r\n"));
	run_passes(5);
	assert_int_equal(seen(3)->fields.len, 0);
	send_list(1, LIST(HTTP_200), true);
	RUN_UNTIL(seen(3)->end);
	assert_true(has_field(3, ":path=/2"));
}

/* A call that waits for its turn when the origin leaves. */
static void leaves_before_a_turn(void **state)
{
	(void)state;
	const nghttp2_settings_entry one = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1};
	struct inner *a = ask(0, ""), *b = ask(1, "");
	nghttp2_submit_settings(fx.origin, NGHTTP2_FLAG_NONE, &one, 1);
	RUN_UNTIL(fx.settings_acks == 2);
	stream_write(a->s, SLICE("GET /1 HTTP/1.1\r\nHost: a.test\r\n\r\n"));
	RUN_UNTIL(seen(1)->end);
	stream_write(b->s, SLICE("GET /2 HTTP/1.1\r\nHost: a.test\r\n\r\n"));
	run_passes(3);
	nghttp2_submit_goaway(fx.origin, NGHTTP2_FLAG_NONE, 1, NGHTTP2_NO_ERROR, NULL, 0);
	RUN_UNTIL(b->ends == 1);
	assert_int_equal(b->how, CAGE_EOF);
	assert_int_equal(b->got.len, 0);
	send_list(1, LIST(HTTP_200), true);
	RUN_UNTIL(fx.ended == 1 && a->ends == 1);
	assert_true(inner_is(a, "HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n\r\n"));
	assert_int_equal(seen(3)->fields.len, 0);
}

static void silent_origin(void **state)
{
	(void)state;
	ask_get(0);
	RUN_UNTIL(seen(1)->end);
	assert_true(h2_client_has_room(fx.client));
	fx.client->heard_us -= (uint64_t)LIMIT_POOL_IDLE_MS * 1000u + 1000000u;
	assert_false(h2_client_has_room(fx.client));
	send_list(1, LIST(HTTP_200), true);
	RUN_UNTIL(fx.client->n_calls == 0);
	assert_true(h2_client_has_room(fx.client));
}

static void idle_connection(void **state)
{
	(void)state;
	assert_true(fx.up->deadline_us > 0);
	struct inner *in = ask_get(0);
	assert_true(fx.up->deadline_us == 0);
	stream_reset(&in->s);
	RUN_UNTIL(fx.client->n_calls == 0);
	assert_true(fx.up->deadline_us > 0);
	stream_set_deadline(fx.up, 1);
	RUN_UNTIL(fx.ended == 1);
	RUN_UNTIL(fx.goaway == NGHTTP2_NO_ERROR);
}

/* ---- windows ---- */

/* An empty trailer section is behind it. */
static bool has_body(const struct inner *in, struct slice body)
{
	struct slice got = bytes_slice(&in->got);
	return slice_ends(got, SLICE("\r\n")) && slice_ends(slice_head(got, got.len - 2), body);
}

static void slow_reader(void **state)
{
	(void)state;
	char *big = pattern();
	struct inner *a = ask_get(0);
	a->hold = true;
	RUN_UNTIL(seen(1)->end);
	answer(1, LIST(HTTP_200, {"content-length", "2097152"}), slice_of(big, MANY), NULL);
	run_passes(200);
	size_t sent = MANY - seen(1)->reply.len;
	assert_true(sent <= LIMIT_H2_WINDOW + LIMIT_OUT_HIGH + LIMIT_PIPE + LIMIT_STREAM_IN + KIB(32));
	struct inner *b = ask_get(1);
	RUN_UNTIL(seen(3)->end);
	answer(3, LIST(HTTP_200, {"content-length", "1048576"}), slice_of(big, MIB(1)), NULL);
	RUN_UNTIL(b->ends == 1);
	assert_true(has_body(b, slice_of(big, MIB(1))));
	assert_true(seen(1)->reply.len > 0);
	a->hold = false;
	RUN_UNTIL(a->ends == 1);
	assert_int_equal(a->how, CAGE_EOF);
	assert_true(has_body(a, slice_of(big, MANY)));
	free(big);
}

static void get_slowly(const char *big, unsigned i)
{
	int32_t id = (int32_t)(2 * i + 1);
	ask_get(i)->hold = true;
	RUN_UNTIL(seen(id)->end);
	answer(id, LIST(HTTP_200), slice_of(big, MANY), NULL);
}

/* What others use up of the worker's budget stalls nobody here; and when the readers of this connection have used up its
 * window, other requests go elsewhere. */
static void a_window_that_is_used_up_is_no_room(void **state)
{
	(void)state;
	char *big = pattern();
	struct h2_windows other = {.session = fx.client->session};
	struct h2_untaken theirs = {0};
	h2_untaken_add(&theirs, &other, LIMIT_H2_UNTAKEN);
	for (unsigned i = 0; i < 3; i++)
		get_slowly(big, i);
	run_passes(200);
	assert_true(h2_client_has_room(fx.client));
	struct inner *quick = ask_get(3);
	RUN_UNTIL(seen(7)->end);
	answer(7, LIST(HTTP_200), slice_of(big, MANY), NULL);
	RUN_UNTIL(quick->ends == 1);
	for (unsigned i = 4; i < 8; i++)
		get_slowly(big, i);
	RUN_UNTIL(!h2_client_has_room(fx.client));
	assert_null(h2_client_open(fx.client));
	for (unsigned i = 0; i < 8; i++)
		fx.inner[i].hold = false;
	RUN_UNTIL(fx.client->n_calls == 0);
	assert_true(h2_client_has_room(fx.client));
	h2_untaken_forget(&theirs, &other);
	free(big);
}

/* What a call has left unread when it ends is not taken from the others, whoever has ended it. */
static void slow_readers_leave_nothing_behind(void **state)
{
	(void)state;
	char *big = pattern();
	for (unsigned i = 0; i < 20; i++) {
		struct inner *in = ask_get(i);
		int32_t id = (int32_t)(2 * i + 1);
		in->hold = true;
		RUN_UNTIL(seen(id)->end);
		answer(id, LIST(HTTP_200), slice_of(big, MANY), NULL);
		RUN_UNTIL(fx.client->calls->untaken.stream > 0);
		run_passes(20);
		if (i % 2)
			stream_reset(&in->s);
		else
			nghttp2_submit_rst_stream(fx.origin, NGHTTP2_FLAG_NONE, id, NGHTTP2_INTERNAL_ERROR);
		RUN_UNTIL(fx.client->n_calls == 0);
	}
	free(big);
}

/* More of them than windows of streams fit into that of the connection. */
static void slow_readers_stall_nobody(void **state)
{
	(void)state;
	char *big = pattern();
	for (unsigned i = 0; i < 8; i++) {
		struct inner *in = ask_get(i);
		int32_t id = (int32_t)(2 * i + 1);
		in->hold = true;
		RUN_UNTIL(seen(id)->end);
		answer(id, LIST(HTTP_200), slice_of(big, MANY), NULL);
		RUN_UNTIL(fx.client->calls->untaken.stream >= LIMIT_H2_WINDOW / 2);
		run_passes(20);
	}
	struct inner *quick = ask_get(8);
	RUN_UNTIL(seen(17)->end);
	answer(17, LIST(HTTP_200, {"content-length", "2097152"}), slice_of(big, MANY), NULL);
	RUN_UNTIL(quick->ends == 1);
	assert_true(has_body(quick, slice_of(big, MANY)));
	free(big);
}

/* A body that fills the window to the last byte: its end needs no room, nor do trailers. */
static void end_behind_a_full_window(void **state)
{
	(void)state;
	char *big = pattern();
	fx.origin_takes_nothing = true;
	struct inner *in = ask(0, "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n");
	stream_write(in->s, slice_of(big, NGHTTP2_INITIAL_WINDOW_SIZE));
	stream_write(in->s, SLICE("\r\n0\r\na: b\r\n\r\n"));
	RUN_UNTIL(seen(1)->end);
	assert_true(slice_eq(bytes_slice(&seen(1)->body), slice_of(big, NGHTTP2_INITIAL_WINDOW_SIZE)));
	assert_true(has_field(1, "a=b"));
	free(big);
}

static void slow_origin(void **state)
{
	(void)state;
	char *big = pattern();
	struct inner *a = ask(0, "PUT / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2097152\r\n\r\n");
	fx.origin_takes_nothing = true;
	stream_write(a->s, slice_of(big, MANY));
	stream_write(a->s, SLICE("\r\n"));
	run_passes(200);
	assert_int_equal(seen(1)->body.len, NGHTTP2_INITIAL_WINDOW_SIZE);
	assert_true(stream_is_clogged(a->s));
	assert_true(stream_unsent(a->s) >= MANY - NGHTTP2_INITIAL_WINDOW_SIZE - LIMIT_PIPE - LIMIT_STREAM_IN);
	struct inner *b = ask_get(1);
	RUN_UNTIL(seen(3)->end);
	answer(3, LIST(HTTP_200), SLICE("quick"), NULL);
	RUN_UNTIL(b->ends == 1);
	fx.origin_takes_nothing = false;
	nghttp2_session_consume(fx.origin, 1, seen(1)->body.len);
	RUN_UNTIL(seen(1)->end);
	assert_true(slice_eq(bytes_slice(&seen(1)->body), slice_of(big, MANY)));
	assert_int_equal(a->drained, 1);
	free(big);
}

/* ---- malformed responses ---- */

static void malformed_heads(void **state)
{
	(void)state;
	static char long_value[KIB(20) + 1];
	struct pair many[LIMIT_HEADERS + 2] = {HTTP_200};
	memset(long_value, 'v', sizeof(long_value) - 1);
	for (size_t i = 1; i <= LIMIT_HEADERS; i++)
		many[i] = (struct pair){"x", "y"};
	const struct pair *lists[] = {
		LIST(HTTP_200, {"connection", "close"}),
		LIST(HTTP_200, {"transfer-encoding", "chunked"}),
		LIST(HTTP_200, {"X", "y"}),
		LIST(HTTP_200, {"x", "y\r\nz: 1"}),
		LIST(HTTP_200, {"x", " y"}),
		LIST(HTTP_200, {"x y", "z"}),
		LIST(HTTP_200, {":path", "/"}),
		LIST(HTTP_200, HTTP_200),
		LIST({"x", "y"}),
		LIST({"x", "y"}, HTTP_200),
		LIST({":status", "101"}),
		LIST({":status", "99"}),
		LIST({":status", "1000"}),
		LIST(HTTP_200, {"content-length", "5"}),
		LIST(HTTP_200, {"content-length", "0"}, {"content-length", "0"}),
		LIST({":status", "103"}),
		LIST(HTTP_200, {"a", long_value}, {"b", long_value}, {"c", long_value}, {"d", long_value}),
		many,
	};
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		int32_t id = (int32_t)(2 * i + 1);
		struct inner *in = ask_get(i);
		RUN_UNTIL(seen(id)->end);
		send_list(id, lists[i], true);
		RUN_UNTIL(in->ends == 1);
		if (in->how != CAGE_EPROTO || in->got.len > 0)
			fail_msg("list %zu was taken", i);
		RUN_UNTIL(seen(id)->closed != NOT_CLOSED);
		assert_true(h2_client_has_room(fx.client));
	}
}

/* The head promises what does not follow. */
static void malformed_bodies(void **state)
{
	(void)state;
	const struct {
		const struct pair *list;
		const char *body;
		const struct pair *trailers;
	} cases[] = {
		{LIST(HTTP_200, {"content-length", "5"}), "four", NULL},
		{LIST(HTTP_200, {"content-length", "5"}), "sixsix", NULL},
		{LIST({":status", "204"}), "x", NULL},
		{LIST({":status", "304"}), "x", NULL},
		{LIST(HTTP_200), "x", LIST({"connection", "close"})},
		{LIST(HTTP_200), "x", LIST({":status", "200"})},
		{LIST(HTTP_200), "x", LIST({"a", "b\nc"})},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int32_t id = (int32_t)(2 * i + 1);
		struct inner *in = ask_get(i);
		RUN_UNTIL(seen(id)->end);
		answer(id, cases[i].list, slice_str(cases[i].body), cases[i].trailers);
		RUN_UNTIL(in->ends == 1);
		if (in->how != CAGE_EPROTO || slice_ends(bytes_slice(&in->got), SLICE("0\r\n\r\n")))
			fail_msg("case %zu was taken", i);
		assert_true(h2_client_has_room(fx.client));
	}
}

static void interim_flood(void **state)
{
	(void)state;
	struct inner *in = ask_get(0);
	RUN_UNTIL(seen(1)->end);
	for (unsigned i = 0; i < LIMIT_INTERIM; i++)
		send_list(1, LIST({":status", "103"}), false);
	run_passes(5);
	assert_int_equal(in->ends, 0);
	send_list(1, LIST({":status", "103"}), false);
	RUN_UNTIL(in->ends == 1);
	assert_int_equal(in->got.len, LIMIT_INTERIM * (sizeof("HTTP/1.1 103 \r\n\r\n") - 1));
	RUN_UNTIL(seen(1)->closed == NGHTTP2_PROTOCOL_ERROR);
}

/* ---- hostile origins ---- */

static void expect_calmed(struct inner *in)
{
	RUN_UNTIL(fx.ended == 1 && in->ends == 1);
	RUN_UNTIL(fx.goaway == NGHTTP2_ENHANCE_YOUR_CALM);
	assert_int_equal(in->how, CAGE_EPROTO);
	assert_int_equal(in->got.len, 0);
}

static void ping_flood(void **state)
{
	(void)state;
	struct inner *in = ask_get(0);
	flood(SLICE("\0\0\10\6\0\0\0\0\0"
		    "12345678"),
	      3 * LIMIT_H2_CONTROL);
	expect_calmed(in);
}

/* nghttp2's origin takes no acknowledgement of what it has not sent itself, and reads no further. */
static void settings_flood(void **state)
{
	(void)state;
	struct inner *in = ask_get(0);
	flood(SLICE("\0\0\0\4\0\0\0\0\0"), 3 * LIMIT_H2_CONTROL);
	RUN_UNTIL(fx.ended == 1 && in->ends == 1);
	assert_int_equal(in->got.len, 0);
}

static void window_update_flood(void **state)
{
	(void)state;
	struct inner *in = ask_get(0);
	flood(SLICE("\0\0\4\10\0\0\0\0\0\0\0\0\1"), 3 * LIMIT_H2_CONTROL);
	expect_calmed(in);
}

static void empty_data_flood(void **state)
{
	(void)state;
	struct inner *in = ask_get(0);
	RUN_UNTIL(seen(1)->end);
	send_list(1, LIST(HTTP_200), false);
	RUN_UNTIL(in->got.len > 0);
	flood(SLICE("\0\0\0\0\0\0\0\0\1"), 3 * LIMIT_H2_CONTROL);
	RUN_UNTIL(fx.ended == 1 && in->ends == 1);
	assert_int_equal(in->how, CAGE_EPROTO);
	RUN_UNTIL(fx.goaway == NGHTTP2_ENHANCE_YOUR_CALM);
}

/* Payload pays for frames without one. */
static void long_downloads_are_no_flood(void **state)
{
	(void)state;
	struct inner *in = ask_get(0);
	RUN_UNTIL(seen(1)->end);
	send_list(1, LIST(HTTP_200), false);
	RUN_UNTIL(in->got.len > 0);
	flood(SLICE("\0\0\1\0\0\0\0\0\1x"), 3 * LIMIT_H2_CONTROL);
	RUN_UNTIL(in->got.len >= 3 * LIMIT_H2_CONTROL * sizeof("1\r\nx\r"));
	assert_int_equal(fx.ended, 0);
}

static void unknown_flood(void **state)
{
	(void)state;
	struct inner *in = ask_get(0);
	flood(SLICE("\0\0\1\125\0\0\0\0\0x"), 3 * LIMIT_H2_CONTROL);
	expect_calmed(in);
}

/* PUSH_PROMISE of stream 2 on stream 1: an indexed GET. */
static void push_is_refused(void **state)
{
	(void)state;
	struct inner *in = ask_get(0);
	RUN_UNTIL(seen(1)->end);
	send_raw(SLICE("\0\0\5\5\4\0\0\0\1\0\0\0\2\x82"));
	RUN_UNTIL(fx.ended == 1 && in->ends == 1);
	assert_int_equal(in->got.len, 0);
	RUN_UNTIL(fx.goaway == NGHTTP2_PROTOCOL_ERROR);
}

static void not_http2(void **state)
{
	(void)state;
	struct inner *in = ask_get(0);
	send_raw(SLICE("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"));
	RUN_UNTIL(fx.ended == 1 && in->ends == 1);
	assert_int_equal(in->got.len, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(as_many_as_the_origin_allows),
		TEST(as_many_as_we_allow),
		TEST(origin_allows_less_later),
		TEST(leaves_before_a_turn),
		TEST(silent_origin),
		TEST(idle_connection),
		TEST(slow_reader),
		TEST(slow_readers_leave_nothing_behind),
		TEST(slow_readers_stall_nobody),
		TEST(end_behind_a_full_window),
		TEST(slow_origin),
		TEST(malformed_heads),
		TEST(malformed_bodies),
		TEST(interim_flood),
		TEST(ping_flood),
		TEST(settings_flood),
		TEST(window_update_flood),
		TEST(empty_data_flood),
		TEST(unknown_flood),
		TEST(a_window_that_is_used_up_is_no_room),
		TEST(long_downloads_are_no_flood),
		TEST(push_is_refused),
		TEST(not_http2),
	};
	return cmocka_run_group_tests_name("h2_client_bounds", tests, NULL, NULL);
}
