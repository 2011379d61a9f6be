/* Fields of HTTP/2 to heads of HTTP/1.1 and back: what is written, what is refused, and that everything which is
 * written is one head to the parser of HTTP/1.1. */
#include "tests/unit/http/fixture.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/http/h1.h"
#include "proxy/h2_text.h"
#include "tests/unit/corpus.h"

#define KEY "AAAAAAAAAAAAAAAAAAAAAA=="
#define MAX_PASSES 100

struct pair {
	const char *name, *value;
};

#define LIST(...) ((const struct pair[]){__VA_ARGS__, {NULL, NULL}})
#define GET_A                                                               \
	{":method", "GET"}, {":scheme", "https"}, {":authority", "a.test"}, \
	{                                                                   \
		":path", "/x?y"                                             \
	}
#define POST_A                                                               \
	{":method", "POST"}, {":scheme", "https"}, {":authority", "a.test"}, \
	{                                                                    \
		":path", "/"                                                 \
	}
#define GET_A_TEXT "GET https://a.test/x?y HTTP/1.1\r\nhost: a.test\r\n"
#define POST_A_TEXT "POST https://a.test/ HTTP/1.1\r\nhost: a.test\r\n"
#define WS_A                                                                                                \
	{":method", "CONNECT"}, {":protocol", "websocket"}, {":scheme", "https"}, {":authority", "a.test"}, \
	{                                                                                                   \
		":path", "/ws"                                                                              \
	}

static char room[LIMIT_HEAD + 16];
static struct text written;
static struct h2_body body;

static enum cage_status collect(struct h2_fields *f, enum h2_kind kind, const struct pair *list)
{
	enum cage_status st = CAGE_OK;
	h2_fields_init(f, kind, &arena);
	for (; list->name && st == CAGE_OK; list++)
		st = h2_fields_add(f, slice_str(list->name), slice_str(list->value));
	return st;
}

static enum cage_status write_request(const struct pair *list, bool end)
{
	struct h2_fields f;
	written = text_in(room, sizeof(room));
	enum cage_status st = collect(&f, H2_REQUEST, list);
	return st == CAGE_OK ? h2_write_request(&f, end, SLICE(KEY), &written, &body) : st;
}

static enum cage_status write_response(const struct pair *list, bool end, const char *method)
{
	struct h2_fields f;
	written = text_in(room, sizeof(room));
	enum cage_status st = collect(&f, H2_RESPONSE, list);
	return st == CAGE_OK ? h2_write_response(&f, end, slice_str(method), &written, &body) : st;
}

/* What was written is a head, and a head only. */
static struct message read_request(void)
{
	struct h1_gate gate = {.kind = H1_GATE_REQUEST};
	struct h1_error err;
	struct message m;
	size_t len = 0;
	assert_int_equal(h1_gate(&gate, text_slice(&written), &len), CAGE_OK);
	assert_int_equal(len, written.len);
	assert_int_equal(h1_parse_request(text_slice(&written), &arena, &m, &err), CAGE_OK);
	return m;
}

static struct message read_response(const char *method)
{
	struct h1_gate gate = {.kind = H1_GATE_RESPONSE};
	struct h1_error err;
	struct message m;
	size_t len = 0;
	assert_int_equal(h1_gate(&gate, text_slice(&written), &len), CAGE_OK);
	assert_int_equal(len, written.len);
	assert_int_equal(h1_parse_response(text_slice(&written), slice_str(method), &arena, &m, &err), CAGE_OK);
	return m;
}

static void expect_request(const struct pair *list, bool end, enum body_framing framing, const char *text)
{
	assert_int_equal(write_request(list, end), CAGE_OK);
	assert_slice(text_slice(&written), text);
	assert_int_equal(body.framing, framing);
	assert_false(body.carries_secrets);
	struct message m = read_request();
	assert_int_equal(m.framing, framing == BODY_CLOSE ? BODY_NONE : framing);
}

static void expect_response(const struct pair *list, bool end, const char *method, enum body_framing framing,
			    const char *text)
{
	assert_int_equal(write_response(list, end, method), CAGE_OK);
	assert_slice(text_slice(&written), text);
	assert_int_equal(body.framing, framing);
	assert_true(body.carries_secrets);
	assert_int_equal(read_response(method).framing, framing);
}

/* ---- requests in ---- */

static void plain_requests(void **state)
{
	(void)state;
	expect_request(LIST(GET_A), true, BODY_NONE, GET_A_TEXT "\r\n");
	expect_request(LIST(GET_A, {"accept", "*/*"}, {"te", "trailers"}, {"empty", ""}), true, BODY_NONE,
		       GET_A_TEXT "accept: */*\r\nte: trailers\r\nempty: \r\n\r\n");
	expect_request(
		LIST({":path", "*"}, {":authority", "a.test:8443"}, {":scheme", "https"}, {":method", "OPTIONS"}), true,
		BODY_NONE, "OPTIONS * HTTP/1.1\r\nhost: a.test:8443\r\n\r\n");
	/* One byte at the most may differ in case. */
	expect_request(LIST({":method", "OPTIONS"}, {":scheme", "https"}, {":authority", "a.test"}, {":path", "*"},
			    {"host", "A.test"}),
		       true, BODY_NONE, "OPTIONS * HTTP/1.1\r\nhost: A.test\r\n\r\n");
}

static void bodies_of_requests(void **state)
{
	(void)state;
	expect_request(LIST(POST_A), false, BODY_CHUNKED, POST_A_TEXT "transfer-encoding: chunked\r\n\r\n");
	expect_request(LIST(POST_A, {"content-length", "5"}), false, BODY_LENGTH,
		       POST_A_TEXT "content-length: 5\r\n\r\n");
	assert_int_equal(body.left, 5);
	expect_request(LIST(POST_A, {"content-length", "0"}), true, BODY_LENGTH,
		       POST_A_TEXT "content-length: 0\r\n\r\n");
	assert_int_equal(body.left, 0);
	expect_request(LIST(POST_A), true, BODY_NONE, POST_A_TEXT "\r\n");
	assert_int_equal(write_request(LIST(POST_A, {"content-length", "5"}), true), CAGE_EPROTO);
}

/* Both are there for the checks of HTTP/1.1 to compare. */
static void hosts(void **state)
{
	(void)state;
	expect_request(LIST(POST_A, {"host", "b.test"}), true, BODY_NONE,
		       "POST https://a.test/ HTTP/1.1\r\nhost: b.test\r\n\r\n");
	expect_request(LIST({":method", "GET"}, {":scheme", "https"}, {":path", "/"}, {"host", "b.test"}), true,
		       BODY_NONE, "GET https://b.test/ HTTP/1.1\r\nhost: b.test\r\n\r\n");
}

static void cookies_are_joined(void **state)
{
	(void)state;
	expect_request(LIST(GET_A, {"a", "1"}, {"cookie", "x=1"}, {"b", "2"}, {"cookie", "y=2"}, {"cookie", "z=3"}),
		       true, BODY_NONE, GET_A_TEXT "a: 1\r\ncookie: x=1; y=2; z=3\r\nb: 2\r\n\r\n");
}

static void connects(void **state)
{
	(void)state;
	expect_request(LIST({":method", "CONNECT"}, {":authority", "a.test:443"}), false, BODY_CLOSE,
		       "CONNECT a.test:443 HTTP/1.1\r\nhost: a.test:443\r\n\r\n");
	expect_request(LIST(WS_A, {"sec-websocket-version", "13"}), false, BODY_CLOSE,
		       "GET https://a.test/ws HTTP/1.1\r\nhost: a.test\r\nupgrade: websocket\r\n"
		       "connection: upgrade\r\nsec-websocket-key: " KEY "\r\nsec-websocket-version: 13\r\n\r\n");
}

static void malformed_requests(void **state)
{
	(void)state;
	const struct pair *lists[] = {
		LIST({":method", "GET"}, {":scheme", "https"}, {":path", "/"}),
		LIST({":scheme", "https"}, {":authority", "a.test"}, {":path", "/"}),
		LIST({":method", "GET"}, {":authority", "a.test"}, {":path", "/"}),
		LIST({":method", "GET"}, {":scheme", "https"}, {":authority", "a.test"}),
		LIST({":method", "GET"}, {":scheme", "http"}, {":authority", "a.test"}, {":path", "/"}),
		LIST({":method", "GET"}, {":scheme", "https"}, {":authority", ""}, {":path", "/"}),
		LIST({":method", "GET"}, {":scheme", "https"}, {":authority", "a.test?"}, {":path", "/"}),
		LIST({":method", "GET"}, {":scheme", "https"}, {":authority", "a\\b"}, {":path", "/"}),
		LIST({":method", "GET"}, {":scheme", "https"}, {":path", "/"}, {"host", "a.test/x"}),
		LIST({":method", "GET"}, {":scheme", "https"}, {":authority", "a.test"}, {":path", "*"}),
		LIST({":method", "G@T"}, {":scheme", "https"}, {":authority", "a.test"}, {":path", "/"}),
		LIST({":method", "GETGETGETGETGETGETGETGETGETGETGET"}, {":scheme", "https"}, {":authority", "a.test"},
		     {":path", "/"}),
		LIST({":method", "OPTIONS"}, {":scheme", "https"}, {":authority", "a.test"}, {":path", "*"},
		     {"host", "b.test"}),
		LIST(GET_A, {"host", "a.test"}, {"host", "a.test"}),
		LIST(GET_A, {"content-length", ""}),
		LIST(GET_A, {"content-length", "1, 1"}),
		LIST(GET_A, {"content-length", "9223372036854775808"}),
		LIST(GET_A, {"content-length", "1"}, {"content-length", "1"}),
		LIST(GET_A, {"te", "trailers, gzip"}),
		LIST(GET_A, {"x", "\tb"}),
		LIST(GET_A, {"x", "b\t"}),
		LIST(GET_A, {"x", "a\x7f"}),
		LIST(GET_A, {"x:", "b"}),
		LIST(GET_A, {":", "b"}),
		LIST(GET_A, {"content-length", "1"}, {":protocol", "websocket"}),
		LIST({":method", "CONNECT"}, {":authority", "a.test:443"}, {":scheme", "https"}),
		LIST({":method", "CONNECT"}, {"host", "a.test:443"}),
		LIST({":method", "CONNECT"}, {":authority", "a.test:443"}, {"content-length", "0"}),
		LIST(WS_A, {"sec-websocket-key", KEY}),
		LIST(WS_A, {"content-length", "0"}),
		LIST(WS_A, {"upgrade", "websocket"}),
		LIST({":method", "CONNECT"}, {":protocol", "other"}, {":scheme", "https"}, {":authority", "a.test"},
		     {":path", "/"}),
	};
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (write_request(lists[i], false) != CAGE_EPROTO)
			fail_msg("list %zu was taken", i);
	assert_int_equal(write_request(LIST(WS_A), true), CAGE_EPROTO);
}

/* Every byte in a name and in a value. */
static void bytes_of_fields(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		struct h2_fields f;
		char bytes[3] = {'a', (char)c, 'b'};
		bool is_lower_token =
			c != 0 && (strchr("!#$%&'*+-.^_`|~", c) || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'));
		bool is_value = c == '\t' || (c >= 0x20 && c != 0x7f);
		h2_fields_init(&f, H2_REQUEST, &arena);
		assert_int_equal(h2_fields_add(&f, slice_of(bytes, 3), SLICE("v")),
				 is_lower_token ? CAGE_OK : CAGE_EPROTO);
		assert_int_equal(h2_fields_add(&f, SLICE("n"), slice_of(bytes, 3)), is_value ? CAGE_OK : CAGE_EPROTO);
	}
}

static void requests_have_bounds(void **state)
{
	(void)state;
	struct h2_fields f;
	enum cage_status st = collect(&f, H2_REQUEST, LIST(GET_A));
	for (size_t n = 4; n < LIMIT_HEADERS && st == CAGE_OK; n++)
		st = h2_fields_add(&f, SLICE("n"), SLICE("v"));
	assert_int_equal(st, CAGE_OK);
	written = text_in(room, sizeof(room));
	assert_int_equal(h2_write_request(&f, false, SLICE(KEY), &written, &body), CAGE_OK);
	assert_int_equal(read_request().n_fields, LIMIT_HEADERS - 4 + 2);
	assert_int_equal(h2_fields_add(&f, SLICE("n"), SLICE("v")), CAGE_ELIMIT);
}

static void requests_have_a_size(void **state)
{
	(void)state;
	struct h2_fields f;
	char *big = malloc(LIMIT_HEAD);
	assert_non_null(big);
	memset(big, 'v', LIMIT_HEAD);
	assert_int_equal(collect(&f, H2_REQUEST, LIST(GET_A)), CAGE_OK);
	assert_int_equal(h2_fields_add(&f, SLICE("n"), slice_of(big, LIMIT_HEAD - f.bytes - 4)), CAGE_ELIMIT);
	assert_int_equal(h2_fields_add(&f, SLICE("n"), slice_of(big, LIMIT_HEAD - f.bytes - 5)), CAGE_OK);
	assert_int_equal(h2_fields_add(&f, SLICE(""), SLICE_NONE), CAGE_ELIMIT);
	/* The list fits, the head that has the host twice may not. */
	written = text_in(room, sizeof(room));
	assert_int_equal(collect(&f, H2_REQUEST, LIST({":method", "GET"}, {":scheme", "https"}, {":path", "/"})),
			 CAGE_OK);
	assert_int_equal(h2_fields_add(&f, SLICE("host"), slice_of(big, LIMIT_HEAD / 2)), CAGE_OK);
	assert_int_equal(h2_write_request(&f, true, SLICE(KEY), &written, &body), CAGE_ELIMIT);
	free(big);
}

/* ---- responses in ---- */

static void plain_responses(void **state)
{
	(void)state;
	expect_response(LIST({":status", "200"}, {"a", "b"}, {"content-length", "7"}), false, "GET", BODY_LENGTH,
			"HTTP/1.1 200 \r\na: b\r\ncontent-length: 7\r\n\r\n");
	assert_int_equal(body.left, 7);
	expect_response(LIST({":status", "404"}), false, "GET", BODY_CHUNKED,
			"HTTP/1.1 404 \r\ntransfer-encoding: chunked\r\n\r\n");
	expect_response(LIST({":status", "200"}, {"grpc-status", "5"}), true, "POST", BODY_LENGTH,
			"HTTP/1.1 200 \r\ngrpc-status: 5\r\ncontent-length: 0\r\n\r\n");
	expect_response(LIST({":status", "200"}, {"set-cookie", "a"}, {"set-cookie", "b"}), true, "GET", BODY_LENGTH,
			"HTTP/1.1 200 \r\nset-cookie: a\r\nset-cookie: b\r\ncontent-length: 0\r\n\r\n");
	expect_response(LIST({":status", "599"}, {"host", "x"}), true, "GET", BODY_LENGTH,
			"HTTP/1.1 599 \r\nhost: x\r\ncontent-length: 0\r\n\r\n");
}

static void responses_without_a_body(void **state)
{
	(void)state;
	expect_response(LIST({":status", "200"}, {"content-length", "7"}), true, "HEAD", BODY_NONE,
			"HTTP/1.1 200 \r\ncontent-length: 7\r\n\r\n");
	expect_response(LIST({":status", "200"}), false, "HEAD", BODY_NONE, "HTTP/1.1 200 \r\n\r\n");
	expect_response(LIST({":status", "304"}, {"content-length", "7"}), true, "GET", BODY_NONE,
			"HTTP/1.1 304 \r\ncontent-length: 7\r\n\r\n");
	expect_response(LIST({":status", "204"}, {"content-length", "7"}), true, "GET", BODY_NONE,
			"HTTP/1.1 204 \r\n\r\n");
}

static void interim_responses(void **state)
{
	(void)state;
	assert_int_equal(write_response(LIST({":status", "103"}, {"link", "</a>"}), false, "GET"), CAGE_OK);
	assert_slice(text_slice(&written), "HTTP/1.1 103 \r\nlink: </a>\r\n\r\n");
	assert_int_equal(read_response("GET").status, 103);
	assert_int_equal(write_response(LIST({":status", "103"}), true, "GET"), CAGE_EPROTO);
	assert_int_equal(write_response(LIST({":status", "103"}, {"content-length", "1"}), false, "GET"), CAGE_EPROTO);
}

static void malformed_responses(void **state)
{
	(void)state;
	const struct pair *lists[] = {
		LIST({"a", "b"}),
		LIST({":status", "101"}),
		LIST({":status", "099"}),
		LIST({":status", "600"}),
		LIST({":status", "20"}),
		LIST({":status", "0200"}),
		LIST({":status", "2 0"}),
		LIST({":status", "+20"}),
		LIST({":status", "200"}, {":status", "200"}),
		LIST({"a", "b"}, {":status", "200"}),
		LIST({":status", "200"}, {":path", "/"}),
		LIST({":status", "200"}, {"connection", "close"}),
		LIST({":status", "200"}, {"transfer-encoding", "chunked"}),
		LIST({":status", "200"}, {"A", "b"}),
		LIST({":status", "200"}, {"a", "b\nc"}),
		LIST({":status", "200"}, {"content-length", "-1"}),
	};
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (write_response(lists[i], false, "GET") != CAGE_EPROTO)
			fail_msg("list %zu was taken", i);
	assert_int_equal(write_response(LIST({":status", "200"}, {"content-length", "7"}), true, "GET"), CAGE_EPROTO);
}

/* ---- bodies in ---- */

static void ignore(struct stream *s, void *arg)
{
	(void)s, (void)arg;
}

static void ignore_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s, (void)why, (void)arg;
}

static const struct stream_cb ignoring = {
	.on_ready = ignore, .on_data = ignore, .on_drained = ignore, .on_end = ignore_end};

static struct loop *loop;
static struct event *tick; /* so that a pass always ends */
static struct stream *ends[2];

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

static void open_pair(void)
{
	struct timeval often = loop_ms(1);
	loop = loop_new();
	assert_non_null(loop);
	tick = event_new(loop_base(loop), -1, EV_PERSIST, on_tick, NULL);
	assert_non_null(tick);
	event_add(tick, &often);
	assert_true(stream_pair(loop, ends, &ignoring, NULL));
}

static void close_pair(void)
{
	stream_close(&ends[0]);
	stream_close(&ends[1]);
	loop_once(loop);
	assert_int_equal(stream_count(loop), 0);
	event_free(tick);
	loop_free(&loop);
}

/* What has come out is this; the pair is gone then. */
static void expect_bytes(const char *text)
{
	stream_end(ends[0]);
	for (unsigned i = 0; i < MAX_PASSES && !stream_has_ended(ends[1]); i++)
		loop_once(loop);
	assert_true(stream_has_ended(ends[1]));
	assert_slice(stream_input(ends[1]), text);
	close_pair();
}

static void data_in_chunks(void **state)
{
	(void)state;
	struct h2_fields trailers;
	struct h2_body b = {.framing = BODY_CHUNKED};
	open_pair();
	assert_int_equal(collect(&trailers, H2_TRAILERS, LIST({"a", "b"}, {"cookie", "c"}, {"cookie", "d"})), CAGE_OK);
	assert_int_equal(h2_body_write(&b, ends[0], SLICE("hello")), CAGE_OK);
	assert_int_equal(h2_body_write(&b, ends[0], SLICE_NONE), CAGE_OK);
	assert_int_equal(h2_body_write(&b, ends[0], SLICE("0123456789abcdef")), CAGE_OK);
	assert_int_equal(h2_body_end(&b, ends[0], &trailers), CAGE_OK);
	assert_int_equal(h2_body_write(&b, ends[0], SLICE("x")), CAGE_EPROTO);
	expect_bytes("5\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\na: b\r\ncookie: c\r\ncookie: d\r\n\r\n");
}

static void data_of_a_length(void **state)
{
	(void)state;
	struct h2_fields trailers;
	struct h2_body b = {.framing = BODY_LENGTH, .left = 6, .carries_secrets = true};
	open_pair();
	assert_int_equal(collect(&trailers, H2_TRAILERS, LIST({"a", "b"})), CAGE_OK);
	assert_int_equal(h2_body_write(&b, ends[0], SLICE("hello")), CAGE_OK);
	assert_int_equal(h2_body_end(&b, ends[0], NULL), CAGE_EPROTO);
	assert_int_equal(h2_body_write(&b, ends[0], SLICE("!!")), CAGE_EPROTO);
	assert_int_equal(h2_body_write(&b, ends[0], SLICE("!")), CAGE_OK);
	assert_int_equal(h2_body_end(&b, ends[0], &trailers), CAGE_OK);
	expect_bytes("hello!a: b\r\n\r\n");
}

static void data_that_nobody_expects(void **state)
{
	(void)state;
	struct h2_body none = {.framing = BODY_NONE}, raw = {.framing = BODY_CLOSE};
	open_pair();
	assert_int_equal(h2_body_write(&none, ends[0], SLICE_NONE), CAGE_OK);
	assert_int_equal(h2_body_write(&none, ends[0], SLICE("x")), CAGE_EPROTO);
	assert_int_equal(h2_body_end(&none, ends[0], NULL), CAGE_OK);
	assert_int_equal(h2_body_write(&raw, ends[0], SLICE("raw")), CAGE_OK);
	assert_int_equal(h2_body_end(&raw, ends[0], NULL), CAGE_OK);
	expect_bytes("raw");
}

static void malformed_trailers(void **state)
{
	(void)state;
	struct h2_fields f;
	char big[LIMIT_TRAILERS];
	assert_int_equal(collect(&f, H2_TRAILERS, LIST({":status", "200"})), CAGE_EPROTO);
	assert_int_equal(collect(&f, H2_TRAILERS, LIST({"a", "b"}, {":path", "/"})), CAGE_EPROTO);
	assert_int_equal(collect(&f, H2_TRAILERS, LIST({"content-length", "1"})), CAGE_EPROTO);
	assert_int_equal(collect(&f, H2_TRAILERS, LIST({"host", "a"})), CAGE_EPROTO);
	assert_int_equal(collect(&f, H2_TRAILERS, LIST({"transfer-encoding", "chunked"})), CAGE_EPROTO);
	memset(big, 'v', sizeof(big));
	assert_int_equal(collect(&f, H2_TRAILERS, LIST({"a", "b"})), CAGE_OK);
	assert_int_equal(h2_fields_add(&f, SLICE("n"), slice_of(big, sizeof(big))), CAGE_ELIMIT);
}

/* ---- lists out ---- */

static struct message parse(const char *head, bool is_request)
{
	struct message m;
	struct h1_error err;
	struct slice text = slice_str(head);
	enum cage_status st = is_request ? h1_parse_request(text, &arena, &m, &err)
					 : h1_parse_response(text, SLICE("GET"), &arena, &m, &err);
	assert_int_equal(st, CAGE_OK);
	return m;
}

/* A `!` before a name: it must not be indexed. */
static void expect_list(const struct h2_nv *list, const struct pair *wanted)
{
	size_t i = 0;
	for (; wanted[i].name; i++) {
		bool secret = wanted[i].name[0] == '!';
		assert_true(i < list->n);
		assert_slice(slice_of(list->nv[i].name, list->nv[i].namelen), wanted[i].name + secret);
		assert_slice(slice_of(list->nv[i].value, list->nv[i].valuelen), wanted[i].value);
		assert_int_equal(list->nv[i].flags, secret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE);
	}
	assert_int_equal(list->n, i);
}

static void lists_of_requests(void **state)
{
	(void)state;
	struct h2_nv list;
	struct message m =
		parse("POST /x?y HTTP/1.1\r\nHost: a.test\r\nAuthorization: A\r\nCookie: B\r\nX-Api-Key: C\r\n"
		      "X-Amz-Security-Token: D\r\nClient-Secret: E\r\nAccept: F\r\nTE: Trailers\r\n"
		      "Connection: TE, drop\r\nDrop: G\r\nUpgrade: h2c\r\nKeep-Alive: 5\r\n"
		      "Proxy-Authorization: H\r\nTrailer: I\r\nContent-Length: 3\r\n\r\n",
		      true);
	assert_int_equal(h2_nv_request(&m, &arena, &list), CAGE_OK);
	expect_list(&list, LIST({":method", "POST"}, {":scheme", "https"}, {":authority", "a.test"}, {":path", "/x?y"},
				{"!authorization", "A"}, {"!cookie", "B"}, {"!x-api-key", "C"},
				{"!x-amz-security-token", "D"}, {"!client-secret", "E"}, {"accept", "F"},
				{"te", "trailers"}, {"trailer", "I"}, {"content-length", "3"}));
	m = parse("GET / HTTP/1.1\r\nHost: a.test\r\nTE: gzip\r\n\r\n", true);
	assert_int_equal(h2_nv_request(&m, &arena, &list), CAGE_OK);
	assert_int_equal(list.n, 4);
	m = parse("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n", true);
	assert_int_equal(h2_nv_request(&m, &arena, &list), CAGE_OK);
	assert_int_equal(list.n, 4);
	m = parse("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n", true);
	assert_int_equal(h2_nv_request(&m, &arena, &list), CAGE_EPROTO);
	m = parse("GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", true);
	assert_int_equal(h2_nv_request(&m, &arena, &list), CAGE_EPROTO);
	m = parse("GET / HTTP/1.0\r\n\r\n", true);
	assert_int_equal(h2_nv_request(&m, &arena, &list), CAGE_EPROTO);
}

static void lists_of_responses(void **state)
{
	(void)state;
	struct h2_nv list;
	struct message m = parse("HTTP/1.1 207 Multi\r\nServer: x\r\nSet-Cookie: A\r\nConnection: close\r\n"
				 "Content-Length: 3\r\nX-Cage-Reason: none\r\n\r\n",
				 false);
	assert_int_equal(h2_nv_response(&m, &arena, &list), CAGE_OK);
	expect_list(&list, LIST({":status", "207"}, {"server", "x"}, {"!set-cookie", "A"}, {"content-length", "3"},
				{"x-cage-reason", "none"}));
	m = parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false);
	assert_int_equal(h2_nv_response(&m, &arena, &list), CAGE_OK);
	expect_list(&list, LIST({":status", "200"}));
	struct field trailers[] = {{SLICE("Grpc-Status"), SLICE("0"), FIELD_OTHER},
				   {SLICE("Connection"), SLICE("x"), FIELD_CONNECTION}};
	assert_int_equal(h2_nv_trailers(trailers, 2, &arena, &list), CAGE_OK);
	expect_list(&list, LIST({"grpc-status", "0"}));
}

/* ---- the corpus ---- */

/* Lists that are written although they are to be refused, each for its reason. */
static const struct pair let_through[] = {
	{"host differs from :authority", "both are in the head; its checks refuse it as authority.mismatch"},
};

static bool is_let_through(const char *name)
{
	for (size_t i = 0; i < sizeof(let_through) / sizeof(let_through[0]); i++)
		if (strcmp(let_through[i].name, name) == 0)
			return true;
	return false;
}

static struct slice json_slice(const json_t *s)
{
	return slice_of(json_string_value(s), json_string_length(s));
}

static enum cage_status add_all(struct h2_fields *f, const json_t *headers)
{
	enum cage_status st = CAGE_OK;
	for (size_t i = 0; i < json_array_size(headers) && st == CAGE_OK; i++) {
		const json_t *pair = json_array_get(headers, i);
		st = h2_fields_add(f, json_slice(json_array_get(pair, 0)), json_slice(json_array_get(pair, 1)));
	}
	return st;
}

/* The request with its body, as an adapter takes it. */
static enum cage_status take_item(const json_t *item)
{
	struct h2_fields f;
	struct slice data = json_slice(json_object_get(item, "body"));
	written = text_in(room, sizeof(room));
	h2_fields_init(&f, H2_REQUEST, &arena);
	enum cage_status st = add_all(&f, json_object_get(item, "headers"));
	if (st == CAGE_OK)
		st = h2_write_request(&f, data.len == 0, SLICE(KEY), &written, &body);
	if (st == CAGE_OK)
		st = h2_body_write(&body, ends[0], data);
	return st == CAGE_OK ? h2_body_end(&body, ends[0], NULL) : st;
}

static void judge_item(const json_t *item)
{
	const char *name = json_string_value(json_object_get(item, "name"));
	const char *expect = json_string_value(json_object_get(item, "expect"));
	assert_true(name && expect);
	bool wanted = strcmp(expect, "accept") == 0 || is_let_through(name);
	enum cage_status st = take_item(item);
	if (st != (wanted ? CAGE_OK : CAGE_EPROTO))
		fail_msg("%s: status %d", name, (int)st);
	if (st == CAGE_OK)
		read_request();
}

static void corpus(void **state)
{
	(void)state;
	char line[8192];
	size_t n = 0;
	FILE *f = corpus_open("h2_requests");
	open_pair();
	for (; fgets(line, sizeof(line), f); n++) {
		json_t *item = json_loads(line, JSON_ALLOW_NUL, NULL);
		assert_non_null(item);
		judge_item(item);
		json_decref(item);
	}
	fclose(f);
	assert_true(n > 0);
	close_pair();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(plain_requests),
		TEST(bodies_of_requests),
		TEST(hosts),
		TEST(cookies_are_joined),
		TEST(connects),
		TEST(malformed_requests),
		TEST(bytes_of_fields),
		TEST(requests_have_bounds),
		TEST(requests_have_a_size),
		TEST(plain_responses),
		TEST(responses_without_a_body),
		TEST(interim_responses),
		TEST(malformed_responses),
		TEST(data_in_chunks),
		TEST(data_of_a_length),
		TEST(data_that_nobody_expects),
		TEST(malformed_trailers),
		TEST(lists_of_requests),
		TEST(lists_of_responses),
		TEST(corpus),
	};
	return corpus_exit(cmocka_run_group_tests_name("h2_text", tests, NULL, NULL));
}
