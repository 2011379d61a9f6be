/* Every kind of mistake in a policy, with the exact place and words of its error. */
#include "tests/unit/policy/fixture.h"

struct mistake {
	const char *yaml, *error;
};

#define RULE HEAD "rules:\n  - id: a\n    hosts: [x.test]\n" /* what follows starts in line 6 */

static void expect_errors(const struct mistake *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		expect_error(list[i].yaml, list[i].error);
}

#define EXPECT_ERRORS(list) expect_errors(list, sizeof(list) / sizeof((list)[0]))

static void yaml_itself(void **state)
{
	(void)state;
	static const struct mistake list[] = {
		{"", "policy.yaml:0:0: the file is empty"},
		{"# nothing\n", "policy.yaml:0:0: the file is empty"},
		{"- a\n", "policy.yaml:1:1: expected a mapping, got a list"},
		{"text\n", "policy.yaml:1:1: expected a mapping, got \"text\""},
		{HEAD "rules: [\n", "policy.yaml:4:1: not YAML: while parsing a flow node, did not find expected node "
				    "content"},
		{HEAD "mode: &m enforce\n", "policy.yaml:3:7: anchors (&name) are not allowed here"},
		{HEAD "mode: !!str enforce\n", "policy.yaml:3:7: tags (!name) are not allowed here"},
		{HEAD "mode: *m\n", "policy.yaml:3:7: aliases (*name) are not allowed here; put text that "
				    "starts with a star in quotes"},
		{"%TAG !e! tag:e.test:\n---\n" HEAD, "policy.yaml:1:1: tag directives are not allowed here"},
		{HEAD "---\n" HEAD, "policy.yaml:3:1: a policy is one document; here a second one starts"},
		{HEAD "name: u\n", "policy.yaml:3:1: name: the key is there twice"},
		{HEAD "? [a]\n: b\n", "policy.yaml:3:3: a key must be plain text"},
		{HEAD "? {a: b}\n: b\n", "policy.yaml:3:3: a key must be plain text"},
		{HEAD "mode: \"\\x00enforce\"\n",
		 "policy.yaml:3:7: control characters are not allowed here, got \"\\x00enforce\""},
		{HEAD "mode: |\n  enforce\n",
		 "policy.yaml:3:7: control characters are not allowed here, got \"enforce\\x0a\""},
		{HEAD "mode: \x1b[0m\n", "policy.yaml:3:7: control byte \\x1b in the file"},
		{HEAD "mode: \x7f\n", "policy.yaml:3:7: control byte \\x7f in the file"},
		{HEAD "mode: \xff\n", "policy.yaml:3:7: not UTF-8 text: invalid leading UTF-8 octet"},
		{HEAD "rules:\n\t- id: a\n",
		 "policy.yaml:4:1: not YAML: while scanning for the next token, found character that cannot start any "
		 "token; the line is indented with a tab: use spaces"},
		{RULE "  - {id: b, hosts: [*.x.test]}\n",
		 "policy.yaml:6:22: not YAML: while scanning an alias, did not find expected alphabetic or numeric "
		 "character; put text that starts with a star in quotes: \"*.example.com\""},
	};
	EXPECT_ERRORS(list);
}

static void t01_nul_in_the_file(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	fixture_write(&f, "policy.yaml", SLICE(HEAD "rules:\n  - {id: a, hosts: [x.test\0.evil.test]}\n"));
	assert_null(fixture_load_file(&f));
	fixture_expect_error(&f, "policy.yaml:4:27: control byte \\x00 in the file");
	fixture_free(&f);
}

static void top_level(void **state)
{
	(void)state;
	static const struct mistake list[] = {
		{"version: 2\nname: t\n", "policy.yaml:1:10: version: expected 1, got \"2\""},
		{"version: [1]\nname: t\n", "policy.yaml:1:10: version: expected 1, got a list"},
		{"name: t\n", "policy.yaml:1:1: missing key \"version\""},
		{"version: 1\n", "policy.yaml:1:1: missing key \"name\""},
		{"version: 1\nname:\n",
		 "policy.yaml:2:6: name: expected 1 to 64 of a-z, 0-9, '.', '_' or '-', got nothing"},
		{"version: 1\nname: Coder\n",
		 "policy.yaml:2:7: name: expected 1 to 64 of a-z, 0-9, '.', '_' or '-', got \"Coder\""},
		{"version: 1\nname: a b\n",
		 "policy.yaml:2:7: name: expected 1 to 64 of a-z, 0-9, '.', '_' or '-', got \"a b\""},
		{HEAD "mode: enforced\n",
		 "policy.yaml:3:7: mode: expected enforce or observe, got \"enforced\"; did you mean \"enforce\"?"},
		{HEAD "mode: off\n", "policy.yaml:3:7: mode: expected enforce or observe, got \"off\""},
		{HEAD "mode: {}\n", "policy.yaml:3:7: mode: expected enforce or observe, got a mapping"},
		{HEAD "rulez: []\n", "policy.yaml:3:1: rulez: unknown key; did you mean \"rules\"?"},
		{HEAD "wholly-other: 1\n", "policy.yaml:3:1: wholly-other: unknown key"},
		{HEAD "\"a\\u00fc\\\"\": 1\n", "policy.yaml:3:1: [\"a\\xc3\\xbc\\\"\"]: unknown key"},
		{HEAD "rules: []\n", "policy.yaml:3:8: rules: expected a list of rules, got an empty list"},
		{HEAD "rules:\n", "policy.yaml:3:7: rules: expected a list of rules, got nothing"},
		{HEAD "rules: {a: b}\n", "policy.yaml:3:8: rules: expected a list of rules, got a mapping"},
		{HEAD "tests: []\n", "policy.yaml:3:8: tests: expected a list of tests, got an empty list"},
	};
	EXPECT_ERRORS(list);
}

static void rules(void **state)
{
	(void)state;
	static const struct mistake list[] = {
		{HEAD "rules: [a]\n", "policy.yaml:3:9: rules[0]: expected a mapping, got \"a\""},
		{HEAD "rules: [{id: a}]\n", "policy.yaml:3:9: rules[0]: missing key \"hosts\""},
		{HEAD "rules: [{hosts: [x.test]}]\n", "policy.yaml:3:9: rules[0]: missing key \"id\""},
		{HEAD "rules: [{id: a b, hosts: [x.test]}]\n",
		 "policy.yaml:3:14: rules[0].id: expected 1 to 64 letters, digits, '.', '_' or '-', got \"a b\""},
		{RULE "  - {id: a, hosts: [y.test]}\n",
		 "policy.yaml:6:10: rules[1].id: the id \"a\" is taken by another rule"},
		{RULE "    action: permit\n",
		 "policy.yaml:6:13: rules[0].action: expected allow, deny or tunnel, got \"permit\""},
		{RULE "    methdos: [GET]\n",
		 "policy.yaml:6:5: rules[0].methdos: unknown key; did you mean \"methods\"?"},
		{RULE "    secrets: [k]\n", "policy.yaml:6:15: rules[0].secrets[0]: no secret has the id \"k\""},
		{RULE "    ports: []\n",
		 "policy.yaml:6:12: rules[0].ports: expected a list of ports, got an empty list"},
		{RULE "    ports: 443\n", "policy.yaml:6:12: rules[0].ports: expected a list of ports, got \"443\""},
		{RULE "    ports: [443, 99999]\n",
		 "policy.yaml:6:18: rules[0].ports[1]: expected a port from 1 to 65535, got \"99999\""},
		{RULE "    ports: [0]\n",
		 "policy.yaml:6:13: rules[0].ports[0]: expected a port from 1 to 65535, got \"0\""},
		{RULE "    ports: [0443]\n",
		 "policy.yaml:6:13: rules[0].ports[0]: expected a port from 1 to 65535, got \"0443\""},
		{RULE "    ports: [-1]\n",
		 "policy.yaml:6:13: rules[0].ports[0]: expected a port from 1 to 65535, got \"-1\""},
		{RULE "    ports: [[443]]\n",
		 "policy.yaml:6:13: rules[0].ports[0]: expected a port from 1 to 65535, got a list"},
		{RULE "    methods: []\n",
		 "policy.yaml:6:14: rules[0].methods: expected a list of methods, got an empty list"},
		{RULE "    methods: [get]\n",
		 "policy.yaml:6:15: rules[0].methods[0]: expected a method in upper case, such as GET, got \"get\""},
		{RULE "    methods: [\"G T\"]\n",
		 "policy.yaml:6:15: rules[0].methods[0]: expected a method in upper case, such as GET, got \"G T\""},
		{RULE "    methods: [CONNECT]\n",
		 "policy.yaml:6:15: rules[0].methods[0]: CONNECT can't be listed: hosts and ports decide on "
		 "connections"},
		{RULE "    addresses: []\n",
		 "policy.yaml:6:16: rules[0].addresses: expected a list of address ranges, got an empty list"},
		{RULE "    addresses: [169.254.0.0/16]\n",
		 "policy.yaml:6:17: rules[0].addresses[0]: \"169.254.0.0/16\" holds a cloud metadata address; those "
		 "can't be allowed"},
		{RULE "    addresses: [\"fd00:ec2::254\"]\n",
		 "policy.yaml:6:17: rules[0].addresses[0]: \"fd00:ec2::254\" holds a cloud metadata address; those "
		 "can't be allowed"},
		{RULE "    expires: tomorrow\n",
		 "policy.yaml:6:14: rules[0].expires: expected a time in UTC such as 2026-12-31T00:00:00Z, got "
		 "\"tomorrow\""},
		{RULE "    expires: 2026-02-30T00:00:00Z\n",
		 "policy.yaml:6:14: rules[0].expires: expected a time in UTC such as 2026-12-31T00:00:00Z, got "
		 "\"2026-02-30T00:00:00Z\""},
		{RULE "    mode: watch\n",
		 "policy.yaml:6:11: rules[0].mode: expected enforce or observe, got \"watch\""},
		{RULE "    limits: {}\n", "policy.yaml:6:13: rules[0].limits: expected limits, got an empty mapping"},
		{RULE "    limits: [body]\n", "policy.yaml:6:13: rules[0].limits: expected a mapping, got a list"},
		{RULE "    limits: {burst: 1}\n", "policy.yaml:6:14: rules[0].limits.burst: a burst needs a rate"},
		{RULE "    limits: {rate: 1/s, burst: -1}\n",
		 "policy.yaml:6:32: rules[0].limits.burst: expected an integer from 0 to 1000000, got \"-1\""},
		{RULE "    limits: {burst: 1000001, rate: 1/s}\n",
		 "policy.yaml:6:21: rules[0].limits.burst: expected an integer from 0 to 1000000, got \"1000001\""},
		{RULE "    limits: {rate: [1/s]}\n",
		 "policy.yaml:6:20: rules[0].limits.rate: expected a rate of 1 to 1000000 such as 10/s, 5/m, 100/h or "
		 "1/d, got a list"},
		{RULE "    limits: {out: 1025GiB/d}\n",
		 "policy.yaml:6:19: rules[0].limits.out: expected at most 1099511627776 bytes, got \"1025GiB/d\""},
		{RULE "    limits: {out: {}}\n",
		 "policy.yaml:6:19: rules[0].limits.out: expected a size in a period such as 500MiB/h or 1GiB/d, got a "
		 "mapping"},
		{RULE "    limits: {boddy: 1}\n",
		 "policy.yaml:6:14: rules[0].limits.boddy: unknown key; did you mean \"body\"?"},
		{RULE "    limits: {hold: 64GiB}\n",
		 "policy.yaml:6:20: rules[0].limits.hold: expected at most 67108864 bytes, got \"64GiB\""},
		{RULE "    action: tunnel\n    methods: [GET]\n",
		 "policy.yaml:7:5: rules[0].methods: nobody looks into a tunnel: it can't list methods"},
		{RULE "    action: tunnel\n    paths: [/a]\n",
		 "policy.yaml:7:5: rules[0].paths: nobody looks into a tunnel: it can't list paths"},
		{RULE "    limits: {body: 1}\n    action: tunnel\n",
		 "policy.yaml:6:5: rules[0].limits: nobody looks into a tunnel: it can't have limits"},
		{RULE "    action: deny\n    addresses: [10.0.0.0/8]\n",
		 "policy.yaml:7:5: rules[0].addresses: a deny rule can't list addresses"},
		{RULE "    action: deny\n    limits: {hold: 1}\n",
		 "policy.yaml:7:5: rules[0].limits: a deny rule can't have limits"},
	};
	EXPECT_ERRORS(list);
}

static void hosts(void **state)
{
	(void)state;
	static const struct {
		const char *host, *error;
	} list[] = {
		{"\"\"", "expected a host, got \"\""},
		{"[a]", "expected a host, got a list"},
		{"'*'", "\"*\" alone is not allowed: name the domains, such as \"*.example.com\""},
		{"'*.'", "the host is empty, got \"\""},
		{"'**.x.test'", "a star may only be the whole first label, \"*.example.com\", got \"**.x.test\""},
		{"'*x.test'", "a star may only be the whole first label, \"*.example.com\", got \"*x.test\""},
		{"a.*.test", "a star may only be the whole first label, \"*.example.com\", got \"a.*.test\""},
		{"'*.*.test'", "a star may only be the whole first label, \"*.example.com\", got \"*.*.test\""},
		{"'*.127.0.0.1'", "an address has no subdomains, got \"*.127.0.0.1\""},
		{"'*.::1'", "expected a host without scheme, port, path or brackets, got \"::1\""},
		{"b\xc3\xbc"
		 "cher.test",
		 "write the name in its ASCII form (xn--...), got \"b\\xc3\\xbccher.test\""},
		{"https://x.test/", "expected a host without scheme, port, path or brackets, got \"https://x.test/\""},
		{"x.test:443", "expected a host without scheme, port, path or brackets, got \"x.test:443\""},
		{"'[::1]'", "expected a host without scheme, port, path or brackets, got \"[::1]\""},
		{"'0:0:0:0:0:0:0:1'", "expected the address in its canonical form, \"::1\""},
		{"x..test", "the host has an empty label, got \"x..test\""},
		{"x.test..", "the host has an empty label, got \"x.test..\""},
		{"x y", "the host has a byte that no host name has, got \"x y\""},
		{"127.1", "the host is a number that is not a plain dotted IPv4 address, got \"127.1\""},
		{"010.0.0.1", "the host is a number that is not a plain dotted IPv4 address, got \"010.0.0.1\""},
		{"ok.test, OK.test.", NULL},
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		char yaml[256], error[256];
		snprintf(yaml, sizeof(yaml), HEAD "rules:\n  - {id: a, hosts: [%s]}\n", list[i].host);
		snprintf(error, sizeof(error), "policy.yaml:4:21: rules[0].hosts[0]: %s",
			 list[i].error ? list[i].error : "");
		expect_error(yaml, list[i].error ? error
						 : "policy.yaml:4:30: rules[0].hosts[1]: \"ok.test\" is listed twice");
	}
}

static void paths(void **state)
{
	(void)state;
	static const struct {
		const char *path, *error;
	} list[] = {
		{"v1", "expected a path that starts with '/', of at most 1024 bytes, got \"v1\""},
		{"\"*\"", "expected a path that starts with '/', of at most 1024 bytes, got \"*\""},
		{"/a?b", "a path pattern has no query, got \"/a?b\""},
		{"\"/a#b\"", "the target has a fragment, got \"/a#b\""},
		{"/a b", "the target has a byte that no target may have, got \"/a b\""},
		{"'/a\\b'", "the path has a backslash, got \"/a\\\\b\""},
		{"/%", "the path has a broken percent escape, got \"/%\""},
		{"/%00", "the path has an encoded NUL, got \"/%00\""},
		{"/../a", "the path climbs above the root, got \"/../a\""},
		{"/a**", "two stars must be a whole segment: /**, got \"/a**\""},
		{"/***/a", "two stars must be a whole segment: /**, got \"/***/a\""},
		{"{}", "expected a path pattern, got a mapping"},
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		char yaml[256], error[256];
		snprintf(yaml, sizeof(yaml), RULE "    paths: [%s]\n", list[i].path);
		snprintf(error, sizeof(error), "policy.yaml:6:13: rules[0].paths[0]: %s", list[i].error);
		expect_error(yaml, error);
	}
}

static void upstream(void **state)
{
	(void)state;
	static const struct mistake list[] = {
		{HEAD "upstream: [a]\n", "policy.yaml:3:11: upstream: expected a mapping, got a list"},
		{HEAD "upstream: {resolver: [system]}\n",
		 "policy.yaml:3:12: upstream.resolver: unknown key; did you mean \"resolvers\"?"},
		{HEAD "upstream: {resolvers: []}\n",
		 "policy.yaml:3:23: upstream.resolvers: expected a list of resolvers, got an empty list"},
		{HEAD "upstream: {resolvers: [dns.test]}\n",
		 "policy.yaml:3:24: upstream.resolvers[0]: expected system, an address, address:port or "
		 "tls://address#name, got \"dns.test\""},
		{HEAD "upstream: {resolvers: [system, 1.1.1.1]}\n",
		 "policy.yaml:3:23: upstream.resolvers: system can't stand beside addresses: which would be asked "
		 "first?"},
		{HEAD "upstream: {resolve: {}}\n", "policy.yaml:3:21: upstream.resolve: expected a mapping of host "
						   "names to addresses, got an empty mapping"},
		{HEAD "upstream: {resolve: [a]}\n", "policy.yaml:3:21: upstream.resolve: expected a mapping of host "
						    "names to addresses, got a list"},
		{HEAD "upstream: {resolve: {x.test: y.test}}\n",
		 "policy.yaml:3:30: upstream.resolve[\"x.test\"]: expected an address or address:port, got "
		 "\"y.test\""},
		{HEAD "upstream: {resolve: {x.test: \"127.0.0.1:0\"}}\n",
		 "policy.yaml:3:30: upstream.resolve[\"x.test\"]: expected an address or address:port, got "
		 "\"127.0.0.1:0\""},
		{HEAD "upstream: {resolve: {x.test: 169.254.169.254}}\n",
		 "policy.yaml:3:30: upstream.resolve[\"x.test\"]: \"169.254.169.254\" is a cloud metadata address; "
		 "those can't be reached"},
		{HEAD "upstream: {resolve: {x.test: \"[::ffff:169.254.169.254]:80\"}}\n",
		 "policy.yaml:3:30: upstream.resolve[\"x.test\"]: \"[::ffff:169.254.169.254]:80\" is a cloud metadata "
		 "address; those can't be reached"},
		{HEAD "upstream: {resolve: {\"*.x.test\": 127.0.0.1}}\n",
		 "policy.yaml:3:22: upstream.resolve[\"*.x.test\"]: a wildcard can't be pinned"},
		{HEAD "upstream:\n  resolve: {x.test: 127.0.0.1, X.test: 127.0.0.1}\n",
		 "policy.yaml:4:32: upstream.resolve[\"X.test\"]: \"x.test\" is pinned twice"},
		{HEAD "upstream: {trust: []}\n", "policy.yaml:3:19: upstream.trust: expected a list of system and "
						 "certificate files, got an empty list"},
		{HEAD "upstream: {trust: [absent.pem]}\n",
		 "policy.yaml:3:20: upstream.trust[0]: can't use \"absent.pem\": No such file or directory"},
		{HEAD "upstream: {trust: [policy.yaml]}\n",
		 "policy.yaml:3:20: upstream.trust[0]: can't use \"policy.yaml\": it holds no PEM certificate"},
		{HEAD "upstream: {trust: [.]}\n",
		 "policy.yaml:3:20: upstream.trust[0]: can't use \".\": it is not a regular file"},
	};
	EXPECT_ERRORS(list);
}

static void own_tests(void **state)
{
	(void)state;
	static const struct mistake list[] = {
		{RULE "tests: [{request: GET https://x.test/}]\n", "policy.yaml:6:9: tests[0]: missing key \"expect\""},
		{RULE "tests: [{request: GET https://x.test/, expect: yes}]\n",
		 "policy.yaml:6:48: tests[0].expect: expected allow or deny, got \"yes\""},
		{RULE "tests: [{request: GET, expect: deny}]\n",
		 "policy.yaml:6:19: tests[0].request: expected a method and a URL: the scheme is neither http nor "
		 "https, got \"GET\""},
		{RULE "tests: [{request: get https://x.test/, expect: deny}]\n",
		 "policy.yaml:6:19: tests[0].request: expected a method in upper case, such as GET, got \"get "
		 "https://x.test/\""},
		{RULE "tests: [{request: CONNECT x.test, expect: deny}]\n",
		 "policy.yaml:6:19: tests[0].request: expected a method and a URL: the port is missing, got "
		 "\"CONNECT x.test\""},
		{RULE "tests: [{request: GET https://x.test/, expect: allow, rule: A}]\n",
		 "policy.yaml:6:61: tests[0].rule: there is no rule \"A\""},
		{RULE "tests: [{request: GET https://x.test/, expect: deny}]\n",
		 "policy.yaml:6:9: tests[0]: the test failed: expected deny, got allow by rule \"a\""},
		{RULE "tests: [{request: GET http://x.test/, expect: allow}]\n",
		 "policy.yaml:6:9: tests[0]: the test failed: expected allow, got deny (port.not_allowed)"},
		{RULE "tests: [{request: GET https://y.test/, expect: deny, rule: a}]\n",
		 "policy.yaml:6:9: tests[0]: the test failed: expected a decision by rule \"a\", got one by no rule"},
		{RULE "    expires: 2027-01-01T00:00:00Z\ntests: [{request: GET https://x.test/, expect: allow}]\n",
		 "policy.yaml:7:9: tests[0]: the test failed: expected allow, got deny (host.not_allowed)"},
	};
	EXPECT_ERRORS(list);
}

static void near_rule_id(void **state)
{
	(void)state;
	expect_error(HEAD "rules: [{id: anthropic, hosts: [x.test]}]\n"
			  "tests: [{request: GET https://x.test/, expect: allow, rule: antropic}]\n",
		     "policy.yaml:4:61: tests[0].rule: there is no rule \"antropic\"; did you mean \"anthropic\"?");
}

static void all_at_once_in_order(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	assert_null(fixture_load(&f, HEAD "mode: of\nrules:\n  - id: a\n    hosts: ['*']\n    ports: [0, 70000]\n"
					  "upstream: {trust: []}\ntests: [{request: GET x, exect: deny}]\nextra: 1\n"));
	static const char *const expected[] = {
		"policy.yaml:3:7: mode: expected enforce or observe, got \"of\"",
		"policy.yaml:6:13: rules[0].hosts[0]: \"*\" alone is not allowed: name the domains, such as "
		"\"*.example.com\"",
		"policy.yaml:7:13: rules[0].ports[0]: expected a port from 1 to 65535, got \"0\"",
		"policy.yaml:7:16: rules[0].ports[1]: expected a port from 1 to 65535, got \"70000\"",
		"policy.yaml:8:19: upstream.trust: expected a list of system and certificate files, got an empty "
		"list",
		"policy.yaml:9:9: tests[0]: missing key \"expect\"",
		"policy.yaml:9:19: tests[0].request: expected a method and a URL: the scheme is neither http nor "
		"https, got \"GET x\"",
		"policy.yaml:9:26: tests[0].exect: unknown key; did you mean \"expect\"?",
		"policy.yaml:10:1: extra: unknown key",
	};
	assert_int_equal(f.errs->n, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < f.errs->n; i++)
		assert_string_equal(fixture_error(&f, i), expected[i]);
	fixture_free(&f);
}

static void a_long_value_is_cut(void **state)
{
	(void)state;
	char yaml[256], error[256], value[101];
	memset(value, 'x', 100);
	value[100] = 0;
	snprintf(yaml, sizeof(yaml), HEAD "mode: %s\n", value);
	snprintf(error, sizeof(error), "policy.yaml:3:7: mode: expected enforce or observe, got \"%.64s...\"", value);
	expect_error(yaml, error);
}

static void printing(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	int fds[2];
	char out[512] = "", path[160];
	assert_null(fixture_load(&f, HEAD "mode: of\n"));
	f.errs->more = 7;
	assert_int_equal(pipe(fds), 0);
	policy_errors_print(f.errs, fds[1]);
	close(fds[1]);
	assert_true(read(fds[0], out, sizeof(out) - 1) > 0);
	close(fds[0]);
	snprintf(path, sizeof(path), "%s/policy.yaml:3:7: mode: expected enforce or observe, got \"of\"\nand 7 more\n",
		 f.dir);
	assert_string_equal(out, path);
	fixture_free(&f);
}

static void no_such_file(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	assert_null(fixture_load_file(&f));
	fixture_expect_error(&f, "policy.yaml:0:0: can't read the policy: No such file or directory");
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(yaml_itself),
		cmocka_unit_test(t01_nul_in_the_file),
		cmocka_unit_test(top_level),
		cmocka_unit_test(rules),
		cmocka_unit_test(hosts),
		cmocka_unit_test(paths),
		cmocka_unit_test(upstream),
		cmocka_unit_test(own_tests),
		cmocka_unit_test(near_rule_id),
		cmocka_unit_test(all_at_once_in_order),
		cmocka_unit_test(a_long_value_is_cut),
		cmocka_unit_test(printing),
		cmocka_unit_test(no_such_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
