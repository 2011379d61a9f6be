/* The HTTP/2 client: requests and responses of every shape, and each way in which they end. */
#include "tests/unit/proxy/h2_origin.h"

#define POST_CHUNKED \
	"POST /x?y HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\nConnection: TE\r\n\r\n"

/* ---- exchanges ---- */

static void get(void **state)
{
	(void)state;
	struct inner *in =
		ask(0, "GET /x?y HTTP/1.1\r\nHost: a.test:8443\r\nAccept: */*\r\nAuthorization: secret\r\n\r\n");
	RUN_UNTIL(seen(1)->end);
	assert_true(slice_eq(bytes_slice(&seen(1)->fields),
			     SLICE(":method=GET\n:scheme=https\n:authority=a.test:8443\n:path=/x?y\naccept=*/*\n"
				   "!authorization=secret\n--\n")));
	answer(1, LIST(HTTP_200, {"content-length", "5"}, {"x", "y"}), SLICE("hello"), NULL);
	RUN_UNTIL(in->ends == 1);
	assert_int_equal(in->how, CAGE_EOF);
	assert_true(inner_is(in, "HTTP/1.1 200 \r\nx: y\r\ncontent-length: 5\r\n\r\nhello\r\n"));
	assert_int_equal(seen(1)->closed, NGHTTP2_NO_ERROR);
	assert_int_equal(fx.client->n_calls, 0);
	assert_int_equal(fx.ended, 0);
}

static void body_of_a_length(void **state)
{
	(void)state;
	struct inner *in = ask(0, "PUT / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhel");
	RUN_UNTIL(seen(1)->body.len == 3);
	assert_true(has_field(1, "content-length=5"));
	assert_false(seen(1)->end);
	stream_write(in->s, SLICE("lo"));
	RUN_UNTIL(seen(1)->body.len == 5);
	run_passes(5);
	assert_false(seen(1)->end);
	stream_write(in->s, SLICE("a: b\r\n\r\n"));
	RUN_UNTIL(seen(1)->end);
	assert_true(slice_eq(bytes_slice(&seen(1)->body), SLICE("hello")));
	assert_true(has_field(1, "a=b"));
	send_list(1, LIST({":status", "204"}), true);
	RUN_UNTIL(in->ends == 1);
	assert_int_equal(in->how, CAGE_EOF);
	assert_true(inner_is(in, "HTTP/1.1 204 \r\n\r\n"));
}

/* Each time cut at another place, all on one connection. */
static void request_in_pieces(void **state)
{
	(void)state;
	const struct slice text = SLICE(POST_CHUNKED "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\ngrpc-a: b\r\n\r\n");
	for (size_t cut = 0; cut <= text.len; cut++) {
		int32_t id = (int32_t)(2 * cut + 1);
		struct inner *in = ask(0, "");
		for (size_t i = 0; cut == text.len && i < text.len; i++) { /* the last time byte by byte */
			stream_write(in->s, slice_head(slice_from(text, i), 1));
			pass();
		}
		if (cut < text.len) {
			stream_write(in->s, slice_head(text, cut));
			run_passes(2);
			stream_write(in->s, slice_from(text, cut));
		}
		RUN_UNTIL(seen(id)->end);
		assert_true(slice_eq(bytes_slice(&seen(id)->fields),
				     SLICE(":method=POST\n:scheme=https\n:authority=a.test\n:path=/x?y\nte=trailers\n"
					   "--\ngrpc-a=b\n--\n")));
		assert_true(slice_eq(bytes_slice(&seen(id)->body), SLICE("hello")));
		stream_close(&in->s);
		RUN_UNTIL(seen(id)->closed == NGHTTP2_CANCEL);
	}
}

static void trailers_both_ways(void **state)
{
	(void)state;
	struct inner *in = ask(0, POST_CHUNKED "5\r\nhello\r\n0\r\na: b\r\n\r\n");
	RUN_UNTIL(seen(1)->end);
	assert_true(has_field(1, "a=b"));
	answer(1, LIST(HTTP_200), SLICE("hello"), LIST({"grpc-status", "0"}, {"grpc-message", ""}));
	RUN_UNTIL(in->ends == 1);
	assert_true(inner_is(in, "HTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"
				 "grpc-status: 0\r\ngrpc-message: \r\n\r\n"));
	assert_int_equal(in->how, CAGE_EOF);
}

static void head_without_a_body(void **state)
{
	(void)state;
	struct inner *in = ask(0, "HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n");
	RUN_UNTIL(seen(1)->end);
	send_list(1, LIST(HTTP_200, {"content-length", "7"}), true);
	RUN_UNTIL(in->ends == 1);
	assert_int_equal(in->how, CAGE_EOF);
	assert_true(inner_is(in, "HTTP/1.1 200 \r\ncontent-length: 7\r\n\r\n"));
}

static void interim_heads_are_passed_on(void **state)
{
	(void)state;
	struct inner *in = ask_get(0);
	RUN_UNTIL(seen(1)->end);
	send_list(1, LIST({":status", "103"}, {"link", "</a>"}), false);
	RUN_UNTIL(inner_is(in, "HTTP/1.1 103 \r\nlink: </a>\r\n\r\n"));
	send_list(1, LIST(HTTP_200), true);
	RUN_UNTIL(in->ends == 1);
	assert_true(inner_is(in, "HTTP/1.1 103 \r\nlink: </a>\r\n\r\nHTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n\r\n"));
}

/* Each side speaks when it likes. */
static void both_directions_at_once(void **state)
{
	(void)state;
	struct inner *in = ask(0, POST_CHUNKED);
	struct seen *s = seen(1);
	RUN_UNTIL(s->fields.len > 0);
	s->reply_pauses = true;
	answer(1, LIST(HTTP_200), SLICE("one"), LIST({"grpc-status", "0"}));
	RUN_UNTIL(inner_is(in, "HTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n"));
	stream_write(in->s, SLICE("4\r\nping\r\n"));
	RUN_UNTIL(s->body.len == 4);
	s->reply = SLICE("two");
	nghttp2_session_resume_data(fx.origin, 1);
	RUN_UNTIL(inner_is(in, "HTTP/1.1 200 \r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n"));
	assert_false(s->end);
	stream_write(in->s, SLICE("0\r\n\r\n"));
	RUN_UNTIL(s->end);
	s->reply_pauses = false;
	nghttp2_session_resume_data(fx.origin, 1);
	RUN_UNTIL(in->ends == 1);
	assert_int_equal(in->how, CAGE_EOF);
	assert_true(slice_ends(bytes_slice(&in->got), SLICE("0\r\ngrpc-status: 0\r\n\r\n")));
}

/* The origin has answered and does not want the rest of the request. */
static void early_answer(void **state)
{
	(void)state;
	struct inner *in = ask(0, POST_CHUNKED "3\r\nabc\r\n");
	RUN_UNTIL(seen(1)->body.len == 3);
	answer(1, LIST({":status", "413"}), SLICE("too much"), NULL);
	pass();
	nghttp2_submit_rst_stream(fx.origin, NGHTTP2_FLAG_NONE, 1, NGHTTP2_NO_ERROR);
	RUN_UNTIL(in->ends == 1);
	assert_int_equal(in->how, CAGE_EOF);
	assert_true(slice_ends(bytes_slice(&in->got), SLICE("8\r\ntoo much\r\n0\r\n\r\n")));
}

/* ---- ends ---- */

static void refused_before_the_head(void **state)
{
	(void)state;
	struct inner *in = ask_get(0);
	RUN_UNTIL(seen(1)->end);
	nghttp2_submit_rst_stream(fx.origin, NGHTTP2_FLAG_NONE, 1, NGHTTP2_REFUSED_STREAM);
	RUN_UNTIL(in->ends == 1);
	assert_int_equal(in->how, CAGE_EOF);
	assert_int_equal(in->got.len, 0);
	assert_true(h2_client_has_room(fx.client));
}

static void reset_after_the_head(void **state)
{
	(void)state;
	struct inner *in = ask_get(0);
	RUN_UNTIL(seen(1)->end);
	seen(1)->reply_pauses = true;
	answer(1, LIST(HTTP_200), SLICE("some"), NULL);
	RUN_UNTIL(slice_ends(bytes_slice(&in->got), SLICE("some\r\n")));
	nghttp2_submit_rst_stream(fx.origin, NGHTTP2_FLAG_NONE, 1, NGHTTP2_NO_ERROR);
	RUN_UNTIL(in->ends == 1);
	assert_int_equal(in->how, CAGE_TRUNCATED);
}

/* Whether it is reset or closed. */
static void given_up(void **state)
{
	(void)state;
	struct inner *a = ask_get(0), *b = ask(1, POST_CHUNKED "3\r\nabc\r\n");
	RUN_UNTIL(seen(1)->end && seen(3)->body.len == 3);
	stream_reset(&b->s);
	RUN_UNTIL(seen(3)->closed == NGHTTP2_CANCEL);
	assert_false(seen(3)->end);
	seen(1)->reply_pauses = true;
	answer(1, LIST(HTTP_200), SLICE("some"), NULL);
	RUN_UNTIL(a->got.len > 0);
	stream_close(&a->s);
	RUN_UNTIL(seen(1)->closed == NGHTTP2_CANCEL);
	assert_int_equal(fx.client->n_calls, 0);
	assert_true(h2_client_has_room(fx.client));
}

static void given_up_before_it_was_asked(void **state)
{
	(void)state;
	struct inner *a = ask(0, "GET / HT"), *b = ask(1, "NONSENSE\r\n\r\n");
	RUN_UNTIL(b->ends == 1);
	assert_int_equal(b->got.len, 0);
	stream_close(&a->s);
	RUN_UNTIL(fx.client->n_calls == 0);
	ask_get(2);
	RUN_UNTIL(seen(1)->end); /* nothing of the two was sent */
}

/* The first is answered; the second was sent and is not looked at; the third has not been asked. */
static void origin_leaves(void **state)
{
	(void)state;
	struct inner *a = ask_get(0);
	RUN_UNTIL(seen(1)->end);
	struct inner *b = ask_get(1), *c = ask(2, "GET /");
	RUN_UNTIL(seen(3)->end);
	nghttp2_submit_goaway(fx.origin, NGHTTP2_FLAG_NONE, 1, NGHTTP2_NO_ERROR, NULL, 0);
	RUN_UNTIL(b->ends == 1 && c->ends == 1);
	assert_int_equal(b->how, CAGE_EOF);
	assert_int_equal(c->how, CAGE_EOF);
	assert_int_equal(b->got.len + c->got.len, 0);
	assert_false(h2_client_has_room(fx.client));
	assert_null(h2_client_open(fx.client));
	assert_int_equal(a->ends + fx.ended, 0);
	answer(1, LIST(HTTP_200), SLICE("last"), NULL);
	RUN_UNTIL(fx.ended == 1);
	RUN_UNTIL(a->ends == 1);
	assert_int_equal(a->how, CAGE_EOF);
	assert_true(slice_ends(bytes_slice(&a->got), SLICE("4\r\nlast\r\n0\r\n\r\n")));
	run_passes(3);
	assert_int_equal(fx.ended, 1);
}

static void leaves_when_nobody_asks(void **state)
{
	(void)state;
	fx.frees_at_end = true;
	nghttp2_submit_goaway(fx.origin, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
	RUN_UNTIL(fx.ended == 1);
	assert_null(fx.client);
}

static void connection_breaks(void **state)
{
	(void)state;
	struct inner *a = ask_get(0);
	RUN_UNTIL(seen(1)->end);
	struct inner *b = ask_get(1);
	RUN_UNTIL(seen(3)->end);
	struct inner *c = ask_get(2);
	RUN_UNTIL(seen(5)->end);
	seen(3)->reply_pauses = true;
	answer(1, LIST(HTTP_200), SLICE("whole"), NULL);
	answer(3, LIST(HTTP_200), SLICE("part"), NULL);
	RUN_UNTIL(a->ends == 1 && b->got.len > 0);
	stream_reset(&fx.down);
	RUN_UNTIL(fx.ended == 1);
	assert_false(h2_client_has_room(fx.client));
	RUN_UNTIL(b->ends == 1 && c->ends == 1);
	assert_int_equal(b->how, CAGE_TRUNCATED);
	assert_int_equal(c->how, CAGE_TRUNCATED);
	assert_int_equal(c->got.len, 0);
}

/* What has come is passed on, also when the end comes with it. */
static void connection_ends_after_an_answer(void **state)
{
	(void)state;
	struct inner *in = ask_get(0);
	RUN_UNTIL(seen(1)->end);
	answer(1, LIST(HTTP_200), SLICE("whole"), NULL);
	send_raw(SLICE(""));
	stream_end(fx.down);
	RUN_UNTIL(fx.ended == 1 && in->ends == 1);
	assert_int_equal(in->how, CAGE_EOF);
	assert_true(slice_ends(bytes_slice(&in->got), SLICE("5\r\nwhole\r\n0\r\n\r\n")));
}

static void freed_while_in_use(void **state)
{
	(void)state;
	struct inner *a = ask_get(0), *b = ask(1, "GET");
	RUN_UNTIL(seen(1)->end);
	seen(1)->reply_pauses = true;
	answer(1, LIST(HTTP_200), SLICE("part"), NULL);
	RUN_UNTIL(a->got.len > 0);
	h2_client_free(&fx.client);
	assert_null(fx.client);
	RUN_UNTIL(a->ends == 1 && b->ends == 1);
	assert_int_equal(a->how, CAGE_TRUNCATED);
	assert_int_equal(b->how, CAGE_EOF);
	assert_int_equal(fx.ended, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(get),
		TEST(body_of_a_length),
		TEST(request_in_pieces),
		TEST(trailers_both_ways),
		TEST(head_without_a_body),
		TEST(interim_heads_are_passed_on),
		TEST(both_directions_at_once),
		TEST(early_answer),
		TEST(refused_before_the_head),
		TEST(reset_after_the_head),
		TEST(given_up),
		TEST(given_up_before_it_was_asked),
		TEST(origin_leaves),
		TEST(leaves_when_nobody_asks),
		TEST(connection_breaks),
		TEST(connection_ends_after_an_answer),
		TEST(freed_while_in_use),
	};
	return cmocka_run_group_tests_name("h2_client", tests, NULL, NULL);
}
