/* What goes out: written afresh from the message, hop by hop, and read back as the same message. */
#include "tests/unit/http/fixture.h"

#include "core/http/h1.h"

static char out[KIB(4)];

static void assert_text(const struct text *t, const char *wanted)
{
	assert_true(text_ok(t));
	if (!slice_eq(text_slice(t), slice_str(wanted)))
		fail_msg("got:\n%.*s\nwanted:\n%s", SLICE_FMT(text_slice(t)), wanted);
}

static struct message request(struct slice head)
{
	struct h1_gate gate = {.kind = H1_GATE_REQUEST};
	struct h1_error err = {0};
	struct message m;
	size_t len = 0;
	assert_int_equal(h1_gate(&gate, head, &len), CAGE_OK);
	assert_int_equal(h1_parse_request(slice_head(head, len), &arena, &m, &err), CAGE_OK);
	return m;
}

static struct message response(struct slice head)
{
	struct h1_gate gate = {.kind = H1_GATE_RESPONSE};
	struct h1_error err = {0};
	struct message m;
	size_t len = 0;
	assert_int_equal(h1_gate(&gate, head, &len), CAGE_OK);
	assert_int_equal(h1_parse_response(slice_head(head, len), SLICE("GET"), &arena, &m, &err), CAGE_OK);
	return m;
}

static void t23_hop_by_hop_stays_here(void **state)
{
	(void)state;
	struct message m = request(SLICE("POST http://A.test:80/x HTTP/1.1\r\n"
					 "hOsT: ignored\r\n"
					 "Accept:   */* \r\n"
					 "Connection: keep-alive, X-Gone, upgrade\r\n"
					 "Keep-Alive: timeout=5\r\n"
					 "Proxy-Connection: keep-alive\r\n"
					 "Proxy-Authorization: Basic YTpi\r\n"
					 "Proxy-Authentication-Info: x\r\n"
					 "Proxy-Authenticate: Basic\r\n"
					 "TE: trailers, gzip\r\n"
					 "Trailer: X-Sum\r\n"
					 "Upgrade: h2c\r\n"
					 "x-gone: 1\r\n"
					 "Expect: 100-continue\r\n"
					 "Transfer-Encoding: CHUNKED\r\n"
					 "authorization: Bearer t\r\n"
					 "X-Kept: a\tb\xff\r\n"
					 "x-kept: c\r\n"
					 "\r\n"));
	struct h1_out o = {
		.target = SLICE("/x"), .host = SLICE("a.test"), .framing = BODY_LENGTH, .content_length = 12};
	struct text t = text_in(out, sizeof(out));
	h1_write_request(&t, &m, &o);
	assert_text(&t, "POST /x HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\nauthorization: Bearer t\r\n"
			"X-Kept: a\tb\xff\r\nx-kept: c\r\nContent-Length: 12\r\n\r\n");

	o.framing = BODY_CHUNKED;
	o.keep_trailer_te = true;
	t = text_in(out, sizeof(out));
	h1_write_request(&t, &m, &o);
	assert_text(&t,
		    "POST /x HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\nTrailer: X-Sum\r\nauthorization: Bearer t\r\n"
		    "X-Kept: a\tb\xff\r\nx-kept: c\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\nConnection: "
		    "TE\r\n\r\n");
}

static void connection_options(void **state)
{
	(void)state;
	struct message m = request(SLICE("GET / HTTP/1.0\r\n\r\n"));
	struct h1_out o = {.target = SLICE("/"), .host = SLICE("a"), .close = true};
	struct text t = text_in(out, sizeof(out));
	h1_write_request(&t, &m, &o);
	assert_text(&t, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	o.keep_trailer_te = true;
	t = text_in(out, sizeof(out));
	h1_write_request(&t, &m, &o);
	assert_text(&t, "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n");
}

static void responses(void **state)
{
	(void)state;
	struct message m =
		response(SLICE("HTTP/1.0 404 Not  there\r\nServer: x\r\nContent-Length: 7\r\nConnection: X-A\r\n"
			       "X-A: b\r\nalt-SVC: h3\r\nUpgrade: h2\r\nKeep-Alive: 5\r\nProxy-Authenticate: Basic\r\n"
			       "WWW-Authenticate: Basic\r\n\r\n"));
	struct h1_out o = {.framing = BODY_CHUNKED};
	struct text t = text_in(out, sizeof(out));
	h1_write_response(&t, &m, &o);
	assert_text(&t, "HTTP/1.1 404 Not  there\r\nServer: x\r\nWWW-Authenticate: Basic\r\nTransfer-Encoding: "
			"chunked\r\n\r\n");

	o = (struct h1_out){.framing = BODY_CLOSE, .close = true};
	t = text_in(out, sizeof(out));
	h1_write_response(&t, &m, &o);
	assert_text(&t, "HTTP/1.1 404 Not  there\r\nServer: x\r\nWWW-Authenticate: Basic\r\nConnection: close\r\n\r\n");
}

static void declared_length_without_body(void **state)
{
	(void)state;
	struct message m = response(SLICE("HTTP/1.1 304\r\nContent-Length: 7\r\n\r\n"));
	struct h1_out o = {.framing = BODY_NONE, .declare_length = true, .content_length = m.content_length};
	struct text t = text_in(out, sizeof(out));
	h1_write_response(&t, &m, &o);
	assert_text(&t, "HTTP/1.1 304 \r\nContent-Length: 7\r\n\r\n");
	o.declare_length = false;
	t = text_in(out, sizeof(out));
	h1_write_response(&t, &m, &o);
	assert_text(&t, "HTTP/1.1 304 \r\n\r\n");
}

static void unclean_phrase_is_left_out(void **state)
{
	(void)state;
	struct message m = {.status = 200, .phrase = SLICE("OK\r\nX: y")};
	struct h1_out o = {.framing = BODY_LENGTH};
	struct text t = text_in(out, sizeof(out));
	h1_write_response(&t, &m, &o);
	assert_text(&t, "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n");
}

/* parse, write, parse: the same fields, and nothing of the first hop. */
static void round_trip(void **state)
{
	(void)state;
	struct message m = request(SLICE("PUT /a?b HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nCookie: a=b; c=d\r\nX-Two:\r\n"
					 "Content-Length: 3\r\nConnection: close\r\n\r\n"));
	struct h1_out o = {
		.target = m.target, .host = m.host, .framing = m.framing, .content_length = m.content_length};
	struct text t = text_in(out, sizeof(out));
	h1_write_request(&t, &m, &o);
	assert_true(text_ok(&t));
	struct message again = request(text_slice(&t));
	assert_true(slice_eq(again.method, m.method));
	assert_true(slice_eq(again.target, m.target));
	assert_true(slice_eq(again.host, m.host));
	assert_int_equal(again.framing, BODY_LENGTH);
	assert_int_equal(again.content_length, 3);
	assert_true(again.keep_alive);
	static const char *const names[] = {"X-One", "Cookie", "X-Two"};
	for (size_t i = 0; i < 3; i++) {
		const struct field *f = message_field(&again, slice_str(names[i]));
		assert_non_null(f);
		assert_true(slice_eq(f->value, message_field(&m, slice_str(names[i]))->value));
	}
	assert_int_equal(again.n_fields, 5);
}

static void chunk_heads(void **state)
{
	(void)state;
	char room[H1_CHUNK_HEAD];
	struct text t = text_in(room, sizeof(room));
	h1_write_chunk_head(&t, 1);
	assert_text(&t, "1\r\n");
	t = text_in(room, sizeof(room));
	h1_write_chunk_head(&t, 0xa0f);
	assert_text(&t, "a0f\r\n");
	t = text_in(room, sizeof(room));
	h1_write_chunk_head(&t, SIZE_MAX);
	assert_text(&t, "ffffffffffffffff\r\n");
}

static void chunks_read_back(void **state)
{
	(void)state;
	struct field sent[] = {{SLICE("X-Gone"), SLICE("0"), FIELD_DROPPED},
			       {SLICE("X-Sum"), SLICE("1 2"), FIELD_OTHER}};
	struct text t = text_in(out, sizeof(out));
	h1_write_chunk_head(&t, 5);
	text_put(&t, SLICE("hello\r\n"));
	h1_write_chunk_end(&t, sent, 2);
	assert_text(&t, "5\r\nhello\r\n0\r\nX-Sum: 1 2\r\n\r\n");

	struct message m = {.framing = BODY_CHUNKED};
	struct h1_body b;
	struct slice data;
	size_t used;
	h1_body_init(&b, &m);
	assert_int_equal(h1_body_feed(&b, text_slice(&t), &arena, &used, &data), CAGE_OK);
	assert_true(slice_eq(data, SLICE("hello")));
	assert_int_equal(h1_body_feed(&b, slice_from(text_slice(&t), used), &arena, &used, &data), CAGE_EOF);
	assert_int_equal(b.n_trailers, 1);
	assert_true(slice_eq(b.trailers[0].value, SLICE("1 2")));

	t = text_in(out, sizeof(out));
	h1_write_chunk_end(&t, NULL, 0);
	assert_text(&t, "0\r\n\r\n");
}

static void too_little_room_is_remembered(void **state)
{
	(void)state;
	struct message m = request(SLICE("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
	struct h1_out o = {.target = SLICE("/"), .host = SLICE("a")};
	const size_t whole = sizeof("GET / HTTP/1.1\r\nHost: a\r\n\r\n") - 1;
	for (size_t room = 0; room <= whole; room++) {
		struct text t = text_in(out, room);
		h1_write_request(&t, &m, &o);
		assert_int_equal(text_ok(&t), room == whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(t23_hop_by_hop_stays_here, setup, teardown),
		cmocka_unit_test_setup_teardown(connection_options, setup, teardown),
		cmocka_unit_test_setup_teardown(responses, setup, teardown),
		cmocka_unit_test_setup_teardown(declared_length_without_body, setup, teardown),
		cmocka_unit_test_setup_teardown(unclean_phrase_is_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(round_trip, setup, teardown),
		cmocka_unit_test_setup_teardown(chunk_heads, setup, teardown),
		cmocka_unit_test_setup_teardown(chunks_read_back, setup, teardown),
		cmocka_unit_test_setup_teardown(too_little_room_is_remembered, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
