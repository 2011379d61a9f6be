/* Refusals: every reason has a status, a sentence and a hint, and the response is well-formed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "core/http/h1.h"
#include "proxy/refusal.h"

static void every_reason_has_an_answer(void **state)
{
	(void)state;
	for (int r = REASON_NONE + 1; r < REASON_COUNT; r++) {
		int status = refusal_status((enum reason)r);
		assert_true(status == 400 || status == 403 || status == 407 || status == 408 || status == 429 ||
			    status == 431 || status == 502 || status == 503 || status == 504);
		char room[REFUSAL_ROOM];
		struct text t = text_in(room, sizeof(room));
		struct refusal refusal = {.reason = (enum reason)r};
		refusal_write(&t, &refusal, false, false);
		room[t.len] = '\0';
		assert_non_null(strstr(room, "\"message\":\""));
	}
}

static struct slice body_of(const struct text *t, struct message *m, struct arena *arena)
{
	struct h1_gate gate = {.kind = H1_GATE_RESPONSE};
	struct h1_error err;
	size_t len = 0;
	assert_true(text_ok(t));
	assert_int_equal(h1_gate(&gate, text_slice(t), &len), CAGE_OK);
	assert_int_equal(h1_parse_response(slice_head(text_slice(t), len), SLICE("GET"), arena, m, &err), CAGE_OK);
	return slice_from(text_slice(t), len);
}

static void has_the_contract_of_the_design(void **state)
{
	(void)state;
	char room[REFUSAL_ROOM];
	struct text t = text_in(room, sizeof(room));
	struct arena arena;
	struct message m = {0};
	struct refusal r = {.reason = REASON_HOST_NOT_ALLOWED, .host = SLICE("evil.test"), .txn = 0xabc};
	arena_init(&arena, 65536);
	refusal_write(&t, &r, true, false);
	struct slice body = body_of(&t, &m, &arena);
	assert_int_equal(m.status, 403);
	assert_int_equal(m.content_length, body.len);
	assert_true(slice_eq(message_field(&m, SLICE("x-cage-decision"))->value, SLICE("block")));
	assert_true(slice_eq(message_field(&m, SLICE("x-cage-reason"))->value, SLICE("host.not_allowed")));
	assert_true(slice_eq(message_field(&m, SLICE("x-cage-txn"))->value, SLICE("0000000000000abc")));
	assert_true(slice_eq(message_field(&m, SLICE("content-type"))->value, SLICE("application/json")));
	struct slice want = SLICE(
		"{\"error\":\"blocked_by_cage\",\"reason\":\"host.not_allowed\",\"host\":\"evil.test\","
		"\"message\":\"No rule of the policy allows this host.\",\"hint\":\"Ask for a rule that lists this "
		"host.\",\"txn\":\"0000000000000abc\"}\n");
	assert_true(slice_eq(body, want));
	arena_free(&arena);
}

static void a_failed_upstream_is_not_called_a_block(void **state)
{
	(void)state;
	char room[REFUSAL_ROOM];
	struct text t = text_in(room, sizeof(room));
	struct arena arena;
	struct message m = {0};
	struct refusal r = {.reason = REASON_UPSTREAM_UNVERIFIED, .rule = SLICE("api")};
	arena_init(&arena, 65536);
	refusal_write(&t, &r, false, false);
	struct slice body = body_of(&t, &m, &arena);
	assert_int_equal(m.status, 502);
	assert_true(m.keep_alive);
	assert_true(slice_starts(
		body, SLICE("{\"error\":\"upstream_failed\",\"reason\":\"upstream.unverified\",\"rule\":\"api\"")));
	arena_free(&arena);
}

static void a_detail_is_a_sentence_or_a_clause(void **state)
{
	(void)state;
	char room[REFUSAL_ROOM];
	struct refusal r = {.reason = REASON_TARGET_MALFORMED, .detail = "the path climbs above the root"};
	struct text t = text_in(room, sizeof(room));
	refusal_write(&t, &r, false, false);
	room[t.len] = '\0';
	assert_non_null(strstr(
		room,
		"\"message\":\"The target is not a well-formed host, port or path: the path climbs above the root.\""));
	t = text_in(room, sizeof(room));
	r.detail = "This is a proxy.";
	refusal_write(&t, &r, false, false);
	room[t.len] = '\0';
	assert_non_null(strstr(room, "\"message\":\"This is a proxy.\""));
}

static void the_answer_to_head_has_no_body(void **state)
{
	(void)state;
	char room[REFUSAL_ROOM];
	struct text t = text_in(room, sizeof(room));
	struct refusal r = {.reason = REASON_PATH_NOT_ALLOWED};
	refusal_write(&t, &r, false, true);
	assert_true(slice_ends(text_slice(&t), SLICE("\r\n\r\n")));
}

/* The longest names with every byte escaped must fit. */
static void the_largest_refusal_fits(void **state)
{
	(void)state;
	char room[REFUSAL_ROOM], host[253], rule[64];
	memset(host, 'h', sizeof(host));
	memset(rule, 'r', sizeof(rule));
	for (int reason = 0; reason < REASON_COUNT; reason++) {
		struct text t = text_in(room, sizeof(room));
		struct refusal r = {.reason = (enum reason)reason,
				    .host = slice_of(host, sizeof(host)),
				    .rule = slice_of(rule, sizeof(rule)),
				    .txn = ~0ull};
		refusal_write(&t, &r, true, false);
		assert_true(text_ok(&t));
		assert_true(slice_ends(text_slice(&t), SLICE("\"txn\":\"ffffffffffffffff\"}\n")));
	}
}

static void a_call_of_grpc_gets_a_status(void **state)
{
	(void)state;
	char room[REFUSAL_ROOM];
	struct refusal r = {.form = REFUSAL_GRPC, .reason = REASON_PATH_NOT_ALLOWED, .txn = 7};
	struct text t = text_in(room, sizeof(room));
	refusal_write(&t, &r, true, false);
	assert_true(text_ok(&t));
	room[t.len] = '\0';
	assert_string_equal(room, "HTTP/1.1 200 OK\r\n"
				  "Content-Type: application/grpc\r\n"
				  "Grpc-Status: 7\r\n"
				  "Grpc-Message: blocked_by_cage path.not_allowed 0000000000000007: "
				  "The policy does not allow this path on this host.\r\n"
				  "Cache-Control: no-store\r\n"
				  "X-Cage-Decision: block\r\n"
				  "X-Cage-Reason: path.not_allowed\r\n"
				  "X-Cage-Txn: 0000000000000007\r\n"
				  "Content-Length: 0\r\n"
				  "Connection: close\r\n\r\n");
	assert_true(slice_eq(refusal_grpc_status(REASON_LIMIT_RATE), SLICE("8")));
	assert_true(slice_eq(refusal_grpc_status(REASON_LIMIT_HOLD), SLICE("14")));
	assert_true(slice_eq(refusal_grpc_status(REASON_UPSTREAM_UNREACHABLE), SLICE("14")));
	assert_true(slice_eq(refusal_grpc_status(REASON_UPSTREAM_TIMEOUT), SLICE("14")));
	t = text_in(room, sizeof(room));
	r.detail = "100% \xc3\xa4.";
	refusal_put_grpc_message(&t, &r);
	assert_true(slice_ends(text_slice(&t), SLICE(": 100%25 %c3%a4.")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_reason_has_an_answer),
		cmocka_unit_test(has_the_contract_of_the_design),
		cmocka_unit_test(a_failed_upstream_is_not_called_a_block),
		cmocka_unit_test(the_answer_to_head_has_no_body),
		cmocka_unit_test(the_largest_refusal_fits),
		cmocka_unit_test(a_detail_is_a_sentence_or_a_clause),
		cmocka_unit_test(a_call_of_grpc_gets_a_status),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
