/* From a head to a decision: requests that fields give another method or path, and what of it is observed. */
#include "tests/unit/policy/fixture.h"

#include "inspectors/ledger.h"
#include "proxy/txn.h"

/* What a transaction needs to be decided, inside a CONNECT to x.test:443. */
struct scene {
	struct fixture policy;
	struct worker_config config;
	struct worker worker;
	struct generation gen;
	struct ledger *ledger;
	struct conn conn;
	struct txn txn;
	const char *detail;
};

static void scene_open(struct scene *s, const char *yaml)
{
	static const unsigned char key[CHAIN_KEY] = {1};
	*s = (struct scene){.policy = fixture_inspected(yaml, chain_read_policy)};
	s->worker.config = &s->config;
	s->gen.policy = s->policy.policy;
	s->ledger = ledger_init(calloc(1, ledger_size()));
	s->gen.chain = chain_new(s->gen.policy, s->ledger, key);
	assert_non_null(s->gen.chain);
	s->conn.is_bound = true;
	s->conn.origin = (struct origin){.host = {.kind = HOST_NAME, .text = SLICE("x.test")}, .port = 443};
	s->conn.origin.scheme = SCHEME_HTTPS;
	s->txn = (struct txn){.conn = &s->conn, .worker = &s->worker, .gen = &s->gen};
	arena_init(&s->txn.arena, LIMIT_TXN_ARENA);
}

static void scene_close(struct scene *s)
{
	chain_finish(&s->txn.inspect);
	chain_free(&s->gen.chain);
	free(s->ledger);
	arena_free(&s->txn.arena);
	fixture_free(&s->policy);
}

/* Decides on "METHOD PATH" with fields; each of these ends with CR and LF. */
static enum reason decide(struct scene *s, const char *start, const char *fields)
{
	char head[4096];
	struct h1_error err = {REASON_NONE, NULL};
	int n = snprintf(head, sizeof(head), "%s HTTP/1.1\r\nHost: x.test\r\n%s\r\n", start, fields);
	assert_true(n > 0 && (size_t)n < sizeof(head));
	struct txn *t = &s->txn;
	chain_finish(&t->inspect);
	arena_reset(&t->arena);
	t->req = (struct message){0};
	t->target = (struct target){0};
	t->verdict = (struct policy_verdict){0};
	s->detail = NULL;
	struct slice copy = arena_dup(&t->arena, slice_of(head, (size_t)n));
	assert_int_equal(h1_parse_request(copy, &t->arena, &t->req, &err), CAGE_OK);
	return txn_decide(t, &s->detail);
}

struct expected {
	const char *start, *fields;
	enum reason reason;
};

static void expect(struct scene *s, const struct expected *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		enum reason r = decide(s, list[i].start, list[i].fields);
		if (r != list[i].reason)
			fail_msg("%s, %s: got %s", list[i].start, list[i].fields, reason_code(r).ptr);
	}
}

#define EXPECT(s, list) expect(s, list, sizeof(list) / sizeof((list)[0]))

#define DENY_DELETE                           \
	HEAD "rules:\n"                       \
	     "  - {id: a, hosts: [x.test]}\n" \
	     "  - {id: d, action: deny, hosts: [x.test], methods: [DELETE]}\n"

static void t21_a_denied_method_is_denied_in_every_spelling(void **state)
{
	(void)state;
	struct scene s;
	scene_open(&s, DENY_DELETE);
	static const struct expected list[] = {
		{"GET /", "", REASON_NONE},
		{"DELETE /", "", REASON_RULE_DENIED},
		{"delete /", "", REASON_RULE_DENIED},
		{"POST /", "X-HTTP-Method-Override: DELETE\r\n", REASON_RULE_DENIED},
		{"POST /", "X-HTTP-Method-Override: delete\r\n", REASON_RULE_DENIED},
		{"POST /", "X_HTTP_Method_Override: DELETE\r\n", REASON_RULE_DENIED},
		{"POST /", "x-http_method: DELETE\r\n", REASON_RULE_DENIED},
		{"POST /", "X-Method-Override: GET\r\nX-Method-Override: DELETE\r\n", REASON_RULE_DENIED},
		{"POST /", "X-HTTP-Method-Override: PATCH\r\n", REASON_NONE},
	};
	EXPECT(&s, list);
	scene_close(&s);
}

static void t21_a_method_field_has_one_method(void **state)
{
	(void)state;
	struct scene s;
	scene_open(&s, DENY_DELETE);
	static const struct expected list[] = {
		{"POST /", "X-HTTP-Method-Override: DELETE, GET\r\n", REASON_HEAD_MALFORMED},
		{"POST /", "X-HTTP-Method-Override: GET,\r\n", REASON_HEAD_MALFORMED},
		{"POST /", "X-HTTP-Method-Override: DELETE GET\r\n", REASON_HEAD_MALFORMED},
		{"POST /", "X-HTTP-Method-Override: \"DELETE\"\r\n", REASON_HEAD_MALFORMED},
		{"POST /", "X-HTTP-Method-Override:\r\n", REASON_HEAD_MALFORMED},
		{"POST /", "X-HTTP-Method: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n", REASON_HEAD_MALFORMED},
		{"POST /",
		 "X-HTTP-Method: A\r\nX-HTTP-Method: A\r\nX-HTTP-Method: A\r\nX-HTTP-Method: A\r\n"
		 "X-HTTP-Method: A\r\n",
		 REASON_HEAD_MALFORMED},
		{"POST /", "X-HTTP-Method: A\r\nX-HTTP-Method: A\r\nX-HTTP-Method: A\r\nX-HTTP-Method: A\r\n",
		 REASON_NONE},
	};
	EXPECT(&s, list);
	scene_close(&s);
}

/* An allow rule means exactly what it lists, so a field must name it as it is listed. */
static void t21_an_overriding_method_must_be_allowed(void **state)
{
	(void)state;
	struct scene s;
	scene_open(&s, HEAD "rules: [{id: a, hosts: [x.test], methods: [GET, PUT]}]\n");
	static const struct expected list[] = {
		{"GET /", "X-HTTP-Method-Override: PUT\r\n", REASON_NONE},
		{"GET /", "X-HTTP-Method-Override: put\r\n", REASON_METHOD_NOT_ALLOWED},
		{"GET /", "X-HTTP-Method-Override: POST\r\n", REASON_METHOD_NOT_ALLOWED},
		{"get /", "", REASON_METHOD_NOT_ALLOWED},
	};
	EXPECT(&s, list);
	scene_close(&s);
}

static void t21_overrides_are_judged_together(void **state)
{
	(void)state;
	struct scene s;
	scene_open(&s, HEAD "rules:\n"
			    "  - {id: a, hosts: [x.test]}\n"
			    "  - {id: d, action: deny, hosts: [x.test], methods: [DELETE], paths: [/keys/**]}\n");
	static const struct expected list[] = {
		{"GET /", "X-Original-URL: /keys/1\r\n", REASON_NONE},
		{"GET /", "X-HTTP-Method: DELETE\r\n", REASON_NONE},
		{"DELETE /", "X_Rewrite_URL: /keys/1\r\n", REASON_RULE_DENIED},
		{"GET /", "X-HTTP-Method: DELETE\r\nX-Original-URL: /keys/1\r\n", REASON_RULE_DENIED},
		{"GET /", "X-Rewrite-URL: /a\r\nX-Original-URL: /keys/1\r\nX-HTTP-Method: delete\r\n",
		 REASON_RULE_DENIED},
		{"GET /", "X-Original-URL: keys\r\n", REASON_TARGET_MALFORMED},
	};
	EXPECT(&s, list);
	scene_close(&s);
}

static void an_observed_override_stands_in_the_verdict(void **state)
{
	(void)state;
	struct scene s;
	scene_open(&s, HEAD "rules:\n"
			    "  - {id: a, hosts: [x.test], limits: {body: 10B}}\n"
			    "  - {id: d, action: deny, mode: observe, hosts: [x.test], methods: [DELETE]}\n");
	assert_int_equal(decide(&s, "POST /", "X-HTTP-Method: DELETE\r\n"), REASON_NONE);
	assert_int_equal(s.txn.verdict.reason, REASON_RULE_DENIED);
	assert_true(s.txn.verdict.observe);
	assert_true(slice_eq(s.txn.verdict.rule->id, SLICE("d")));
	assert_true(slice_eq(s.txn.verdict.applies->id, SLICE("a"))); /* its limits still hold */
	assert_int_equal(decide(&s, "POST /", "X-HTTP-Method: DELETE\r\nContent-Length: 11\r\n"),
			 REASON_BODY_TOO_LARGE);
	assert_int_equal(decide(&s, "POST /", "X-HTTP-Method: PUT\r\n"), REASON_NONE);
	assert_int_equal(s.txn.verdict.reason, REASON_NONE);
	assert_false(s.txn.verdict.observe);
	scene_close(&s);
}

/* What the request line itself is observed for is said before what a field would make of it. */
static void the_first_observed_reason_stays(void **state)
{
	(void)state;
	struct scene s;
	scene_open(&s, HEAD "rules:\n"
			    "  - {id: a, mode: observe, hosts: [x.test], paths: [/a]}\n"
			    "  - {id: d, action: deny, mode: observe, hosts: [x.test], methods: [DELETE]}\n");
	assert_int_equal(decide(&s, "GET /b", "X-HTTP-Method: DELETE\r\n"), REASON_NONE);
	assert_int_equal(s.txn.verdict.reason, REASON_PATH_NOT_ALLOWED);
	assert_true(s.txn.verdict.observe);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t21_a_denied_method_is_denied_in_every_spelling),
		cmocka_unit_test(t21_a_method_field_has_one_method),
		cmocka_unit_test(t21_an_overriding_method_must_be_allowed),
		cmocka_unit_test(t21_overrides_are_judged_together),
		cmocka_unit_test(an_observed_override_stands_in_the_verdict),
		cmocka_unit_test(the_first_observed_reason_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
