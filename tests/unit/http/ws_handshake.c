/* Opening handshakes: the proper one, each way to break it, and what is none. Heads go through the HTTP/1 codec, as they
 * do in the proxy. */
#include <stdio.h>
#include "tests/unit/http/fixture.h"

#include "core/http/h1.h"
#include "core/http/ws.h"

#define NONCE "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

static struct message parse(const char *line, const char *fields, bool is_request)
{
	char head[2048];
	struct message m;
	struct h1_error err;
	struct h1_gate gate = {.kind = is_request ? H1_GATE_REQUEST : H1_GATE_RESPONSE};
	size_t len = 0;
	int n = snprintf(head, sizeof(head), "%s\r\n%s\r\n", line, fields);
	struct slice copy = arena_dup(&arena, slice_of(head, (size_t)n));
	assert_non_null(copy.ptr);
	assert_int_equal(h1_gate(&gate, copy, &len), CAGE_OK);
	assert_int_equal(is_request ? h1_parse_request(copy, &arena, &m, &err)
				    : h1_parse_response(copy, SLICE("GET"), &arena, &m, &err),
			 CAGE_OK);
	return m;
}

static void assert_request(const char *line, const char *fields, enum ws_upgrade wanted)
{
	struct message m = parse(line, fields, true);
	struct slice nonce;
	const char *what;
	enum ws_upgrade got = ws_check_request(&m, &nonce, &what);
	if (got != wanted)
		fail_msg("%d for %s\n%s", (int)got, line, fields);
	assert_int_equal(what != NULL, wanted == WS_UPGRADE_BROKEN);
	if (wanted == WS_UPGRADE_GOOD)
		assert_slice(nonce, NONCE);
}

#define GET "GET /chat HTTP/1.1"
#define HOST "Host: a.test\r\n"
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define KEY "Sec-WebSocket-Key: " NONCE "\r\n"

static void proper_requests(void **state)
{
	(void)state;
	assert_request(GET, HOST UPGRADE VERSION KEY, WS_UPGRADE_GOOD);
	assert_request(GET, HOST "upgrade: WebSocket\r\nconnection: keep-alive, UPGRADE\r\n" VERSION KEY,
		       WS_UPGRADE_GOOD);
	assert_request(GET, HOST "Upgrade: h2c, websocket\r\nConnection: upgrade\r\n" VERSION KEY, WS_UPGRADE_GOOD);
	assert_request(
		GET, HOST "Upgrade: h2c\r\nUpgrade: websocket\r\nConnection: x\r\nConnection: upgrade\r\n" VERSION KEY,
		WS_UPGRADE_GOOD);
	assert_request(GET,
		       HOST UPGRADE VERSION KEY "Sec-WebSocket-Extensions: permessage-deflate\r\n"
						"Sec-WebSocket-Protocol: a, b\r\nContent-Length: 0\r\n",
		       WS_UPGRADE_GOOD);
	assert_request("GET http://a.test/chat HTTP/1.1", HOST UPGRADE VERSION KEY, WS_UPGRADE_GOOD);
}

static void no_upgrade(void **state)
{
	(void)state;
	assert_request(GET, HOST, WS_UPGRADE_NONE);
	assert_request(GET, HOST VERSION KEY, WS_UPGRADE_NONE);
	assert_request(GET, HOST "Connection: upgrade\r\n" VERSION KEY, WS_UPGRADE_NONE);
	assert_request(GET, HOST "Upgrade: h2c\r\nConnection: upgrade\r\n", WS_UPGRADE_NONE);
	assert_request(GET, HOST "Upgrade: websocket2\r\nConnection: upgrade\r\n", WS_UPGRADE_NONE);
	assert_request(GET, HOST "Upgrade: websocket/13\r\nConnection: upgrade\r\n", WS_UPGRADE_NONE);
	assert_request(GET, HOST "Upgrade:\r\nConnection: upgrade\r\n", WS_UPGRADE_NONE);
	assert_request("POST /x HTTP/1.1", HOST "Content-Length: 3\r\n", WS_UPGRADE_NONE);
}

static void t12_broken_requests(void **state)
{
	(void)state;
	assert_request("POST /chat HTTP/1.1", HOST UPGRADE VERSION KEY, WS_UPGRADE_BROKEN);
	assert_request("get /chat HTTP/1.1", HOST UPGRADE VERSION KEY, WS_UPGRADE_BROKEN);
	assert_request("GET /chat HTTP/1.0", HOST UPGRADE VERSION KEY, WS_UPGRADE_BROKEN);
	assert_request(GET, HOST UPGRADE VERSION KEY "Content-Length: 5\r\n", WS_UPGRADE_BROKEN);
	assert_request(GET, HOST UPGRADE VERSION KEY "Transfer-Encoding: chunked\r\n", WS_UPGRADE_BROKEN);
	assert_request(GET, HOST "Upgrade: websocket\r\n" VERSION KEY, WS_UPGRADE_BROKEN);
	assert_request(GET, HOST "Upgrade: websocket\r\nConnection: keep-alive\r\n" VERSION KEY, WS_UPGRADE_BROKEN);
	assert_request(GET, HOST UPGRADE KEY, WS_UPGRADE_BROKEN);
	assert_request(GET, HOST UPGRADE KEY VERSION VERSION, WS_UPGRADE_BROKEN);
	assert_request(GET, HOST UPGRADE VERSION, WS_UPGRADE_BROKEN);
	assert_request(GET, HOST UPGRADE VERSION KEY KEY, WS_UPGRADE_BROKEN);
}

static void t12_broken_versions_and_keys(void **state)
{
	(void)state;
	static const char *const versions[] = {"", "8", "12", "013", "13, 8", "+13", "130", "1 3"};
	static const char *const keys[] = {"",
					   "dGhlIHNhbXBsZSBub25jZQ=",
					   "dGhlIHNhbXBsZSBub25jZQ",
					   "dGhlIHNhbXBsZSBub25jZQ===",
					   "dGhlIHNhbXBsZSBub25jZQAA",
					   "dGhlIHNhbXBsZSBub25jZQA=",
					   "dGhlIHNhbXBsZSBub25jZR==",
					   "dGhlIHNhbXBsZSBub25jZY==",
					   "dGhlIHNhbXBsZSBub25j=Q==",
					   "dGhlIHNhbXBsZSBub25 ZQ==",
					   "-GhlIHNhbXBsZSBub25jZQ==",
					   "_GhlIHNhbXBsZSBub25jZQ==",
					   "dGhlIHNhbXBsZSBub25jZSBvZiBtb3Jl"};
	char fields[512];
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		snprintf(fields, sizeof(fields), HOST UPGRADE KEY "Sec-WebSocket-Version: %s\r\n", versions[i]);
		assert_request(GET, fields, WS_UPGRADE_BROKEN);
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		snprintf(fields, sizeof(fields), HOST UPGRADE VERSION "Sec-WebSocket-Key: %s\r\n", keys[i]);
		assert_request(GET, fields, WS_UPGRADE_BROKEN);
	}
}

static void assert_response(const char *line, const char *fields, const char *offered, bool wanted)
{
	char request_fields[512];
	const char *what;
	snprintf(request_fields, sizeof(request_fields), HOST UPGRADE VERSION KEY "%s", offered);
	struct message request = parse(GET, request_fields, true);
	struct message response = parse(line, fields, false);
	bool got = ws_check_response(&response, SLICE(NONCE), &request, &what);
	if (got != wanted)
		fail_msg("%d (%s) for %s\n%s", got, got ? "good" : what, line, fields);
	assert_int_equal(what == NULL, got);
}

#define SWITCH "HTTP/1.1 101 Switching Protocols"
#define ACCEPTED "Sec-WebSocket-Accept: " ACCEPT "\r\n"
#define OFFERED "Sec-WebSocket-Protocol: chat, superchat\r\nSec-WebSocket-Protocol: third\r\n"

static void right_responses(void **state)
{
	(void)state;
	assert_response(SWITCH, UPGRADE ACCEPTED, "", true);
	assert_response(SWITCH, UPGRADE ACCEPTED, OFFERED, true);
	assert_response(SWITCH, UPGRADE ACCEPTED "Sec-WebSocket-Protocol: superchat\r\n", OFFERED, true);
	assert_response(SWITCH, UPGRADE ACCEPTED "Sec-WebSocket-Protocol: third\r\n", OFFERED, true);
	assert_response("HTTP/1.1 101 ", "upgrade: WEBSOCKET\r\nconnection: x, upgrade\r\n" ACCEPTED "Server: s\r\n",
			"", true);
}

static void t12_wrong_responses(void **state)
{
	(void)state;
	assert_response("HTTP/1.1 200 OK", UPGRADE ACCEPTED, "", false);
	assert_response("HTTP/1.1 100 Continue", UPGRADE ACCEPTED, "", false);
	assert_response("HTTP/1.0 101 Switching Protocols", UPGRADE ACCEPTED, "", false);
	assert_response(SWITCH, "Connection: upgrade\r\n" ACCEPTED, "", false);
	assert_response(SWITCH, "Upgrade: h2c\r\nConnection: upgrade\r\n" ACCEPTED, "", false);
	assert_response(SWITCH, "Upgrade: websocket, h2c\r\nConnection: upgrade\r\n" ACCEPTED, "", false);
	assert_response(SWITCH, "Upgrade: websocket\r\nUpgrade: h2c\r\nConnection: upgrade\r\n" ACCEPTED, "", false);
	assert_response(SWITCH, "Upgrade: websocket\r\n" ACCEPTED, "", false);
	assert_response(SWITCH, "Upgrade: websocket\r\nConnection: close\r\n" ACCEPTED, "", false);
	assert_response(SWITCH, UPGRADE, "", false);
	assert_response(SWITCH, UPGRADE ACCEPTED ACCEPTED, "", false);
	assert_response(SWITCH, UPGRADE "Sec-WebSocket-Accept:\r\n", "", false);
	assert_response(SWITCH, UPGRADE "Sec-WebSocket-Accept: " NONCE "\r\n", "", false);
	assert_response(SWITCH, UPGRADE "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo\r\n", "", false);
	assert_response(SWITCH, UPGRADE "Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", "", false);
}

static void t12_what_was_not_offered(void **state)
{
	(void)state;
	static const char *const fields[] = {"Sec-WebSocket-Extensions: permessage-deflate\r\n",
					     "Sec-WebSocket-Extensions:\r\n",
					     "Sec-WebSocket-Protocol: other\r\n",
					     "Sec-WebSocket-Protocol: Chat\r\n",
					     "Sec-WebSocket-Protocol: chat, superchat\r\n",
					     "Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol: chat\r\n",
					     "Sec-WebSocket-Protocol:\r\n"};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		char all[512];
		snprintf(all, sizeof(all), UPGRADE ACCEPTED "%s", fields[i]);
		assert_response(SWITCH, all, OFFERED, false);
		assert_response(SWITCH, all, "", false);
	}
	assert_response(SWITCH, UPGRADE ACCEPTED "Sec-WebSocket-Protocol: chat\r\n", "", false);
	assert_response(SWITCH, UPGRADE ACCEPTED "Sec-WebSocket-Protocol:\r\n", "Sec-WebSocket-Protocol: a,, b\r\n",
			false);
}

static void accept_of_the_rfc(void **state)
{
	(void)state;
	char out[WS_ACCEPT_LEN];
	assert_true(ws_make_accept(SLICE(NONCE), out));
	assert_memory_equal(out, ACCEPT, sizeof(out));
	assert_false(ws_make_accept(SLICE("short"), out));
	assert_false(ws_make_accept(SLICE(NONCE "x"), out));
}

static void nonces_are_proper_and_differ(void **state)
{
	(void)state;
	char nonces[2][WS_NONCE_LEN];
	for (size_t i = 0; i < 2; i++) {
		char fields[512];
		struct slice nonce;
		const char *what;
		assert_true(ws_make_nonce(nonces[i]));
		snprintf(fields, sizeof(fields), HOST UPGRADE VERSION "Sec-WebSocket-Key: %.*s\r\n", WS_NONCE_LEN,
			 nonces[i]);
		struct message m = parse(GET, fields, true);
		assert_int_equal(ws_check_request(&m, &nonce, &what), WS_UPGRADE_GOOD);
	}
	assert_memory_not_equal(nonces[0], nonces[1], WS_NONCE_LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(proper_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(no_upgrade, setup, teardown),
		cmocka_unit_test_setup_teardown(t12_broken_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(t12_broken_versions_and_keys, setup, teardown),
		cmocka_unit_test_setup_teardown(right_responses, setup, teardown),
		cmocka_unit_test_setup_teardown(t12_wrong_responses, setup, teardown),
		cmocka_unit_test_setup_teardown(t12_what_was_not_offered, setup, teardown),
		cmocka_unit_test_setup_teardown(accept_of_the_rfc, setup, teardown),
		cmocka_unit_test_setup_teardown(nonces_are_proper_and_differ, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
