/* What names may carry: data in labels, secrets and placeholders, and how much of it. */
#include "dns/tunnel.h"

#include "core/base/clock.h"
#include "tests/unit/policy/fixture.h"

#define RULES                                                                        \
	HEAD "rules:\n"                                                              \
	     "  - {id: wide, hosts: ['*.wide.test']}\n"                              \
	     "  - {id: listed, hosts: [" LISTED ", 10-0-0-1.listed.test]}\n"         \
	     "  - {id: inside, hosts: ['*.inside.test'], addresses: [10.0.0.0/8]}\n" \
	     "  - {id: watch, hosts: ['*.watch.test'], mode: observe}\n"

/* Long, random and full of digits: suspicious anywhere but in a rule. */
#define LISTED "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8a9b0c1d2e3f4.listed.test"

struct rig {
	struct fixture f;
	struct ledger *ledger;
	struct dns_tunnel *tunnel;
};

static struct rig rig_new(const char *yaml)
{
	static const unsigned char key[CHAIN_KEY] = {1};
	struct rig r = {.f = fixture_inspected(yaml, chain_read_policy)};
	r.ledger = ledger_init(calloc(1, ledger_size()));
	r.tunnel = dns_tunnel_new(r.f.policy, r.ledger, key);
	assert_non_null(r.tunnel);
	return r;
}

static void rig_free(struct rig *r)
{
	dns_tunnel_free(&r->tunnel);
	free(r->ledger);
	fixture_free(&r->f);
}

static struct dns_look ask(struct rig *r, const char *name)
{
	struct host host = {.kind = HOST_NAME, .text = slice_str(name)};
	struct policy_verdict v = policy_match_name(r->f.policy, &host, NOW);
	assert_true(v.reason == REASON_NONE || v.observe);
	return dns_tunnel_ask(r->tunnel, &v, &host, SLICE("box"));
}

static void expect(struct rig *r, const char *name, enum reason reason)
{
	struct dns_look look = ask(r, name);
	if (look.reason != reason)
		fail_msg("%s: got %s", name, reason_code(look.reason).ptr);
	assert_false(look.observe);
}

static bool hides(struct rig *r, const char *name)
{
	struct host host = {.kind = HOST_NAME, .text = slice_str(name)};
	return dns_tunnel_hides(r->tunnel, &host);
}

static void t16_labels_under_a_wildcard(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	expect(&r, "www.wide.test", REASON_NONE);
	expect(&r, "cdn-eu-west-1.assets.wide.test", REASON_NONE);
	expect(&r, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqr.wide.test", REASON_NAME_SUSPICIOUS);
	expect(&r, "a.b.c.d.e.f.g.wide.test", REASON_NAME_SUSPICIOUS);
	expect(&r, "nb2wy3dpo5xxe3deb4qho2lu2a5.wide.test", REASON_NAME_SUSPICIOUS);
	expect(&r, "9f3ab27c61d0e85f4b1c7a92d3.wide.test", REASON_NAME_SUSPICIOUS);
	expect(&r, LISTED, REASON_NONE);
	rig_free(&r);
}

static void t16_different_names(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "inspectors: {name: {names: 20}}\n");
	unsigned passed = 0;
	for (int i = 0; i < 100; i++) {
		char name[64];
		snprintf(name, sizeof(name), "n%d.wide.test", i);
		passed += ask(&r, name).reason == REASON_NONE;
	}
	assert_in_range(passed, 15, 25);
	expect(&r, "www.inside.test", REASON_NONE); /* another domain is counted by itself */
	rig_free(&r);
}

static void t16_query_rate(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "dns: {tunnel: {rate: 10/d}}\n");
	for (int i = 0; i < 10; i++)
		expect(&r, "www.wide.test", REASON_NONE);
	expect(&r, "www.wide.test", REASON_LIMIT_RATE);
	expect(&r, "other.wide.test", REASON_LIMIT_RATE);
	expect(&r, "www.inside.test", REASON_NONE);
	for (int i = 0; i < 10; i++) /* when it is asked for tells something, too */
		expect(&r, LISTED, REASON_NONE);
	expect(&r, LISTED, REASON_LIMIT_RATE);
	rig_free(&r);
}

static void t16_bytes_of_names(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "dns: {tunnel: {bytes: 50B/d}}\n");
	for (int i = 0; i < 5; i++)
		expect(&r, "ten-bytes.wide.test", REASON_NONE);
	expect(&r, "x.wide.test", REASON_LIMIT_BUDGET);
	expect(&r, "x.inside.test", REASON_NONE);
	for (int i = 0; i < 5; i++) /* its bytes are the rule's, not the client's */
		expect(&r, LISTED, REASON_NONE);
	rig_free(&r);
}

static void t16_what_can_not_be_counted_is_refused(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "inspectors: {name: {action: off}}\n");
	for (int i = 0; i < 3 * LIMIT_LEDGER_ENTRIES; i++) {
		struct slice part = slice_of(&i, sizeof(i));
		uint64_t wait, key = ledger_key(r.ledger, SLICE("box"), LEDGER_RATE, &part, 1);
		(void)!ledger_take(r.ledger, key, 1, 86400000000, 1, clock_mono_us(), &wait);
	}
	expect(&r, "www.wide.test", REASON_LIMIT_COUNTERS);
	expect(&r, LISTED, REASON_LIMIT_COUNTERS);
	rig_free(&r);
}

static void t16_observed(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "dns: {tunnel: {rate: 2/d}}\n");
	struct dns_look look = ask(&r, "a.b.c.d.e.f.g.watch.test");
	assert_int_equal(look.reason, REASON_NAME_SUSPICIOUS);
	assert_true(look.observe);
	assert_int_equal(look.n_findings, 1);
	assert_int_equal(ask(&r, "www.watch.test").reason, REASON_NONE);
	look = ask(&r, "www.watch.test");
	assert_int_equal(look.reason, REASON_LIMIT_RATE);
	assert_true(look.observe);
	rig_free(&r);
}

static void t07_names_that_spell_an_address(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	expect(&r, "10-0-0-1.wide.test", REASON_NAME_SUSPICIOUS);
	expect(&r, "169.254.169.254.wide.test", REASON_NAME_SUSPICIOUS);
	expect(&r, "10-0-0-1.listed.test", REASON_NAME_SUSPICIOUS);
	expect(&r, "10-0-0-1.inside.test", REASON_NONE);
	rig_free(&r);
}

#define SECRETS                                                                              \
	HEAD "rules: [{id: wide, hosts: ['*.wide.test'], secrets: [k]}, {id: watch, hosts: " \
	     "['*.watch.test'], mode: observe}]\n"                                           \
	     "secrets: [{id: k, from: {env: K}, placeholder: CORPKEY-placeholder}]\n"        \
	     "inspectors: {name: {action: off}, encoded_blob: {action: off}, canary: {strings: [CANARY-WORD-7]}}\n"

static void t33_placeholders_in_labels(void **state)
{
	(void)state;
	struct rig r = rig_new(SECRETS);
	static const char *const names[] = {
		"corpkey-placeholder.wide.test",                      /* names have no case */
		"corpkey-.placeholder.wide.test",                     /* over two labels */
		"434f52504b45592d706c616365686f6c646572.wide.test",   /* hex */
		"cage-ph-0123456789abcdef0123456789abcdef.wide.test", /* a random one */
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct dns_look look = ask(&r, names[i]);
		if (look.reason != REASON_SECRET_MISPLACED)
			fail_msg("%s: got %s", names[i], reason_code(look.reason).ptr);
		assert_true(look.hides);
		assert_true(look.n_findings > 0);
		assert_true(hides(&r, names[i]));
	}
	struct dns_look look = ask(&r, "corpkey-placeholder.watch.test"); /* whatever the mode */
	assert_int_equal(look.reason, REASON_SECRET_MISPLACED);
	assert_false(look.observe);
	assert_false(hides(&r, "www.wide.test"));
	assert_false(hides(&r, "www.wide.test"));
	rig_free(&r);
}

static void t29_secrets_and_canaries_in_labels(void **state)
{
	(void)state;
	struct rig r = rig_new(SECRETS);
	/* an access key id in lower case: a resolver would not care */
	struct dns_look look = ask(&r, "akiaqylpmn5hhhfpz2aw.wide.test");
	assert_int_equal(look.reason, REASON_SECRET_DETECTED);
	assert_true(look.hides);
	assert_true(hides(&r, "x.akiaqylpmn5hhhfpz2aw.evil.test"));
	look = ask(&r, "canary-word-7.wide.test");
	assert_int_equal(look.reason, REASON_CANARY_DETECTED);
	assert_true(look.hides);
	look = ask(&r, "43414e4152592d574f52442d37.wide.test");
	assert_int_equal(look.reason, REASON_CANARY_DETECTED);
	assert_true(look.n_findings > 0);
	assert_true(slice_eq(look.findings[0].where, SLICE("host")));
	assert_true(slice_eq(look.findings[0].view, SLICE("hex")));
	/* and they are there until the next look, whatever is found out about names that are not shown */
	assert_false(hides(&r, "www.evil.test"));
	assert_true(hides(&r, "canary-word-7.evil.test"));
	assert_true(slice_eq(look.findings[0].view, SLICE("hex")));
	rig_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t16_labels_under_a_wildcard),
		cmocka_unit_test(t16_different_names),
		cmocka_unit_test(t16_query_rate),
		cmocka_unit_test(t16_bytes_of_names),
		cmocka_unit_test(t16_what_can_not_be_counted_is_refused),
		cmocka_unit_test(t16_observed),
		cmocka_unit_test(t07_names_that_spell_an_address),
		cmocka_unit_test(t33_placeholders_in_labels),
		cmocka_unit_test(t29_secrets_and_canaries_in_labels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
