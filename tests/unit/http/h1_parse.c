/* Heads to messages: which requests and responses are taken, how their bodies end, and why the others are refused. */
#include <stdio.h>
#include "tests/unit/http/fixture.h"

#include "core/http/h1.h"

static struct h1_error err;

static enum cage_status parse_request(struct slice head, struct message *m)
{
	struct h1_gate gate = {.kind = H1_GATE_REQUEST};
	size_t len = 0;
	if (h1_gate(&gate, head, &len) != CAGE_OK || len != head.len)
		fail_msg("not past the gate: %.*s", SLICE_FMT(head));
	err = (struct h1_error){0};
	return h1_parse_request(head, &arena, m, &err);
}

static enum cage_status parse_response(struct slice head, struct slice method, struct message *m)
{
	struct h1_gate gate = {.kind = H1_GATE_RESPONSE};
	size_t len = 0;
	if (h1_gate(&gate, head, &len) != CAGE_OK || len != head.len)
		fail_msg("not past the gate: %.*s", SLICE_FMT(head));
	err = (struct h1_error){0};
	return h1_parse_response(head, method, &arena, m, &err);
}

/* lines: what stands between the request line with its Host and the empty line. */
static enum cage_status parse_post(const char *lines, struct message *m)
{
	static char head[4096];
	int n = snprintf(head, sizeof(head), "POST /a HTTP/1.1\r\nHost: a.test\r\n%s\r\n", lines);
	return parse_request(slice_of(head, (size_t)n), m);
}

static enum cage_status parse_answer(const char *status_line, const char *lines, const char *method, struct message *m)
{
	static char head[4096];
	int n = snprintf(head, sizeof(head), "%s\r\n%s\r\n", status_line, lines);
	return parse_response(slice_of(head, (size_t)n), slice_str(method), m);
}

static void assert_post_refused(const char *lines, enum reason reason)
{
	struct message m;
	if (parse_post(lines, &m) != CAGE_EPROTO)
		fail_msg("accepted: %s", lines);
	assert_int_equal(err.reason, reason);
	assert_non_null(err.what);
}

static void request_parts(void **state)
{
	(void)state;
	struct message m;
	assert_int_equal(
		parse_request(SLICE("GET /a?b=c HTTP/1.1\r\nHOST: \ta.test:80 \r\nAccept:*/*\r\nX-A:\r\n\r\n"), &m),
		CAGE_OK);
	assert_slice(m.method, "GET");
	assert_slice(m.target, "/a?b=c");
	assert_int_equal(m.form, TARGET_ORIGIN);
	assert_int_equal(m.version, HTTP_11);
	assert_true(m.has_host);
	assert_slice(m.host, "a.test:80");
	assert_int_equal(m.n_fields, 3);
	assert_slice(m.fields[0].name, "HOST");
	assert_int_equal(m.fields[0].id, FIELD_HOST);
	assert_slice(message_field(&m, SLICE("accept"))->value, "*/*");
	assert_slice(message_field(&m, SLICE("x-a"))->value, "");
	assert_null(message_field(&m, SLICE("x-b")));
	assert_int_equal(m.framing, BODY_NONE);
	assert_true(m.keep_alive);
	assert_false(m.expect_continue);
}

struct form_case {
	const char *line;
	enum cage_status status;
	enum target_form form;
};

static void t05_forms_of_target(void **state)
{
	(void)state;
	static const struct form_case cases[] = {
		{"GET /", CAGE_OK, TARGET_ORIGIN},
		{"CONNECTX /", CAGE_OK, TARGET_ORIGIN},
		{"GET http://a.test/b", CAGE_OK, TARGET_ABSOLUTE},
		{"GET HTTPS://a.test", CAGE_OK, TARGET_ABSOLUTE},
		{"GET coap+tcp://a.test", CAGE_OK, TARGET_ABSOLUTE},
		{"OPTIONS *", CAGE_OK, TARGET_ASTERISK},
		{"CONNECT a.test:443", CAGE_OK, TARGET_AUTHORITY},
		{"CONNECT [::1]:443", CAGE_OK, TARGET_AUTHORITY},
		{"GET *", CAGE_EPROTO, TARGET_ASTERISK},
		{"OPTIONS */a", CAGE_EPROTO, TARGET_ASTERISK},
		{"GET a.test:443", CAGE_EPROTO, TARGET_AUTHORITY},
		{"GET a", CAGE_EPROTO, TARGET_ORIGIN},
		{"GET http:/a.test", CAGE_EPROTO, TARGET_ABSOLUTE},
		{"GET ://a.test", CAGE_EPROTO, TARGET_ABSOLUTE},
		{"GET 1http://a.test", CAGE_EPROTO, TARGET_ABSOLUTE},
		{"GET h_p://a.test", CAGE_EPROTO, TARGET_ABSOLUTE},
		{"GET /a#b", CAGE_EPROTO, TARGET_ORIGIN},
		{"GET http://a.test/#b", CAGE_EPROTO, TARGET_ABSOLUTE},
		{"CONNECT a.test", CAGE_EPROTO, TARGET_AUTHORITY},
		{"CONNECT /", CAGE_EPROTO, TARGET_AUTHORITY},
		{"CONNECT *", CAGE_EPROTO, TARGET_AUTHORITY},
		{"CONNECT http://a.test:443", CAGE_EPROTO, TARGET_AUTHORITY},
		{"CONNECT u@a.test:443", CAGE_EPROTO, TARGET_AUTHORITY},
		{"CONNECT a.test:443?b", CAGE_EPROTO, TARGET_AUTHORITY},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char head[256];
		struct message m;
		int n = snprintf(head, sizeof(head), "%s HTTP/1.1\r\nHost: a.test\r\n\r\n", cases[i].line);
		if (parse_request(slice_of(head, (size_t)n), &m) != cases[i].status)
			fail_msg("wrong verdict: %s", cases[i].line);
		if (cases[i].status == CAGE_OK)
			assert_int_equal(m.form, cases[i].form);
		else
			assert_int_equal(err.reason, REASON_TARGET_MALFORMED);
	}
}

static void t09_one_host(void **state)
{
	(void)state;
	struct message m;
	assert_int_equal(parse_request(SLICE("GET / HTTP/1.1\r\n\r\n"), &m), CAGE_EPROTO);
	assert_int_equal(err.reason, REASON_HEAD_MALFORMED);
	assert_int_equal(parse_request(SLICE("GET / HTTP/1.0\r\n\r\n"), &m), CAGE_OK);
	assert_false(m.has_host);
	assert_int_equal(parse_request(SLICE("GET / HTTP/1.0\r\nHost: a\r\nhost: a\r\n\r\n"), &m), CAGE_EPROTO);
	assert_post_refused("host: a.test\r\n", REASON_HEAD_MALFORMED);
}

static void body_lengths(void **state)
{
	(void)state;
	struct message m;
	assert_int_equal(parse_post("Content-Length: 5\r\n", &m), CAGE_OK);
	assert_int_equal(m.framing, BODY_LENGTH);
	assert_int_equal(m.content_length, 5);
	assert_int_equal(parse_post("Content-Length: 0000000000000000000000003\r\n", &m), CAGE_OK);
	assert_int_equal(m.content_length, 3);
	assert_int_equal(parse_post("CONTENT-length:\t0 \r\n", &m), CAGE_OK);
	assert_int_equal(m.framing, BODY_LENGTH);
	assert_true(m.has_content_length);
	assert_int_equal(parse_post("Content-Length: 9223372036854775807\r\n", &m), CAGE_OK);
	assert_int_equal(m.content_length, INT64_MAX);
	assert_int_equal(parse_post("Transfer-Encoding: Chunked\r\n", &m), CAGE_OK);
	assert_int_equal(m.framing, BODY_CHUNKED);
	assert_false(m.has_content_length);
	assert_int_equal(parse_post("Transfer_Encoding: chunked\r\nContent-Length: 1\r\n", &m), CAGE_OK);
	assert_int_equal(m.framing, BODY_LENGTH);
}

static void t22_ambiguous_framing(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
		"Content-Length: 5\r\nContent-Length: 6\r\n",
		"Content-Length: 5\r\ncontent-length: 5\r\n",
		"Content-Length: 5, 5\r\n",
		"Content-Length: 5 5\r\n",
		"Content-Length: +5\r\n",
		"Content-Length: -5\r\n",
		"Content-Length: 0x5\r\n",
		"Content-Length: 5.0\r\n",
		"Content-Length: 5;\r\n",
		"Content-Length: \2405\r\n",
		"Content-Length:\r\n",
		"Content-Length: 9223372036854775808\r\n",
		"Content-Length: 18446744073709551621\r\n",
		"Content-Length: 1000000000000000000000\r\n",
		"Transfer-Encoding: chunked, chunked\r\n",
		"Transfer-Encoding: gzip, chunked\r\n",
		"Transfer-Encoding: chunked, identity\r\n",
		"Transfer-Encoding: ,chunked\r\n",
		"Transfer-Encoding: chunked;a=b\r\n",
		"Transfer-Encoding: \"chunked\"\r\n",
		"Transfer-Encoding: xchunked\r\n",
		"Transfer-Encoding: identity\r\n",
		"Transfer-Encoding:\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: chunked\r\ntransfer-encoding: identity\r\n",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_post_refused(bad[i], REASON_FRAMING_AMBIGUOUS);
	struct message m;
	assert_int_equal(parse_request(SLICE("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), &m),
			 CAGE_EPROTO);
	assert_int_equal(err.reason, REASON_FRAMING_AMBIGUOUS);
}

static void t22_connect_has_no_body(void **state)
{
	(void)state;
	struct message m;
	const struct slice bad[] = {
		SLICE("CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"),
		SLICE("CONNECT a:1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
	};
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(parse_request(bad[i], &m), CAGE_EPROTO);
		assert_int_equal(err.reason, REASON_FRAMING_AMBIGUOUS);
	}
	assert_int_equal(parse_request(SLICE("CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"), &m),
			 CAGE_OK);
}

struct alive_case {
	const char *version, *lines;
	bool alive;
};

static void keep_alive(void **state)
{
	(void)state;
	static const struct alive_case cases[] = {
		{"1.1", "", true},
		{"1.1", "Connection: close\r\n", false},
		{"1.1", "Connection: keep-alive, CLOSE\r\n", false},
		{"1.1", "Connection: x\r\nConnection: close\r\n", false},
		{"1.1", "Connection: closed\r\n", true},
		{"1.1", "Proxy-Connection: close\r\n", true},
		{"1.0", "", false},
		{"1.0", "Connection: Keep-Alive\r\n", true},
		{"1.0", "Connection: keep-alive, close\r\n", false},
		{"1.0", "Proxy-Connection: keep-alive\r\n", false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char head[256];
		struct message m;
		int n = snprintf(head, sizeof(head), "GET / HTTP/%s\r\nHost: a\r\n%s\r\n", cases[i].version,
				 cases[i].lines);
		assert_int_equal(parse_request(slice_of(head, (size_t)n), &m), CAGE_OK);
		assert_int_equal(m.keep_alive, cases[i].alive);
	}
}

static void t23_connection_drops_its_own(void **state)
{
	(void)state;
	struct message m;
	assert_int_equal(parse_post("Connection: close, x-one ,, HTTP2-Settings\r\nX-One: 1\r\nx-one: 2\r\nX-Two: 3\r\n"
				    "HTTP2-Settings: a\r\nProxy-Foo: b\r\nTE: trailers\r\nConnection: TE\r\n",
				    &m),
			 CAGE_OK);
	assert_int_equal(m.fields[2].id, FIELD_DROPPED);
	assert_int_equal(m.fields[3].id, FIELD_DROPPED);
	assert_int_equal(m.fields[4].id, FIELD_OTHER);
	assert_int_equal(m.fields[5].id, FIELD_DROPPED);
	assert_int_equal(m.fields[6].id, FIELD_DROPPED);
	assert_int_equal(m.fields[7].id, FIELD_TE);
}

static void t23_connection_names_what_it_may_not(void **state)
{
	(void)state;
	static const char *const names[] = {
		"authorization",     "Host",   "content-length", "transfer-encoding", "Cookie",
		"content-type",      "expect", "cache-control",  "content-encoding",  "range",
		"if-none-match",     "origin", "x-api-key",      "accept-encoding",   "trailer",
		"sec-websocket-key", "via",    "x-cage-txn"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char lines[128];
		snprintf(lines, sizeof(lines), "Connection: close, %s\r\n", names[i]);
		assert_post_refused(lines, REASON_HEAD_MALFORMED);
	}
	assert_post_refused("Connection: a b\r\n", REASON_HEAD_MALFORMED);
	assert_post_refused("Connection: \"close\"\r\n", REASON_HEAD_MALFORMED);
}

static void connection_option_limit(void **state)
{
	(void)state;
	char lines[256] = "Connection: ";
	for (int i = 0; i < LIMIT_CONNECTION_OPTIONS - 1; i++)
		strcat(lines, "a,");
	struct message m;
	size_t len = strlen(lines);
	strcpy(lines + len, "a\r\n");
	assert_int_equal(parse_post(lines, &m), CAGE_OK);
	strcpy(lines + len, "a,a\r\n");
	assert_post_refused(lines, REASON_HEAD_MALFORMED);
	strcpy(lines + len, "a\r\nConnection: a\r\n");
	assert_post_refused(lines, REASON_HEAD_MALFORMED);
}

static void expect_continue(void **state)
{
	(void)state;
	struct message m;
	assert_int_equal(parse_post("Expect: 100-Continue\r\nContent-Length: 1\r\n", &m), CAGE_OK);
	assert_true(m.expect_continue);
	assert_int_equal(parse_post("Expect: x 100-continue\r\nContent-Length: 1\r\n", &m), CAGE_OK);
	assert_false(m.expect_continue);
	assert_int_equal(parse_request(SLICE("PUT / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"), &m), CAGE_OK);
	assert_false(m.expect_continue);
}

struct answer_case {
	const char *method, *line, *lines;
	enum body_framing framing;
	uint64_t length;
	bool has_length, alive;
};

static void answers(void **state)
{
	(void)state;
	static const struct answer_case cases[] = {
		{"GET", "HTTP/1.1 200 OK", "Content-Length: 5\r\n", BODY_LENGTH, 5, true, true},
		{"GET", "HTTP/1.1 200", "Content-Length: 0\r\n", BODY_LENGTH, 0, true, true},
		{"GET", "HTTP/1.1 200 OK", "Transfer-Encoding: chunked\r\n", BODY_CHUNKED, 0, false, true},
		{"GET", "HTTP/1.1 200 OK", "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n",
		 BODY_CHUNKED, 0, false, true},
		{"GET", "HTTP/1.1 200 OK", "", BODY_CLOSE, 0, false, false},
		{"GET", "HTTP/1.0 200 OK", "Content-Length: 5\r\n", BODY_LENGTH, 5, true, false},
		{"GET", "HTTP/1.0 200 OK", "Content-Length: 5\r\nConnection: keep-alive\r\n", BODY_LENGTH, 5, true,
		 true},
		{"HEAD", "HTTP/1.1 200 OK", "Content-Length: 5\r\n", BODY_NONE, 5, true, true},
		{"HEAD", "HTTP/1.1 200 OK", "Transfer-Encoding: chunked\r\n", BODY_NONE, 0, false, true},
		{"HEAD", "HTTP/1.1 200 OK", "", BODY_NONE, 0, false, true},
		{"head", "HTTP/1.1 200 OK", "Content-Length: 5\r\n", BODY_LENGTH, 5, true, true},
		{"GET", "HTTP/1.1 304 Not Modified", "Content-Length: 5\r\n", BODY_NONE, 5, true, true},
		{"GET", "HTTP/1.1 204 No Content", "", BODY_NONE, 0, false, true},
		{"GET", "HTTP/1.1 204 No Content", "Content-Length: 0\r\n", BODY_NONE, 0, false, true},
		{"GET", "HTTP/1.1 204 No Content", "Content-Length: 5\r\n", BODY_NONE, 0, false, false},
		{"GET", "HTTP/1.1 204 No Content", "Transfer-Encoding: chunked\r\n", BODY_NONE, 0, false, false},
		{"GET", "HTTP/1.1 100 Continue", "", BODY_NONE, 0, false, true},
		{"GET", "HTTP/1.1 103 Early Hints", "Content-Length: 0\r\n", BODY_NONE, 0, false, true},
		{"GET", "HTTP/1.1 999 ?", "Content-Length: 1\r\n", BODY_LENGTH, 1, true, true},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct message m;
		if (parse_answer(cases[i].line, cases[i].lines, cases[i].method, &m) != CAGE_OK)
			fail_msg("refused: %s %s: %s", cases[i].line, cases[i].lines, err.what);
		assert_int_equal(m.framing, cases[i].framing);
		assert_int_equal(m.content_length, cases[i].length);
		assert_int_equal(m.has_content_length, cases[i].has_length);
		assert_int_equal(m.keep_alive, cases[i].alive);
	}
}

static void t22_answers_refused(void **state)
{
	(void)state;
	static const char *const bad[][2] = {
		{"HTTP/1.1 200 OK", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"},
		{"HTTP/1.1 304 OK", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"},
		{"HTTP/1.1 200 OK", "Content-Length: 1\r\nContent-Length: 1\r\n"},
		{"HTTP/1.1 200 OK", "Content-Length: 1, 1\r\n"},
		{"HTTP/1.1 200 OK", "Content-Length: x\r\n"},
		{"HTTP/1.1 200 OK", "Transfer-Encoding: gzip, chunked\r\n"},
		{"HTTP/1.0 200 OK", "Transfer-Encoding: chunked\r\n"},
		{"HTTP/1.1 100 Continue", "Content-Length: 1\r\n"},
		{"HTTP/1.1 101 Switching", "Transfer-Encoding: chunked\r\n"},
		{"HTTP/1.1 200 OK", "Connection: content-encoding\r\n"},
		{"HTTP/1.1 099 Low", ""},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct message m;
		if (parse_answer(bad[i][0], bad[i][1], "GET", &m) != CAGE_EPROTO)
			fail_msg("accepted: %s %s", bad[i][0], bad[i][1]);
		assert_non_null(err.what);
	}
}

static void answer_parts(void **state)
{
	(void)state;
	struct message m;
	assert_int_equal(parse_answer("HTTP/1.1 404 Not  there", "", "GET", &m), CAGE_OK);
	assert_int_equal(m.status, 404);
	assert_slice(m.phrase, "Not  there");
	assert_int_equal(parse_answer("HTTP/1.0 200", "", "GET", &m), CAGE_OK);
	assert_slice(m.phrase, "");
}

static void header_limit(void **state)
{
	(void)state;
	static char head[KIB(4)];
	size_t len = (size_t)snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: a\r\n");
	for (int i = 0; i < LIMIT_HEADERS - 1; i++, len += 4)
		memcpy(head + len, "A:\r\n", 4);
	struct message m;
	memcpy(head + len, "\r\n", 2);
	assert_int_equal(parse_request(slice_of(head, len + 2), &m), CAGE_OK);
	assert_int_equal(m.n_fields, LIMIT_HEADERS);
	memcpy(head + len, "A:\r\n\r\n", 6);
	assert_int_equal(parse_request(slice_of(head, len + 6), &m), CAGE_ELIMIT);
	assert_int_equal(err.reason, REASON_HEAD_TOO_LARGE);
}

static void target_limit(void **state)
{
	(void)state;
	static char head[LIMIT_TARGET + 64];
	struct message m;
	for (size_t n = LIMIT_TARGET; n <= LIMIT_TARGET + 1; n++) {
		static const char tail[] = " HTTP/1.1\r\nHost: a\r\n\r\n";
		memset(head, '/', sizeof(head));
		memcpy(head, "GET ", 4);
		memcpy(head + 4 + n, tail, sizeof(tail) - 1);
		enum cage_status st = parse_request(slice_of(head, 4 + n + sizeof(tail) - 1), &m);
		assert_int_equal(st, n == LIMIT_TARGET ? CAGE_OK : CAGE_ELIMIT);
	}
	assert_int_equal(err.reason, REASON_HEAD_TOO_LARGE);
}

static void no_memory_is_said(void **state)
{
	(void)state;
	struct arena none;
	struct message m;
	arena_init(&none, 0);
	assert_int_equal(h1_parse_request(SLICE("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), &none, &m, &err), CAGE_ENOMEM);
	assert_non_null(err.what);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(request_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(t05_forms_of_target, setup, teardown),
		cmocka_unit_test_setup_teardown(t09_one_host, setup, teardown),
		cmocka_unit_test_setup_teardown(body_lengths, setup, teardown),
		cmocka_unit_test_setup_teardown(t22_ambiguous_framing, setup, teardown),
		cmocka_unit_test_setup_teardown(t22_connect_has_no_body, setup, teardown),
		cmocka_unit_test_setup_teardown(keep_alive, setup, teardown),
		cmocka_unit_test_setup_teardown(t23_connection_drops_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(t23_connection_names_what_it_may_not, setup, teardown),
		cmocka_unit_test_setup_teardown(connection_option_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(expect_continue, setup, teardown),
		cmocka_unit_test_setup_teardown(answers, setup, teardown),
		cmocka_unit_test_setup_teardown(t22_answers_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(answer_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(header_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(target_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(no_memory_is_said, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
