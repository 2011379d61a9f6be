/* The text of each kind of event, and the check of such a text. */
#include "tests/unit/audit/support.h"

#include "core/audit/body.h"
#include "core/audit/event.h"

static char buf[65536];

static void assert_body(const struct audit_event *e, const char *expected)
{
	struct text t = text_in(buf, sizeof(buf) - 1);
	struct audit_who none = {0};
	struct audit_body parts;
	audit_event_write(&t, e);
	assert_true(text_ok(&t));
	buf[t.len] = 0;
	assert_string_equal(buf, expected);
	assert_true(audit_body_check(text_slice(&t), &none, &parts));
	assert_true(parts.conn == e->conn && parts.txn == e->txn);
}

static void golden_start_and_stop(void **state)
{
	(void)state;
	struct audit_event e = {.kind = AUDIT_START, .sandbox = SLICE("box")};
	assert_body(&e, "\"event\":\"start\",\"sandbox\":\"box\"");
	e = (struct audit_event){.kind = AUDIT_STOP};
	assert_body(&e, "\"event\":\"stop\"");
}

static void golden_policy(void **state)
{
	(void)state;
	struct audit_policy policy;
	audit_policy_init(&policy, SLICE("coder"), SLICE("00ff"), 7);
	struct audit_event e = {.kind = AUDIT_POLICY,
				.policy = audit_policy_text(&policy),
				.reason = REASON_POLICY_LOADED,
				.stage = STAGE_POLICY};
	assert_body(&e, "\"event\":\"policy\",\"policy\":\"coder\",\"policy_sha\":\"00ff\",\"gen\":7,"
			"\"reason\":\"policy.loaded\",\"stage\":\"policy\"");
}

static void golden_connect(void **state)
{
	(void)state;
	struct audit_event e = sample_note(3);
	assert_body(&e, "\"event\":\"connect\",\"conn\":\"0000000000000003\",\"decision\":\"block\",\"enforced\":true,"
			"\"reason\":\"host.not_allowed\",\"stage\":\"connect\",\"host\":\"evil.test\",\"port\":443");
}

static void observed_block_stays_block(void **state)
{
	(void)state;
	struct audit_event e = {.kind = AUDIT_REQUEST, .decision = DECISION_BLOCK, .observed = true};
	assert_body(&e, "\"event\":\"request\",\"decision\":\"block\",\"enforced\":false");
	e.decision = DECISION_FLAG;
	assert_body(&e, "\"event\":\"request\",\"decision\":\"flag\"");
}

static void golden_request(void **state)
{
	(void)state;
	struct audit_event e = sample_intent(5, 9);
	assert_body(&e, "\"event\":\"request\",\"sandbox\":\"box\",\"policy\":\"coder\",\"gen\":2,\"conn\":"
			"\"0000000000000005\",\"txn\":\"0000000000000009\","
			"\"decision\":\"allow\",\"rule\":\"anthropic\",\"method\":\"POST\",\"scheme\":\"https\","
			"\"host\":\"api.anthropic.com\",\"port\":443,\"path\":\"/v1/messages\"");
}

/* Every key there is, in the order of DESIGN. */
static void golden_response_with_every_key(void **state)
{
	(void)state;
	struct addr a = {.family = ADDR_V4, .bytes = {192, 0, 2, 7}};
	struct audit_event e = sample_intent(5, 9);
	e.kind = AUDIT_RESPONSE;
	struct audit_policy policy;
	audit_policy_init(&policy, SLICE("coder"), SLICE("ab"), 2);
	e.policy = audit_policy_text(&policy);
	e.decision = DECISION_ERROR;
	e.reason = REASON_UPSTREAM_TRUNCATED;
	e.stage = STAGE_RESPONSE;
	e.alpn = SLICE("http/1.1");
	e.address = &a;
	e.status = 200;
	e.has_bytes = e.has_times = true;
	e.bytes_out = 1;
	e.bytes_in = UINT64_MAX;
	e.inspected_out = 3;
	e.us_dns = 1204;
	e.us_connect = 1000;
	e.us_tls = 999;
	e.us_inspect = 50;
	e.us_total = 12345678;
	struct slice ids[] = {SLICE("one"), SLICE("two")};
	e.injected = e.redacted = ids;
	e.n_injected = 1;
	e.n_redacted = 2;
	assert_body(&e,
		    "\"event\":\"response\",\"sandbox\":\"box\",\"policy\":\"coder\",\"policy_sha\":\"ab\",\"gen\":2,"
		    "\"conn\":\"0000000000000005\",\"txn\":\"0000000000000009\",\"decision\":\"error\",\"reason\":"
		    "\"upstream.truncated\","
		    "\"stage\":\"response\",\"rule\":\"anthropic\",\"method\":\"POST\",\"scheme\":\"https\","
		    "\"host\":\"api.anthropic.com\",\"port\":443,\"path\":\"/v1/messages\",\"alpn\":\"http/1.1\","
		    "\"address\":\"192.0.2.7\",\"status\":200,\"bytes_out\":1,\"bytes_in\":18446744073709551615,"
		    "\"inspected_out\":3,\"inspected_in\":0,\"ms\":{\"dns\":1.204,\"connect\":1.000,\"tls\":0.999,"
		    "\"inspect\":0.050,\"total\":12345.678},\"injected\":[\"one\"],\"redacted\":[\"one\",\"two\"]");
}

static void strings_are_escaped(void **state)
{
	(void)state;
	struct audit_event e = {.kind = AUDIT_ERROR, .path = slice_of("a\"b\\c\n\0\x7f\xc3\xa9~ ", 12)};
	assert_body(&e, "\"event\":\"error\",\"path\":\"a\\\"b\\\\c\\u000a\\u0000\\u007f\\u00c3\\u00a9~ \"");
}

static void ids_are_sixteen_hex_digits(void **state)
{
	(void)state;
	struct audit_event e = {.kind = AUDIT_ERROR, .conn = UINT64_MAX, .txn = 0x0123456789abcdefu};
	assert_body(&e, "\"event\":\"error\",\"conn\":\"ffffffffffffffff\",\"txn\":\"0123456789abcdef\"");
}

static void overflow_is_left_in_the_text(void **state)
{
	(void)state;
	struct audit_event e = sample_result(1, 2);
	struct text t = text_in(buf, sizeof(buf));
	audit_event_write(&t, &e);
	size_t len = t.len;
	for (size_t room = 0; room < len; room++) {
		t = text_in(buf, room);
		audit_event_write(&t, &e);
		assert_false(text_ok(&t));
		assert_true(t.len <= room);
	}
	t = text_in(buf, len);
	audit_event_write(&t, &e);
	assert_true(text_ok(&t));
}

static bool check(const char *body)
{
	struct audit_who none = {0};
	struct audit_body parts;
	return audit_body_check(slice_str(body), &none, &parts);
}

static void check_refuses_what_the_writer_adds(void **state)
{
	(void)state;
	assert_true(check("\"event\":\"request\",\"conn\":\"00000000000000ff\""));
	assert_false(check("\"event\":\"request\",\"seq\":1"));
	assert_false(check("\"event\":\"request\",\"prev\":\"00\""));
	assert_false(check("\"event\":\"request\",\"hash\":\"00\""));
	assert_false(check("\"seq\":1,\"event\":\"request\""));
	assert_false(check("\"event\":\"request\",\"ms\":{\"hash\":1}"));
}

static void check_refuses_what_leaves_the_object(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"\"event\"",
		"\"event\":",
		"\"event\":1",
		"\"event\":\"a",
		"\"event\":\"a\\\"",
		"\"event\":\"a\",",
		"\"event\":\"a\"}",
		"\"event\":\"a\"},{\"x\":1",
		"\"event\":\"a\" ",
		"\"event\":\"a\",\"host\":\"b\"\"",
		"\"event\":\"a\",\"host\":\"\\x\"",
		"\"event\":\"a\",\"host\":\"\\u0\"",
		"\"event\":\"a\",\"host\":\"\\u00g0\"",
		"\"event\":\"a\",\"host\":\"\n\"",
		"\"event\":\"a\",\"host\":\"\x80\"",
		"\"event\":\"a\",\"port\":",
		"\"event\":\"a\",\"port\":-1",
		"\"event\":\"a\",\"port\":1.",
		"\"event\":\"a\",\"port\":007",
		"\"event\":\"a\",\"ms\":{\"dns\":00.1}",
		"\"event\":\"a\",\"port\":{}",
		"\"event\":\"a\",\"port\":[1]",
		"\"event\":\"a\",\"enforced\":tru",
		"\"event\":\"a\",\"ms\":{\"dns\":1",
		"\"event\":\"a\",\"ms\":{\"dns\":1,}",
		"\"event\":\"a\",\"nobody\":1",
		"\"event\":\"a\",\"conn\":\"00000000000000ff\",\"conn\":2",
		"\"event\":\"a\",\"txn\":1,\"conn\":2",
		"\"sandbox\":\"a\"",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (check(bad[i]))
			fail_msg("accepted: %s", bad[i]);
}

static bool check_part(struct slice body, size_t n)
{
	struct audit_who none = {0};
	struct audit_body parts;
	return audit_body_check(slice_head(body, n), &none, &parts);
}

/* A part of a good body is good only where it ends between two members. */
static void check_at_every_length(void **state)
{
	(void)state;
	struct slice body =
		SLICE("\"event\":\"request\",\"sandbox\":\"b\\\"x\\u0041\\\\\",\"gen\":2,\"conn\":\"00000000000000ff\","
		      "\"enforced\":true,\"host\":\"h\",\"ms\":{\"dns\":1.0,\"total\":2.0}");
	struct audit_who who = {0};
	struct audit_body parts;
	size_t ms = (size_t)((const char *)memchr(body.ptr, '{', body.len) - body.ptr);
	assert_true(audit_body_check(body, &who, &parts));
	for (size_t n = 0; n < body.len; n++) {
		struct audit_who known = who;
		assert_int_equal(audit_body_check(slice_head(body, n), &known, &parts), body.ptr[n] == ',' && n < ms);
		assert_int_equal(check_part(body, n), body.ptr[n] == ',' && n < ms);
	}
}

/* What is known of the body before changes nothing of what is good, and nothing of what is told. */
static void check_knows_the_last_who(void **state)
{
	(void)state;
	struct audit_who who = {0};
	struct audit_body b;
	assert_true(
		audit_body_check(SLICE("\"event\":\"request\",\"sandbox\":\"a\",\"gen\":3,\"rule\":\"x\""), &who, &b));
	assert_true(audit_body_check(SLICE("\"event\":\"dns\",\"sandbox\":\"a\",\"gen\":3,\"host\":\"h\""), &who, &b));
	assert_true(slice_eq(b.event, SLICE("dns")) && slice_eq(b.who, SLICE("\"sandbox\":\"a\",\"gen\":3")));
	assert_false(audit_body_check(SLICE("\"event\":\"dns\",\"sandbox\":\"a\",\"gen\":3\"host\":\"h\""), &who, &b));
	assert_false(audit_body_check(SLICE("\"event\":\"dns\",\"sandbox\":\"a\",\"gen\":3,\"gen\":3"), &who, &b));
	assert_true(audit_body_check(SLICE("\"event\":\"dns\",\"sandbox\":\"a\",\"gen\":33,\"host\":\"h\""), &who, &b));
	assert_true(slice_eq(b.who, SLICE("\"sandbox\":\"a\",\"gen\":33")));
	assert_true(audit_body_check(SLICE("\"event\":\"dns\",\"host\":\"h\""), &who, &b));
	assert_int_equal(b.who.len, 0);
}

static void check_finds_the_parts(void **state)
{
	(void)state;
	struct audit_who none = {0};
	struct audit_body b;
	assert_true(audit_body_check(SLICE("\"event\":\"request\",\"sandbox\":\"a,b\",\"gen\":3,"
					   "\"conn\":\"fedcba9876543210\",\"txn\":\"00000000000000ff\",\"rule\":\"x\""),
				     &none, &b));
	assert_true(slice_eq(b.who, SLICE("\"sandbox\":\"a,b\",\"gen\":3")));
	assert_true(slice_eq(b.event, SLICE("request")));
	assert_true(b.conn == 0xfedcba9876543210u && b.txn == 0xff);
	assert_true(audit_body_check(SLICE("\"event\":\"request\",\"txn\":\"0000000000000001\""), &none, &b));
	assert_true(b.who.len == 0 && b.conn == 0 && b.txn == 1);
	assert_true(audit_body_check(SLICE("\"event\":\"stop\""), &none, &b));
	assert_true(b.who.len == 0 && b.conn == 0 && b.txn == 0);
}

static void check_refuses_other_ids(void **state)
{
	(void)state;
	assert_false(check("\"event\":\"request\",\"conn\":1"));
	assert_false(check("\"event\":\"request\",\"conn\":\"1\""));
	assert_false(check("\"event\":\"request\",\"conn\":\"00000000000000FF\""));
	assert_false(check("\"event\":\"request\",\"conn\":\"0000000000000000\""));
	assert_false(check("\"event\":\"request\",\"conn\":\"00000000000000001\""));
	assert_false(check("\"event\":\"request\",\"txn\":\"000000000000000g\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_start_and_stop),
		cmocka_unit_test(golden_policy),
		cmocka_unit_test(golden_connect),
		cmocka_unit_test(observed_block_stays_block),
		cmocka_unit_test(golden_request),
		cmocka_unit_test(golden_response_with_every_key),
		cmocka_unit_test(strings_are_escaped),
		cmocka_unit_test(ids_are_sixteen_hex_digits),
		cmocka_unit_test(overflow_is_left_in_the_text),
		cmocka_unit_test(check_refuses_what_the_writer_adds),
		cmocka_unit_test(check_refuses_what_leaves_the_object),
		cmocka_unit_test(check_knows_the_last_who),
		cmocka_unit_test(check_at_every_length),
		cmocka_unit_test(check_finds_the_parts),
		cmocka_unit_test(check_refuses_other_ids),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
