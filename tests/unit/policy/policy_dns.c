/* The section `dns`, the resolvers, and which names may be asked for. */
#include "tests/unit/policy/fixture.h"

struct mistake {
	const char *yaml, *error;
};

static void what_it_is_without_a_word(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD);
	const struct policy_dns *dns = &f.policy->dns;
	char text[ADDR_TEXT];
	assert_int_equal(dns->denied, DNS_SINKHOLE);
	assert_int_equal(dns->mode, DNS_RESOLVE);
	assert_string_equal(addr_format(policy_sinkhole(dns, ADDR_V4), text).ptr, "192.0.2.1");
	assert_string_equal(addr_format(policy_sinkhole(dns, ADDR_V6), text).ptr, "2001:db8::1");
	assert_string_equal(addr_format(&dns->pool.base, text).ptr, "100.64.0.0");
	assert_int_equal(dns->pool.prefix, 10);
	assert_int_equal(dns->n_types, 0);
	assert_true(dns->ttl_min > 0 && dns->ttl_min <= dns->ttl_max && dns->ttl_denied > 0);
	assert_true(dns->tunnel_rate.period_us > 0 && dns->tunnel_bytes.period_us > 0);
	assert_false(f.policy->bound);
	fixture_free(&f);
}

static void all_keys(void **state)
{
	(void)state;
	struct fixture f =
		fixture_good(HEAD "dns:\n"
				  "  denied: sinkhole\n"
				  "  sinkhole: [10.0.0.1]\n"
				  "  types: [TXT, MX, CAA]\n"
				  "  mode: resolve\n"
				  "  ttl: {min: 5s, max: 10m, denied: 1m}\n"
				  "  tunnel: {rate: 10/s, bytes: 4KiB/h}\n"
				  "upstream:\n"
				  "  bound: true\n"
				  "  resolvers: ['tls://192.0.2.53#One.test', 'tls://192.0.2.54:8853#two.test', "
				  "'tls://[2001:db8::53]:853#three.test', 'tls://2001:db8::54#four.test', "
				  "192.0.2.55]\n");
	const struct policy_dns *dns = &f.policy->dns;
	assert_non_null(policy_sinkhole(dns, ADDR_V4));
	assert_null(policy_sinkhole(dns, ADDR_V6));
	assert_true(policy_lists_type(dns, 16));
	assert_true(policy_lists_type(dns, 15));
	assert_true(policy_lists_type(dns, 257));
	assert_false(policy_lists_type(dns, 33));
	assert_false(policy_lists_type(dns, 1));
	assert_int_equal(dns->ttl_min, 5);
	assert_int_equal(dns->ttl_max, 600);
	assert_int_equal(dns->ttl_denied, 60);
	assert_int_equal(dns->tunnel_rate.count, 10);
	assert_int_equal(dns->tunnel_bytes.count, 4096);
	assert_true(f.policy->bound);
	const struct policy_resolver *r = f.policy->resolvers;
	assert_int_equal(f.policy->n_resolvers, 5);
	assert_true(slice_eq(r[0].name, SLICE("one.test")));
	assert_int_equal(r[0].port, 853);
	assert_int_equal(r[1].port, 8853);
	assert_int_equal(r[2].addr.family, ADDR_V6);
	assert_true(slice_eq(r[3].name, SLICE("four.test")));
	assert_int_equal(r[4].name.len, 0);
	assert_int_equal(r[4].port, 53);
	fixture_free(&f);
}

static void a_pool_of_synthetic_addresses(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "dns: {mode: synthetic, pool: 10.128.0.0/9, denied: refused}\n");
	assert_int_equal(f.policy->dns.mode, DNS_SYNTHETIC);
	assert_int_equal(f.policy->dns.pool.prefix, 9);
	assert_int_equal(f.policy->dns.denied, DNS_REFUSED);
	fixture_free(&f);
}

static void mistakes(void **state)
{
	(void)state;
	static const struct mistake list[] = {
		{HEAD "dns: [a]\n", "policy.yaml:3:6: dns: expected a mapping, got a list"},
		{HEAD "dns: {denie: nxdomain}\n", "policy.yaml:3:7: dns.denie: unknown key; did you mean \"denied\"?"},
		{HEAD "dns: {aliases: every}\n",
		 "policy.yaml:3:16: dns.aliases: expected allowed or any, got \"every\""},
		{HEAD "dns: {denied: nxdomian}\n",
		 "policy.yaml:3:15: dns.denied: expected sinkhole, nxdomain or refused, "
		 "got \"nxdomian\"; did you mean \"nxdomain\"?"},
		{HEAD "dns: {sinkhole: []}\n",
		 "policy.yaml:3:17: dns.sinkhole: expected a list of addresses, got an empty list"},
		{HEAD "dns: {sinkhole: [x.test]}\n",
		 "policy.yaml:3:18: dns.sinkhole[0]: expected an address, got \"x.test\""},
		{HEAD "dns: {sinkhole: [169.254.169.254]}\n", "policy.yaml:3:18: dns.sinkhole[0]: \"169.254.169.254\" "
							      "is a cloud metadata address; nobody may be sent "
							      "there"},
		{HEAD "dns: {sinkhole: [192.0.2.1, 192.0.2.2]}\n",
		 "policy.yaml:3:29: dns.sinkhole[1]: expected one IPv4 and one IPv6 address at most, got another "
		 "\"192.0.2.2\""},
		{HEAD "dns: {denied: refused, sinkhole: [192.0.2.1]}\n",
		 "policy.yaml:3:24: dns.sinkhole: needs denied: sinkhole"},
		{HEAD "dns: {types: TXT}\n",
		 "policy.yaml:3:14: dns.types: expected a list of query types, got \"TXT\""},
		{HEAD "dns: {types: [ANY]}\n",
		 "policy.yaml:3:15: dns.types[0]: \"ANY\" can't be listed: it asks for everything at once"},
		{HEAD "dns: {types: [\"NULL\"]}\n",
		 "policy.yaml:3:15: dns.types[0]: \"NULL\" can't be listed: it carries any bytes"},
		{HEAD "dns: {types: [AXFR]}\n",
		 "policy.yaml:3:15: dns.types[0]: \"AXFR\" can't be listed: it copies a whole zone"},
		{HEAD "dns: {types: [HTTPS]}\n",
		 "policy.yaml:3:15: dns.types[0]: \"HTTPS\" can't be listed: it is always answered without a record, "
		 "since it could lead past the proxy"},
		{HEAD "dns: {types: [AAAA]}\n", "policy.yaml:3:15: dns.types[0]: \"AAAA\" is always answered"},
		{HEAD "dns: {types: [TXT, TXR]}\n",
		 "policy.yaml:3:20: dns.types[1]: expected a query type such as TXT, MX or SRV, got \"TXR\"; did you "
		 "mean \"TXT\"?"},
		{HEAD "dns: {types: [TXT, TXT]}\n", "policy.yaml:3:20: dns.types[1]: \"TXT\" is listed twice"},
		{HEAD "dns: {types: [[TXT]]}\n",
		 "policy.yaml:3:15: dns.types[0]: expected a query type such as TXT, MX or SRV, got a list"},
		{HEAD "dns: {mode: sinthetic}\n", "policy.yaml:3:13: dns.mode: expected resolve or synthetic, got "
						  "\"sinthetic\"; did you mean \"synthetic\"?"},
		{HEAD "dns: {pool: 10.0.0.0/8}\n", "policy.yaml:3:7: dns.pool: needs mode: synthetic"},
		{HEAD "dns: {mode: synthetic, pool: 8.0.0.0/8}\n",
		 "policy.yaml:3:30: dns.pool: expected a range of private addresses, got \"8.0.0.0/8\""},
		{HEAD "dns: {mode: synthetic, pool: 10.0.0.0/25}\n",
		 "policy.yaml:3:30: dns.pool: expected an IPv4 range from /8 to /24, got \"10.0.0.0/25\""},
		{HEAD "dns: {mode: synthetic, pool: \"fd00::/8\"}\n",
		 "policy.yaml:3:30: dns.pool: expected an IPv4 range from /8 to /24, got \"fd00::/8\""},
		{HEAD "dns: {mode: synthetic, pool: 192.0.2.0/24}\n",
		 "policy.yaml:3:6: dns: the sinkhole can't lie in the pool"},
		{HEAD "dns: {mode: synthetic, types: [TXT]}\n",
		 "policy.yaml:3:24: dns.types: with mode: synthetic nobody is asked, so only addresses are answered"},
		{HEAD "dns: {ttl: 5s}\n", "policy.yaml:3:12: dns.ttl: expected a mapping, got \"5s\""},
		{HEAD "dns: {ttl: {min: 5}}\n",
		 "policy.yaml:3:18: dns.ttl.min: expected a time such as 30s, 10m, 24h or 7d, at most 7d, got \"5\""},
		{HEAD "dns: {ttl: {min: 5m, max: 5s}}\n", "policy.yaml:3:12: dns.ttl: min is more than max"},
		{HEAD "dns: {tunnel: {labels: 3}}\n", "policy.yaml:3:16: dns.tunnel.labels: unknown key"},
		{HEAD "dns: {tunnel: {rate: 5}}\n",
		 "policy.yaml:3:22: dns.tunnel.rate: expected a rate of 1 to 1000000 such as 10/s, 5/m, 100/h or 1/d, "
		 "got \"5\""},
		{HEAD "dns: {tunnel: {bytes: 1GiB/h}}\n",
		 "policy.yaml:3:23: dns.tunnel.bytes: expected at most 67108864 bytes, got \"1GiB/h\""},
		{HEAD "upstream: {bound: yes}\n",
		 "policy.yaml:3:19: upstream.bound: expected false or true, got \"yes\""},
		{HEAD "upstream: {resolvers: [192.0.2.1, 192.0.2.2, 192.0.2.3, 192.0.2.4, 192.0.2.5, 192.0.2.6, "
		      "192.0.2.7, 192.0.2.8, 192.0.2.9]}\n",
		 "policy.yaml:3:23: upstream.resolvers: expected at most 8 resolvers, got 9"},
		{HEAD "upstream: {resolvers: [\"tls://192.0.2.1\"]}\n",
		 "policy.yaml:3:24: upstream.resolvers[0]: expected tls://address#name or tls://address:port#name, got "
		 "\"tls://192.0.2.1\""},
		{HEAD "upstream: {resolvers: [\"tls://dns.test#dns.test\"]}\n",
		 "policy.yaml:3:24: upstream.resolvers[0]: expected tls://address#name or tls://address:port#name, got "
		 "\"tls://dns.test#dns.test\""},
		{HEAD "upstream: {resolvers: [\"tls://192.0.2.1#192.0.2.1\"]}\n",
		 "policy.yaml:3:24: upstream.resolvers[0]: expected tls://address#name or tls://address:port#name, got "
		 "\"tls://192.0.2.1#192.0.2.1\""},
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		expect_error(list[i].yaml, list[i].error);
}

/* Loads as a program that can't speak TLS with a resolver. */
static void load_as_proxy(struct fixture *f, const char *yaml)
{
	char path[128];
	struct policy_readers readers = {.refuses_tls_resolvers = true};
	fixture_write(f, "policy.yaml", slice_str(yaml));
	fixture_path(f, "policy.yaml", path);
	f->policy = policy_load(path, &f->arena, f->now, &readers, f->errs);
}

static void who_cannot_ask_over_tls_says_so(void **state)
{
	(void)state;
	static const char *const error =
		"policy.yaml:3:35: upstream.resolvers[1]: only cage-dns asks over TLS; for the proxy the policy needs "
		"bound: true, and not dns.mode: synthetic";
	struct fixture f = fixture_new();
	load_as_proxy(&f, HEAD "upstream: {resolvers: [192.0.2.1, \"tls://192.0.2.1#d.test\"]}\n");
	fixture_expect_error(&f, error);
	load_as_proxy(&f, HEAD "upstream: {resolvers: [192.0.2.1, \"tls://192.0.2.1#d.test\"], bound: true}\n"
			       "dns: {mode: synthetic}\n");
	fixture_expect_error(&f, error);
	load_as_proxy(&f, HEAD "upstream: {resolvers: [192.0.2.1, \"tls://192.0.2.1#d.test\"], bound: true}\n");
	assert_non_null(f.policy);
	load_as_proxy(&f, HEAD "upstream: {resolvers: [192.0.2.1]}\n");
	assert_non_null(f.policy);
	fixture_free(&f);
}

/* ---- names ---- */

static struct policy_verdict ask(const struct fixture *f, const char *name)
{
	struct host host = {.kind = HOST_NAME, .text = slice_str(name)};
	return policy_match_name(f->policy, &host, f->now);
}

static void t14_only_names_that_some_rule_could_allow(void **state)
{
	(void)state;
	struct fixture f =
		fixture_good(HEAD "rules:\n"
				  "  - {id: exact, hosts: [a.test, 192.0.2.7], ports: [8443], paths: [/x]}\n"
				  "  - {id: wild, hosts: ['*.w.test']}\n"
				  "  - {id: tun, action: tunnel, hosts: [t.test], ports: [22]}\n"
				  "  - {id: old, hosts: [old.test], expires: 2020-01-01T00:00:00Z}\n"
				  "  - {id: no, action: deny, hosts: [no.w.test, gone.test]}\n"
				  "  - {id: no-path, action: deny, hosts: [a.test], paths: [/y]}\n"
				  "  - {id: no-port, action: deny, hosts: [p.w.test], ports: [443]}\n"
				  "  - {id: other-port, action: deny, hosts: [q.w.test], ports: [80]}\n"
				  "  - {id: no-tun, action: deny, hosts: [u.test], paths: [/z]}\n"
				  "  - {id: tun-u, action: tunnel, hosts: [u.test], ports: [22]}\n"
				  "  - {id: no-old, action: deny, hosts: [b.w.test], expires: 2020-01-01T00:00:00Z}\n");
	expect_verdict(ask(&f, "a.test"), REASON_NONE, "exact");
	expect_verdict(ask(&f, "x.y.w.test"), REASON_NONE, "wild");
	expect_verdict(ask(&f, "b.w.test"), REASON_NONE, "wild");
	expect_verdict(ask(&f, "q.w.test"), REASON_NONE, "wild");
	expect_verdict(ask(&f, "t.test"), REASON_NONE, "tun");
	expect_verdict(ask(&f, "w.test"), REASON_HOST_NOT_ALLOWED, NULL);
	expect_verdict(ask(&f, "other.test"), REASON_HOST_NOT_ALLOWED, NULL);
	expect_verdict(ask(&f, ""), REASON_HOST_NOT_ALLOWED, NULL);
	expect_verdict(ask(&f, "old.test"), REASON_HOST_NOT_ALLOWED, NULL);
	expect_verdict(ask(&f, "192.0.2.7"), REASON_HOST_NOT_ALLOWED, NULL);
	expect_verdict(ask(&f, "no.w.test"), REASON_RULE_DENIED, "no");
	expect_verdict(ask(&f, "gone.test"), REASON_RULE_DENIED, "no");
	expect_verdict(ask(&f, "p.w.test"), REASON_RULE_DENIED, "no-port");
	expect_verdict(ask(&f, "u.test"), REASON_RULE_DENIED, "no-tun");
	assert_true(ask(&f, "a.test").match.is_listed);
	assert_false(ask(&f, "x.y.w.test").match.is_listed);
	assert_false(ask(&f, "p.w.test").observe);
	fixture_free(&f);
}

static void how_a_rule_fits(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules:\n"
					     "  - {id: a, hosts: [x.a.b.test, '*.a.b.test', '*.b.test']}\n"
					     "  - {id: b, hosts: ['*.test'], ports: [80]}\n");
	struct host_match m = ask(&f, "x.a.b.test").match;
	assert_true(m.is_listed);
	assert_true(slice_eq(m.wildcard, SLICE("b.test")));
	m = ask(&f, "y.a.b.test").match;
	assert_false(m.is_listed);
	assert_true(slice_eq(m.wildcard, SLICE("b.test")));
	m = ask(&f, "y.test").match;
	assert_true(slice_eq(m.wildcard, SLICE("test")));
	fixture_free(&f);
}

/* A rule that allows the name on another port counts, also when a more specific one is denied altogether. */
static void one_open_port_is_enough(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules:\n"
					     "  - {id: one, hosts: [a.test], ports: [443, 8443]}\n"
					     "  - {id: two, hosts: ['*.test'], ports: [80]}\n"
					     "  - {id: no, action: deny, hosts: [a.test], ports: [443, 8443]}\n"
					     "  - {id: no-b, action: deny, hosts: [b.test], ports: [80]}\n");
	expect_verdict(ask(&f, "a.test"), REASON_NONE, "two");
	assert_false(ask(&f, "a.test").match.is_listed);
	expect_verdict(ask(&f, "b.test"), REASON_RULE_DENIED, "no-b");
	fixture_free(&f);
}

static void observed_refusals_of_names(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "mode: observe\n"
					     "rules:\n"
					     "  - {id: a, hosts: [a.test, b.test, c.test]}\n"
					     "  - {id: no-b, action: deny, hosts: [b.test]}\n"
					     "  - {id: no-c, action: deny, hosts: [c.test, d.test], mode: enforce}\n");
	struct policy_verdict v = ask(&f, "other.test");
	expect_verdict(v, REASON_HOST_NOT_ALLOWED, NULL);
	assert_true(v.observe);
	v = ask(&f, "b.test");
	expect_verdict(v, REASON_RULE_DENIED, "no-b");
	assert_true(v.observe);
	assert_non_null(v.applies);
	v = ask(&f, "c.test");
	expect_verdict(v, REASON_RULE_DENIED, "no-c");
	assert_false(v.observe);
	v = ask(&f, "d.test");
	expect_verdict(v, REASON_RULE_DENIED, "no-c");
	assert_false(v.observe);
	fixture_free(&f);
}

/* A deny rule that observes opens nothing that is refused without it. */
static void an_observed_deny_opens_no_name(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules: [{id: no, action: deny, hosts: [x.test], mode: observe}]\n");
	struct policy_verdict v = ask(&f, "x.test");
	expect_verdict(v, REASON_HOST_NOT_ALLOWED, NULL);
	assert_false(v.observe);
	fixture_free(&f);
}

static void tests_of_names(void **state)
{
	(void)state;
#define RULES "rules: [{id: a, hosts: [a.test], ports: [80]}]\n"
	expect_good(HEAD RULES "tests: [{dns: A.test, expect: allow, rule: a}, {dns: b.test, expect: deny}]\n");
	expect_error(HEAD RULES "tests: [{dns: b.test, expect: allow}]\n",
		     "policy.yaml:4:9: tests[0]: the test failed: expected allow, got deny (host.not_allowed)");
	expect_error(HEAD RULES "tests: [{dns: a.test, expect: deny}]\n",
		     "policy.yaml:4:9: tests[0]: the test failed: expected deny, got allow by rule \"a\"");
	expect_error(HEAD RULES "tests: [{dns: a.test, request: GET https://a.test/, expect: deny}]\n",
		     "policy.yaml:4:9: tests[0]: expected request or dns, got both");
	expect_error(HEAD RULES "tests: [{expect: deny}]\n",
		     "policy.yaml:4:9: tests[0]: missing key \"request\" or \"dns\"");
	expect_error(HEAD RULES "tests: [{dns: 192.0.2.1, expect: deny}]\n",
		     "policy.yaml:4:15: tests[0].dns: expected a name: it is an address, got \"192.0.2.1\"");
	expect_error(HEAD RULES "tests: [{dns: 'a b', expect: deny}]\n",
		     "policy.yaml:4:15: tests[0].dns: expected a name: the host has a byte that no host name has, got "
		     "\"a b\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_is_without_a_word),
		cmocka_unit_test(all_keys),
		cmocka_unit_test(a_pool_of_synthetic_addresses),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(who_cannot_ask_over_tls_says_so),
		cmocka_unit_test(t14_only_names_that_some_rule_could_allow),
		cmocka_unit_test(how_a_rule_fits),
		cmocka_unit_test(one_open_port_is_enough),
		cmocka_unit_test(observed_refusals_of_names),
		cmocka_unit_test(an_observed_deny_opens_no_name),
		cmocka_unit_test(tests_of_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
