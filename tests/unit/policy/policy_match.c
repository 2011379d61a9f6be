/* Decisions: which rule wins, what a refusal says, and what is only observed. */
#include "tests/unit/policy/fixture.h"

#include "core/policy/compile.h"

struct decision {
	const char *request;
	enum reason reason;
	const char *rule;
};

static void expect_decisions(struct fixture *f, const struct decision *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct policy_verdict v = fixture_ask(f, list[i].request);
		bool same_rule =
			!v.rule ? !list[i].rule : list[i].rule && slice_eq(v.rule->id, slice_str(list[i].rule));
		if (v.reason != list[i].reason || !same_rule)
			fail_msg("%s: got %s by %.*s", list[i].request, reason_code(v.reason).ptr,
				 v.rule ? (int)v.rule->id.len : 7, v.rule ? v.rule->id.ptr : "no rule");
		assert_true(v.reason == REASON_NONE ? v.applies == v.rule : true);
	}
}

#define EXPECT_DECISIONS(f, list) expect_decisions(f, list, sizeof(list) / sizeof((list)[0]))

static void t02_no_rules_deny_everything(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD);
	expect_verdict(fixture_ask(&f, "GET https://x.test/"), REASON_HOST_NOT_ALLOWED, NULL);
	expect_verdict(fixture_ask(&f, "GET https://127.0.0.1/"), REASON_HOST_NOT_ALLOWED, NULL);
	expect_verdict(fixture_connect(&f, "x.test"), REASON_HOST_NOT_ALLOWED, NULL);
	assert_false(fixture_ask(&f, "GET https://x.test/").observe);
	fixture_free(&f);
}

static void t02_only_deny_rules_allow_nothing(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules: [{id: d, action: deny, hosts: [x.test], paths: [/a]}]\n");
	expect_verdict(fixture_ask(&f, "GET https://x.test/b"), REASON_HOST_NOT_ALLOWED, NULL);
	expect_verdict(fixture_ask(&f, "GET https://x.test/a"), REASON_RULE_DENIED, "d");
	fixture_free(&f);
}

static void t04_suffix_tricks(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules:\n"
					     "  - {id: exact, hosts: [example.test]}\n"
					     "  - {id: wild, hosts: ['*.wild.test']}\n"
					     "  - {id: top, hosts: ['*.com']}\n");
	static const struct decision list[] = {
		{"GET https://example.test/", REASON_NONE, "exact"},
		{"GET https://EXAMPLE.test./", REASON_NONE, "exact"},
		{"GET https://notexample.test/", REASON_HOST_NOT_ALLOWED, NULL},
		{"GET https://example.test.evil.test/", REASON_HOST_NOT_ALLOWED, NULL},
		{"GET https://a.example.test/", REASON_HOST_NOT_ALLOWED, NULL},
		{"GET https://wild.test/", REASON_HOST_NOT_ALLOWED, NULL},
		{"GET https://a.wild.test/", REASON_NONE, "wild"},
		{"GET https://a.b.c.wild.test/", REASON_NONE, "wild"},
		{"GET https://notwild.test/", REASON_HOST_NOT_ALLOWED, NULL},
		{"GET https://a.wild.test.evil.test/", REASON_HOST_NOT_ALLOWED, NULL},
		{"GET https://com/", REASON_HOST_NOT_ALLOWED, NULL},
		{"GET https://x.com/", REASON_NONE, "top"},
		{"GET https://xcom/", REASON_HOST_NOT_ALLOWED, NULL},
	};
	EXPECT_DECISIONS(&f, list);
	fixture_free(&f);
}

static void addresses_as_hosts(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules:\n  - {id: a, hosts: [192.0.2.1, '2001:db8::1', '*.test']}\n");
	static const struct decision list[] = {
		{"GET https://192.0.2.1/", REASON_NONE, "a"},
		{"GET https://192.0.2.2/", REASON_HOST_NOT_ALLOWED, NULL},
		{"GET https://[2001:db8:0::1]/", REASON_NONE, "a"},
		{"GET https://[2001:db8::2]/", REASON_HOST_NOT_ALLOWED, NULL},
	};
	EXPECT_DECISIONS(&f, list);
	fixture_free(&f);
}

static void t08_deny_wins(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules:\n"
					     "  - {id: wide, hosts: ['*.x.test', x.test], ports: [80, 443, 8443]}\n"
					     "  - {id: no-host, action: deny, hosts: [bad.x.test]}\n"
					     "  - {id: no-sub, action: deny, hosts: ['*.worse.x.test']}\n"
					     "  - {id: good-in-bad, hosts: [ok.worse.x.test]}\n"
					     "  - {id: no-port, action: deny, hosts: [x.test], ports: [8443]}\n"
					     "  - {id: no-method, action: deny, hosts: ['*.x.test'], methods: [PUT]}\n"
					     "  - {id: no-path, action: deny, hosts: [x.test], paths: [/keys/**]}\n");
	static const struct decision list[] = {
		{"GET https://a.x.test/", REASON_NONE, "wide"},
		{"GET https://bad.x.test/", REASON_RULE_DENIED, "no-host"},
		{"GET http://bad.x.test/", REASON_RULE_DENIED, "no-host"},
		{"GET https://bad.x.test:9/", REASON_RULE_DENIED, "no-host"},
		{"GET https://ok.worse.x.test/", REASON_RULE_DENIED, "no-sub"},
		{"GET https://worse.x.test/", REASON_NONE, "wide"},
		{"GET https://x.test:8443/", REASON_RULE_DENIED, "no-port"},
		{"GET https://x.test/", REASON_NONE, "wide"},
		{"PUT https://a.x.test/", REASON_RULE_DENIED, "no-method"},
		{"put https://a.x.test/", REASON_RULE_DENIED, "no-method"},
		{"PuT https://a.x.test/", REASON_RULE_DENIED, "no-method"},
		{"PUTS https://a.x.test/", REASON_NONE, "wide"},
		{"PUT https://x.test/", REASON_NONE, "wide"},
		{"GET https://x.test/keys", REASON_RULE_DENIED, "no-path"},
		{"GET https://x.test/keys/1", REASON_RULE_DENIED, "no-path"},
		{"GET https://x.test/keyring", REASON_NONE, "wide"},
	};
	EXPECT_DECISIONS(&f, list);
	fixture_free(&f);
}

static void t20_two_readings_of_a_path(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules:\n"
					     "  - {id: pub, hosts: [a.test], paths: [/pub/**]}\n"
					     "  - {id: all, hosts: [b.test]}\n"
					     "  - {id: no-admin, action: deny, hosts: [b.test], paths: [/admin/**]}\n"
					     "  - {id: slash, hosts: [c.test], paths: ['/p/*%2F*/x', /q%20r/**]}\n");
	static const struct decision list[] = {
		/* allow needs both */
		{"GET https://a.test/pub/x", REASON_NONE, "pub"},
		{"GET https://a.test/pub/../x", REASON_PATH_NOT_ALLOWED, NULL},
		{"GET https://a.test/pub/%2e%2e/x", REASON_PATH_NOT_ALLOWED, NULL},
		{"GET https://a.test/x/../pub", REASON_NONE, "pub"},
		{"GET https://a.test/pub%2fx", REASON_PATH_NOT_ALLOWED, NULL},
		{"GET https://a.test/pub?x=/../..", REASON_NONE, "pub"},
		/* deny needs either */
		{"GET https://b.test/x", REASON_NONE, "all"},
		{"GET https://b.test/admin", REASON_RULE_DENIED, "no-admin"},
		{"GET https://b.test//admin", REASON_RULE_DENIED, "no-admin"},
		{"GET https://b.test/%61dmin", REASON_RULE_DENIED, "no-admin"},
		{"GET https://b.test/%2561dmin", REASON_RULE_DENIED, "no-admin"},
		{"GET https://b.test/x/../admin/y", REASON_RULE_DENIED, "no-admin"},
		{"GET https://b.test/admin;x/y", REASON_RULE_DENIED, "no-admin"},
		{"GET https://b.test/x/%2fadmin", REASON_NONE, "all"},
		{"GET https://b.test/%2fadmin", REASON_RULE_DENIED, "no-admin"},
		{"GET https://b.test/admin%3fx", REASON_RULE_DENIED, "no-admin"},
		{"GET https://b.test/admin%23", REASON_RULE_DENIED, "no-admin"},
		{"GET https://b.test/%5cadmin", REASON_RULE_DENIED, "no-admin"},
		{"GET https://b.test/Admin", REASON_NONE, "all"},
		/* a pattern has both readings as well */
		{"GET https://c.test/p/a%2fb/x", REASON_NONE, "slash"},
		{"GET https://c.test/p/a/b/x", REASON_PATH_NOT_ALLOWED, NULL},
		{"GET https://c.test/q%20r/s", REASON_NONE, "slash"},
	};
	EXPECT_DECISIONS(&f, list);
	fixture_free(&f);
}

/* OPTIONS * has no path: only a rule without paths allows it, and a deny rule that lists every path denies it. */
static void t20_star_target(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules:\n"
					     "  - {id: any, hosts: [a.test, c.test]}\n"
					     "  - {id: deep, hosts: [b.test], paths: [/**]}\n"
					     "  - {id: none, action: deny, hosts: [c.test], paths: [/x, /**]}\n");
	static const struct {
		const char *host;
		enum reason reason;
	} list[] = {{"https://a.test/", REASON_NONE},
		    {"https://b.test/", REASON_PATH_NOT_ALLOWED},
		    {"https://c.test/", REASON_RULE_DENIED}};
	for (size_t i = 0; i < 3; i++) {
		struct target t;
		const char *why = NULL;
		assert_int_equal(url_parse(slice_str(list[i].host), &f.arena, &t, &why), CAGE_OK);
		t.path = t.loose = SLICE("*");
		assert_int_equal(policy_match_request(f.policy, &t, SLICE("OPTIONS"), NOW).reason, list[i].reason);
	}
	expect_verdict(fixture_connect(&f, "c.test"), REASON_RULE_DENIED, "none");
	fixture_free(&f);
}

static void t21_methods(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules:\n"
					     "  - {id: read, hosts: [a.test], methods: [GET, HEAD]}\n"
					     "  - {id: any, hosts: [b.test]}\n"
					     "  - {id: no-trace, action: deny, hosts: [b.test], methods: [TRACE]}\n");
	static const struct decision list[] = {
		{"GET https://a.test/", REASON_NONE, "read"},
		{"HEAD https://a.test/", REASON_NONE, "read"},
		{"get https://a.test/", REASON_METHOD_NOT_ALLOWED, NULL},
		{"GETX https://a.test/", REASON_METHOD_NOT_ALLOWED, NULL},
		{"GE https://a.test/", REASON_METHOD_NOT_ALLOWED, NULL},
		{"TRACE https://a.test/", REASON_METHOD_NOT_ALLOWED, NULL},
		{"BREW https://b.test/", REASON_NONE, "any"},
		{"TRACE https://b.test/", REASON_RULE_DENIED, "no-trace"},
	};
	EXPECT_DECISIONS(&f, list);
	fixture_free(&f);
}

static void most_specific_wins(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules:\n"
					     "  - {id: short, hosts: ['*.test'], paths: [/very/long/path/**]}\n"
					     "  - {id: long, hosts: ['*.a.test']}\n"
					     "  - {id: exact, hosts: [x.a.test], paths: [/e/**]}\n"
					     "  - {id: v1, hosts: [b.test], paths: [/v1/**, /other/**]}\n"
					     "  - {id: msg, hosts: [b.test], paths: [/v1/messages/**]}\n"
					     "  - {id: one, hosts: [b.test], paths: [/v1/messages]}\n"
					     "  - {id: post, hosts: [b.test], paths: [/v1/**], methods: [POST]}\n"
					     "  - {id: rest, hosts: [b.test]}\n"
					     "  - {id: rest-put, hosts: [b.test], methods: [PUT]}\n");
	static const struct decision list[] = {
		/* host before path */
		{"GET https://x.a.test/e/1", REASON_NONE, "exact"},
		{"GET https://x.a.test/very/long/path/1", REASON_NONE, "long"},
		{"GET https://y.a.test/very/long/path/1", REASON_NONE, "long"},
		{"GET https://c.test/very/long/path/1", REASON_NONE, "short"},
		/* path before methods */
		{"GET https://b.test/v1/x", REASON_NONE, "v1"},
		{"POST https://b.test/v1/x", REASON_NONE, "post"},
		{"POST https://b.test/v1/messages/x", REASON_NONE, "msg"},
		{"POST https://b.test/v1/messages", REASON_NONE, "one"},
		{"GET https://b.test/other/x", REASON_NONE, "v1"},
		{"GET https://b.test/z", REASON_NONE, "rest"},
		{"PUT https://b.test/z", REASON_NONE, "rest-put"},
		{"PUT https://b.test/v1/z", REASON_NONE, "v1"},
	};
	EXPECT_DECISIONS(&f, list);
	fixture_free(&f);
}

static void reasons_say_how_far_it_went(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules:\n"
					     "  - {id: a, hosts: [a.test], methods: [POST], paths: [/v1/**]}\n"
					     "  - {id: b, hosts: [a.test], ports: [8443], methods: [GET]}\n"
					     "  - {id: c, hosts: ['*.test'], ports: [80], paths: [/c]}\n");
	static const struct decision list[] = {
		{"GET https://z.example/", REASON_HOST_NOT_ALLOWED, NULL},
		{"GET https://a.test:9/", REASON_PORT_NOT_ALLOWED, NULL},
		{"GET https://a.test/v1/x", REASON_METHOD_NOT_ALLOWED, NULL},
		{"POST https://a.test/v2", REASON_PATH_NOT_ALLOWED, NULL},
		{"POST https://a.test:8443/v2", REASON_METHOD_NOT_ALLOWED, NULL},
		{"GET http://a.test/x", REASON_PATH_NOT_ALLOWED, NULL},
		{"GET http://b.test/c", REASON_NONE, "c"},
		{"GET https://b.test/c", REASON_PORT_NOT_ALLOWED, NULL},
	};
	EXPECT_DECISIONS(&f, list);
	expect_verdict(fixture_connect(&f, "z.example"), REASON_HOST_NOT_ALLOWED, NULL);
	expect_verdict(fixture_connect(&f, "a.test:9"), REASON_PORT_NOT_ALLOWED, NULL);
	expect_verdict(fixture_connect(&f, "a.test:443"), REASON_NONE, "a");
	expect_verdict(fixture_connect(&f, "a.test:8443"), REASON_NONE, "b");
	fixture_free(&f);
}

static void expired_rules_never_match(void **state)
{
	(void)state;
	struct fixture f =
		fixture_good(HEAD "rules:\n"
				  "  - {id: a, hosts: [a.test], expires: 2027-01-15T08:00:00Z}\n"
				  "  - {id: b, hosts: [b.test]}\n"
				  "  - {id: d, action: deny, hosts: [b.test], expires: 2027-01-15T08:00:00Z}\n"
				  "  - {id: epoch, hosts: [c.test], expires: 1970-01-01T00:00:00Z}\n");
	/* 2027-01-15T08:00:00Z is NOW */
	f.now = NOW - 1;
	expect_verdict(fixture_ask(&f, "GET https://a.test/"), REASON_NONE, "a");
	expect_verdict(fixture_ask(&f, "GET https://b.test/"), REASON_RULE_DENIED, "d");
	f.now = NOW;
	expect_verdict(fixture_ask(&f, "GET https://a.test/"), REASON_HOST_NOT_ALLOWED, NULL);
	expect_verdict(fixture_connect(&f, "a.test"), REASON_HOST_NOT_ALLOWED, NULL);
	expect_verdict(fixture_ask(&f, "GET https://b.test/"), REASON_NONE, "b");
	expect_verdict(fixture_ask(&f, "GET https://c.test/"), REASON_HOST_NOT_ALLOWED, NULL);
	fixture_free(&f);
}

static void tunnels(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules:\n"
					     "  - {id: ssh, action: tunnel, hosts: [a.test, '*.b.test'], ports: [22]}\n"
					     "  - {id: web, hosts: [a.test]}\n"
					     "  - {id: d, action: deny, hosts: [no.b.test]}\n"
					     "  - {id: p, action: deny, hosts: [path.b.test], paths: [/x]}\n"
					     "tests:\n"
					     "  - {request: 'CONNECT a.test:22', expect: allow, rule: ssh}\n"
					     "  - {request: 'CONNECT a.test:23', expect: deny}\n");
	expect_verdict(fixture_connect(&f, "a.test:22"), REASON_NONE, "ssh");
	expect_verdict(fixture_connect(&f, "x.b.test:22"), REASON_NONE, "ssh");
	expect_verdict(fixture_connect(&f, "x.b.test:443"), REASON_PORT_NOT_ALLOWED, NULL);
	expect_verdict(fixture_connect(&f, "a.test:443"), REASON_NONE, "web");
	expect_verdict(fixture_connect(&f, "no.b.test:22"), REASON_RULE_DENIED, "d");
	/* what a deny rule looks for can't be seen in a tunnel */
	expect_verdict(fixture_connect(&f, "path.b.test:22"), REASON_RULE_DENIED, "p");
	expect_verdict(fixture_ask(&f, "GET https://a.test:22/"), REASON_TUNNEL_ONLY, NULL);
	assert_false(fixture_ask(&f, "GET https://a.test:22/").observe);
	expect_verdict(fixture_ask(&f, "GET https://no.b.test:22/"), REASON_RULE_DENIED, "d");
	fixture_free(&f);
}

static void connect_and_deny(void **state)
{
	(void)state;
	struct fixture f =
		fixture_good(HEAD "rules:\n"
				  "  - {id: a, hosts: ['*.test'], ports: [80, 443], methods: [GET], paths: [/a]}\n"
				  "  - {id: all, action: deny, hosts: [all.test]}\n"
				  "  - {id: port, action: deny, hosts: [port.test], ports: [80]}\n"
				  "  - {id: part, action: deny, hosts: [part.test], methods: [GET]}\n");
	expect_verdict(fixture_connect(&f, "x.test"), REASON_NONE, "a");
	expect_verdict(fixture_connect(&f, "all.test"), REASON_RULE_DENIED, "all");
	expect_verdict(fixture_connect(&f, "port.test"), REASON_NONE, "a");
	expect_verdict(fixture_connect(&f, "port.test:80"), REASON_RULE_DENIED, "port");
	expect_verdict(fixture_connect(&f, "part.test"), REASON_NONE, "a");
	fixture_free(&f);
}

static void observe(void **state)
{
	(void)state;
	struct fixture f =
		fixture_good(HEAD "mode: observe\n"
				  "rules:\n"
				  "  - {id: strict, hosts: [strict.test], paths: [/a], mode: enforce}\n"
				  "  - {id: lax, hosts: [lax.test], paths: [/a]}\n"
				  "  - {id: wide, hosts: ['*.test'], paths: [/w]}\n"
				  "  - {id: d, action: deny, hosts: [lax.test], paths: [/a/x]}\n"
				  "  - {id: e, action: deny, hosts: [lax.test], paths: [/e], mode: enforce}\n");
	static const struct {
		const char *request;
		enum reason reason;
		bool observe;
	} list[] = {
		{"GET https://other.example/", REASON_HOST_NOT_ALLOWED, true},
		{"GET https://strict.test/b", REASON_PATH_NOT_ALLOWED, false},
		{"GET https://strict.test:9/a", REASON_PORT_NOT_ALLOWED, false},
		{"GET https://lax.test/b", REASON_PATH_NOT_ALLOWED, true},
		{"GET https://lax.test/a/x", REASON_RULE_DENIED, true},
		{"GET https://lax.test/e", REASON_RULE_DENIED, false},
		{"GET https://lax.test/a", REASON_NONE, false},
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		struct policy_verdict v = fixture_ask(&f, list[i].request);
		assert_int_equal(v.reason, list[i].reason);
		assert_int_equal(v.observe, list[i].observe);
	}
	assert_true(fixture_connect(&f, "other.example").observe);
	assert_false(fixture_connect(&f, "strict.test:9").observe);
	fixture_free(&f);
}

static void one_rule_observes(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules:\n"
					     "  - {id: o, hosts: [o.test], paths: [/a], mode: observe}\n"
					     "  - {id: m1, hosts: [m.test], paths: [/a], mode: observe}\n"
					     "  - {id: m2, hosts: [m.test], paths: [/b]}\n");
	assert_true(fixture_ask(&f, "GET https://o.test/b").observe);
	assert_true(fixture_ask(&f, "GET https://o.test:9/a").observe);
	assert_false(fixture_ask(&f, "GET https://other.test/").observe);
	/* when the rules of a host disagree, it is enforced */
	assert_false(fixture_ask(&f, "GET https://m.test/c").observe);
	fixture_free(&f);
}

/* A deny rule that only observes never opens what would be refused without it. */
static void observed_deny_opens_nothing(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules:\n"
					     "  - {id: a, hosts: [a.test], paths: [/a/**], addresses: [10.0.0.0/8]}\n"
					     "  - {id: d, action: deny, hosts: [a.test, z.test], mode: observe}\n"
					     "  - {id: e, action: deny, hosts: [a.test], paths: [/a/e]}\n");
	struct policy_verdict v = fixture_ask(&f, "GET https://a.test/a/x");
	expect_verdict(v, REASON_RULE_DENIED, "d");
	assert_true(v.observe);
	assert_non_null(v.applies);
	assert_int_equal(v.applies->n_addresses, 1);

	v = fixture_ask(&f, "GET https://a.test/b");
	expect_verdict(v, REASON_PATH_NOT_ALLOWED, NULL);
	assert_false(v.observe);
	v = fixture_ask(&f, "GET https://z.test/");
	expect_verdict(v, REASON_HOST_NOT_ALLOWED, NULL);
	assert_false(v.observe);
	v = fixture_connect(&f, "z.test");
	expect_verdict(v, REASON_HOST_NOT_ALLOWED, NULL);
	assert_false(v.observe);
	/* the one that is enforced goes first */
	v = fixture_ask(&f, "GET https://a.test/a/e");
	expect_verdict(v, REASON_RULE_DENIED, "e");
	assert_false(v.observe);
	fixture_free(&f);
}

static struct fixture many_rules(int n)
{
	struct fixture f = fixture_new();
	size_t room = 128 * (size_t)n + 256, len = 0;
	char *yaml = malloc(room);
	assert_non_null(yaml);
	len += (size_t)snprintf(yaml, room, HEAD "rules:\n");
	for (int i = 0; i < n; i++)
		len += (size_t)snprintf(yaml + len, room - len,
					"- {id: r%d, hosts: [h%d.test, '*.w%d.test'], paths: [/a/**, /b]}\n", i, i, i);
	assert_non_null(fixture_load(&f, yaml));
	free(yaml);
	return f;
}

/* How many entries are looked at for a host, and how many candidates stand in them. */
static size_t candidates_for(const struct fixture *f, struct slice name)
{
	struct host host = {.kind = HOST_NAME, .text = name};
	struct host_entries entries;
	size_t n = 0;
	host_entries_find(f->policy, &host, &entries);
	for (size_t i = 0; i < entries.n; i++)
		n += entries.list[i]->n_allows + entries.list[i]->n_denies;
	return n;
}

/* The longest run of taken slots: what one lookup walks at most. */
static size_t longest_run(const struct map *m)
{
	size_t longest = 0, run = 0;
	for (size_t i = 0; i <= 2 * m->mask; i++) {
		run = m->slots[i & m->mask].value ? run + 1 : 0;
		if (run > longest)
			longest = run;
	}
	return longest;
}

static void cost_does_not_grow_with_rules(void **state)
{
	(void)state;
	struct fixture few = many_rules(10), many = many_rules(10000);
	static const struct slice names[] = {
		{"h7.test", 7}, {"a.b.c.w7.test", 13}, {"w7.test", 7}, {"none.example", 12}};
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(candidates_for(&few, names[i]), candidates_for(&many, names[i]));
	assert_int_equal(many.policy->exact.count, 10000);
	assert_true(many.policy->exact.count * 2 <= many.policy->exact.mask + 1);
	assert_true(many.policy->wildcard.count * 2 <= many.policy->wildcard.mask + 1);
	assert_true(longest_run(&many.policy->exact) < 200);
	expect_verdict(fixture_ask(&many, "GET https://h9999.test/b"), REASON_NONE, "r9999");
	expect_verdict(fixture_ask(&many, "GET https://x.w5000.test/a"), REASON_NONE, "r5000");
	expect_verdict(fixture_ask(&many, "GET https://h10000.test/a"), REASON_HOST_NOT_ALLOWED, NULL);
	fixture_free(&few);
	fixture_free(&many);
}

/* The name with the most labels that there can be. */
static void longest_name(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules: [{id: a, hosts: ['*.a', '*.a.a', '*.a.a.a', a.a.a.a]}]\n");
	char name[LIMIT_HOST];
	struct host host = {.kind = HOST_NAME, .text = slice_of(name, sizeof(name))};
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 2 ? '.' : 'a';
	expect_verdict(policy_match_connect(f.policy, &host, 443, NOW), REASON_NONE, "a");
	struct host_entries entries;
	host_entries_find(f.policy, &host, &entries);
	assert_int_equal(entries.n, 3);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t02_no_rules_deny_everything),
		cmocka_unit_test(t02_only_deny_rules_allow_nothing),
		cmocka_unit_test(t04_suffix_tricks),
		cmocka_unit_test(addresses_as_hosts),
		cmocka_unit_test(t08_deny_wins),
		cmocka_unit_test(t20_two_readings_of_a_path),
		cmocka_unit_test(t20_star_target),
		cmocka_unit_test(t21_methods),
		cmocka_unit_test(most_specific_wins),
		cmocka_unit_test(reasons_say_how_far_it_went),
		cmocka_unit_test(expired_rules_never_match),
		cmocka_unit_test(tunnels),
		cmocka_unit_test(connect_and_deny),
		cmocka_unit_test(observe),
		cmocka_unit_test(one_rule_observes),
		cmocka_unit_test(observed_deny_opens_nothing),
		cmocka_unit_test(cost_does_not_grow_with_rules),
		cmocka_unit_test(longest_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
