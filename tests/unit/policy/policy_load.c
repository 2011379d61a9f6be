/* Good policies: what of the file ends up in the compiled policy; includes, trust files, and where it all lives. */
#include "tests/unit/policy/fixture.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/mman.h>

static void assert_slice(struct slice s, const char *text)
{
	assert_int_equal(s.len, strlen(text));
	assert_memory_equal(s.ptr, text, s.len);
}

static void smallest(void **state)
{
	(void)state;
	struct fixture f = fixture_good("version: 1\nname: coder.v2_x-1\n");
	const struct policy *p = f.policy;
	assert_slice(p->name, "coder.v2_x-1");
	assert_int_equal(p->mode, POLICY_ENFORCE);
	assert_int_equal(p->n_rules, 0);
	assert_int_equal(p->n_pins, 0);
	assert_int_equal(p->n_resolvers, 0);
	assert_int_equal(p->n_listed_ports, 0);
	assert_true(p->system_resolvers);
	assert_true(p->trust.system);
	assert_int_equal(p->trust.n_pems, 0);
	fixture_free(&f);
}

static void defaults_of_a_rule(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules: [{id: a, hosts: [X.test.]}]\n");
	const struct policy_rule *r = &f.policy->rules[0];
	assert_slice(r->id, "a");
	assert_int_equal(r->action, RULE_ALLOW);
	assert_int_equal(r->mode, POLICY_ENFORCE);
	assert_int_equal(r->n_hosts, 1);
	assert_slice(r->hosts[0], "x.test");
	assert_int_equal(r->n_ports, 1);
	assert_int_equal(r->ports[0], 443);
	assert_int_equal(r->n_methods, 0);
	assert_int_equal(r->n_paths, 0);
	assert_int_equal(r->n_addresses, 0);
	assert_int_equal(r->expires, 0);
	assert_int_equal(r->limit_body, LIMIT_BODY_DEFAULT);
	assert_int_equal(r->limit_hold, LIMIT_HOLD_DEFAULT);
	assert_int_equal(r->limit_rate.period_us, 0);
	assert_int_equal(r->limit_out.period_us, 0);
	fixture_free(&f);
}

static void everything(void **state)
{
	(void)state;
	struct fixture f =
		fixture_good(HEAD "rules:\n"
				  "  - id: Full\n"
				  "    action: allow\n"
				  "    hosts: [x.test, '*.Y.test', 192.0.2.7, '2001:db8::1']\n"
				  "    ports: [8443, 80, 443]\n"
				  "    methods: [GET, M-SEARCH]\n"
				  "    paths: [/%7ea/./b/**, /c%2fd]\n"
				  "    addresses: [10.4.0.0/16, '::1']\n"
				  "    expires: 2030-01-01T00:00:00Z\n"
				  "    mode: observe\n"
				  "    limits: {body: 3GiB, hold: 64MiB, burst: 7, rate: 5/m, out: 1GiB/d}\n"
				  "  - {id: d, action: deny, hosts: [z.test]}\n"
				  "  - {id: t, action: tunnel, hosts: [z.test], ports: [22]}\n"
				  "mode: enforce\n"
				  "upstream:\n"
				  "  resolvers: [192.0.2.53, '192.0.2.54:5353', '2001:db8::53', '[::1]:53']\n"
				  "  resolve: {X.test: '127.0.0.1:9443', 192.0.2.7: '::1'}\n"
				  "  trust: [system]\n");
	const struct policy *p = f.policy;
	const struct policy_rule *r = &p->rules[0];
	assert_int_equal(r->n_hosts, 4);
	assert_slice(r->hosts[1], "*.y.test");
	assert_slice(r->hosts[3], "2001:db8::1");
	assert_int_equal(r->n_ports, 3);
	assert_int_equal(r->ports[0], 80);
	assert_int_equal(r->ports[2], 8443);
	assert_slice(r->methods[1], "M-SEARCH");
	assert_slice(r->paths[0], "/~a/b/**");
	assert_slice(r->paths[1], "/c%2Fd");
	assert_slice(r->loose_paths[1], "/c/d");
	assert_int_equal(r->addresses[0].prefix, 16);
	assert_int_equal(r->addresses[1].base.family, ADDR_V6);
	assert_int_equal(r->expires, 1893456000);
	assert_int_equal(r->mode, POLICY_OBSERVE);
	assert_int_equal(r->limit_body, 3ull << 30);
	assert_int_equal(r->limit_hold, MIB(64));
	assert_int_equal(r->limit_rate.count, 5);
	assert_int_equal(r->limit_rate.period_us, 60000000);
	assert_int_equal(r->limit_burst, 7);
	assert_int_equal(r->limit_out.count, 1ull << 30);
	assert_int_equal(r->limit_out.period_us, 86400000000);
	assert_int_equal(p->rules[1].n_ports, 0);
	assert_int_equal(p->rules[1].mode, POLICY_ENFORCE);

	assert_int_equal(p->n_listed_ports, 4);
	assert_true(policy_lists_port(p, 22));
	assert_true(policy_lists_port(p, 8443));
	assert_false(policy_lists_port(p, 8080));

	assert_false(p->system_resolvers);
	assert_int_equal(p->n_resolvers, 4);
	assert_int_equal(p->resolvers[0].port, 53);
	assert_int_equal(p->resolvers[1].port, 5353);
	assert_int_equal(p->resolvers[2].addr.family, ADDR_V6);

	const struct host x = {.kind = HOST_NAME, .text = SLICE("x.test")}, y = {.text = SLICE("y.test")};
	const struct policy_pin *pin = policy_pin_for(p, &x);
	assert_non_null(pin);
	assert_int_equal(pin->port, 9443);
	assert_int_equal(pin->addr.bytes[0], 127);
	assert_null(policy_pin_for(p, &y));
	assert_int_equal(p->n_pins, 2);
	assert_slice(p->pin_list[1].host, "192.0.2.7");
	assert_int_equal(p->pin_list[1].port, 0);
	fixture_free(&f);
}

static void a_rule_takes_the_mode_of_the_policy(void **state)
{
	(void)state;
	/* `mode` stands behind the rules on purpose */
	struct fixture f =
		fixture_good(HEAD "rules: [{id: a, hosts: [a.test]}, {id: b, hosts: [b.test], mode: enforce}]\n"
				  "mode: observe\n");
	assert_int_equal(f.policy->rules[0].mode, POLICY_OBSERVE);
	assert_int_equal(f.policy->rules[1].mode, POLICY_ENFORCE);
	fixture_free(&f);
}

static void sizes(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t bytes; /* UINT64_MAX: refused */
	} list[] = {
		{"0", 0},
		{"4096", 4096},
		{"7B", 7},
		{"7KiB", 7168},
		{"7MiB", 7340032},
		{"2GiB", 2147483648},
		{"9223372036854775807", INT64_MAX},
		{"9223372036854775808", UINT64_MAX},
		{"18446744073709551616", UINT64_MAX},
		{"17179869184GiB", UINT64_MAX},
		{"1.5MiB", UINT64_MAX},
		{"1 MiB", UINT64_MAX},
		{"1MB", UINT64_MAX},
		{"1mib", UINT64_MAX},
		{"-1", UINT64_MAX},
		{"+1", UINT64_MAX},
		{"KiB", UINT64_MAX},
		{"''", UINT64_MAX},
		{"0x10", UINT64_MAX},
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		struct fixture f = fixture_new();
		char yaml[128];
		snprintf(yaml, sizeof(yaml), HEAD "rules: [{id: a, hosts: [a.test], limits: {body: %s}}]\n",
			 list[i].text);
		fixture_load(&f, yaml);
		if (!f.policy != (list[i].bytes == UINT64_MAX))
			fail_msg("%s", list[i].text);
		if (f.policy)
			assert_int_equal(f.policy->rules[0].limit_body, list[i].bytes);
		fixture_free(&f);
	}
}

struct rate_case {
	const char *text;
	uint64_t count, seconds; /* 0: refused */
};

/* Each text as a limit of one rule; rate is that limit of the loaded rule. */
static void check_rates(const char *key, const struct rate_case *list, size_t n, size_t rate)
{
	for (size_t i = 0; i < n; i++) {
		struct fixture f = fixture_new();
		char yaml[128];
		snprintf(yaml, sizeof(yaml), HEAD "rules: [{id: a, hosts: [a.test], limits: {%s: %s}}]\n", key,
			 list[i].text);
		fixture_load(&f, yaml);
		if (!f.policy != (list[i].seconds == 0))
			fail_msg("%s", list[i].text);
		if (f.policy) {
			struct policy_rate got;
			memcpy(&got, (const char *)f.policy->rules + rate, sizeof(got));
			assert_int_equal(got.count, list[i].count);
			assert_int_equal(got.period_us, list[i].seconds * 1000000);
		}
		fixture_free(&f);
	}
}

static void rates(void **state)
{
	(void)state;
	static const struct rate_case rate[] = {
		{"10/s", 10, 1},
		{"5/m", 5, 60},
		{"100/h", 100, 3600},
		{"1/d", 1, 86400},
		{"0/s", 0, 0},
		{"/s", 0, 0},
		{"10", 0, 0},
		{"10/", 0, 0},
		{"10/S", 0, 0},
		{"10/sec", 0, 0},
		{"10 /s", 0, 0},
		{"10/ s", 0, 0},
		{"-1/s", 0, 0},
		{"1.5/s", 0, 0},
		{"1/s/s", 0, 0},
		{"10/w", 0, 0},
		{"1KiB/s", 0, 0},
		{"''", 0, 0},
		{"1000000/s", 1000000, 1},
		{"1000001/s", 0, 0},
		{"18446744073709551617/s", 0, 0},
	};
	static const struct rate_case out[] = {
		{"500MiB/h", 524288000, 3600},
		{"1GiB/d", 1073741824, 86400},
		{"7/s", 7, 1},
		{"7B/m", 7, 60},
		{"1024GiB/s", UINT64_C(1) << 40, 1},
		{"1099511627777/s", 0, 0},
		{"17179869184GiB/s", 0, 0},
		{"0/s", 0, 0},
		{"0MiB/s", 0, 0},
		{"500MiB", 0, 0},
		{"500 MiB/h", 0, 0},
		{"MiB/h", 0, 0},
		{"/h", 0, 0},
		{"1MiB/hour", 0, 0},
	};
	check_rates("rate", rate, sizeof(rate) / sizeof(rate[0]), offsetof(struct policy_rule, limit_rate));
	check_rates("out", out, sizeof(out) / sizeof(out[0]), offsetof(struct policy_rule, limit_out));
}

static void burst_by_default_is_the_rate(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD "rules: [{id: a, hosts: [a.test], limits: {rate: 100/h}},\n"
					     "  {id: b, hosts: [b.test], limits: {burst: 0, rate: 100/h}}]\n");
	assert_int_equal(f.policy->rules[0].limit_burst, 100);
	assert_int_equal(f.policy->rules[1].limit_burst, 0);
	fixture_free(&f);
}

static void sha_of_file_and_includes(void **state)
{
	(void)state;
	static const char policy[] = HEAD "include: [more.yaml]\n", more[] = "rules: [{id: a, hosts: [a.test]}]\n";
	struct fixture f = fixture_new();
	fixture_write(&f, "more.yaml", SLICE(more));
	assert_non_null(fixture_load(&f, policy));

	char both[256], hex[65];
	unsigned char digest[32];
	snprintf(both, sizeof(both), "%s%s", policy, more);
	assert_true(EVP_Digest(both, strlen(both), digest, NULL, EVP_sha256(), NULL));
	for (size_t i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(f.policy->sha, hex);
	fixture_free(&f);
}

static void includes(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	fixture_write(&f, "one.yaml", SLICE("version: 1\nrules:\n  - {id: b, hosts: [b.test]}\n"));
	fixture_write(&f, "two.yaml", SLICE("rules:\n  - {id: c, hosts: [c.test], action: deny}\n"));
	assert_non_null(fixture_load(&f, HEAD "include: [one.yaml, ./two.yaml]\nrules: [{id: a, hosts: [a.test]}]\n"));
	assert_int_equal(f.policy->n_rules, 3);
	assert_slice(f.policy->rules[0].id, "a");
	assert_slice(f.policy->rules[2].id, "c");
	expect_verdict(fixture_ask(&f, "GET https://b.test/"), REASON_NONE, "b");
	const struct policy_file *file = f.policy->files;
	static const char *const names[] = {"/policy.yaml", "/one.yaml", "/./two.yaml"};
	for (size_t i = 0; i < 3; i++, file = file->next) {
		assert_non_null(file);
		assert_true(slice_ends(file->path, slice_str(names[i])));
	}
	assert_null(file);
	fixture_free(&f);
}

static void include_errors(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	fixture_write(&f, "good.yaml", SLICE("rules: [{id: b, hosts: [b.test]}]\n"));
	fixture_write(&f, "nest.yaml", SLICE("rules: [{id: c, hosts: [c.test]}]\ninclude: [good.yaml]\n"));
	fixture_write(&f, "name.yaml", SLICE("rules: [{id: c, hosts: [c.test]}]\nname: x\n"));
	fixture_write(&f, "host.yaml", SLICE("rules:\n  - {id: c, hosts: ['*']}\n"));
	fixture_write(&f, "none.yaml", SLICE("version: 1\n"));
	fixture_write(&f, "clash.yaml", SLICE("rules: [{id: a, hosts: [c.test]}]\n"));
	static const struct {
		const char *include, *error;
	} list[] = {
		{"[]", "policy.yaml:3:10: include: expected a list of file names, got an empty list"},
		{"good.yaml", "policy.yaml:3:10: include: expected a list of file names, got \"good.yaml\""},
		{"[absent.yaml]", "policy.yaml:3:11: include[0]: can't include \"absent.yaml\": No such file or "
				  "directory"},
		{"[good.yaml, ./good.yaml]", "policy.yaml:3:22: include[1]: can't include \"./good.yaml\": it is the "
					     "policy itself or included already"},
		{"[policy.yaml]", "policy.yaml:3:11: include[0]: can't include \"policy.yaml\": it is the policy "
				  "itself or included already"},
		{"[.]", "policy.yaml:3:11: include[0]: can't include \".\": it is not a regular file"},
		{"[nest.yaml]", "nest.yaml:2:1: include: an included file may have only version and rules"},
		{"[name.yaml]", "name.yaml:2:1: name: an included file may have only version and rules"},
		{"[none.yaml]", "none.yaml:1:1: missing key \"rules\""},
		{"[host.yaml]", "host.yaml:2:21: rules[0].hosts[0]: \"*\" alone is not allowed: name the domains, "
				"such as \"*.example.com\""},
		{"[clash.yaml]", "clash.yaml:1:14: rules[0].id: the id \"a\" is taken by another rule"},
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		char yaml[256];
		snprintf(yaml, sizeof(yaml), HEAD "include: %s\nrules: [{id: a, hosts: [a.test]}]\n", list[i].include);
		assert_null(fixture_load(&f, yaml));
		fixture_expect_error(&f, list[i].error);
	}
	fixture_free(&f);
}

/* A certificate that signs itself, as PEM. */
static size_t make_pem(char *out, size_t room)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	BIO *bio = BIO_new(BIO_s_mem());
	assert_true(X509_set_pubkey(cert, key));
	assert_true(ASN1_INTEGER_set(X509_get_serialNumber(cert), 1));
	assert_non_null(X509_gmtime_adj(X509_getm_notBefore(cert), 0));
	assert_non_null(X509_gmtime_adj(X509_getm_notAfter(cert), 3600));
	assert_true(X509_sign(cert, key, EVP_sha256()));
	assert_true(PEM_write_bio_X509(bio, cert));
	int n = BIO_read(bio, out, (int)room);
	assert_true(n > 0 && (size_t)n < room);
	BIO_free(bio);
	X509_free(cert);
	EVP_PKEY_free(key);
	return (size_t)n;
}

static void trust_files(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	char pem[4096] = "# a comment before it\n";
	size_t lead = strlen(pem);
	size_t len = lead + make_pem(pem + lead, sizeof(pem) - lead);
	fixture_write(&f, "ca.pem", slice_of(pem, len));
	assert_non_null(fixture_load(&f, HEAD "upstream: {trust: [ca.pem]}\n"));
	assert_false(f.policy->trust.system);
	assert_int_equal(f.policy->trust.n_pems, 1);
	assert_int_equal(f.policy->trust.pems[0].len, len);
	assert_memory_equal(f.policy->trust.pems[0].ptr, pem, len);

	assert_non_null(fixture_load(&f, HEAD "upstream: {trust: [system, ca.pem]}\n"));
	assert_true(f.policy->trust.system);

	memset(pem + lead + 100, 'A', 30); /* good base64, no certificate any more */
	fixture_write(&f, "ca.pem", slice_of(pem, len));
	assert_null(fixture_load(&f, HEAD "upstream: {trust: [ca.pem]}\n"));
	fixture_expect_error(&f, "policy.yaml:3:20: upstream.trust[0]: can't use \"ca.pem\": it holds a certificate "
				 "that can't be read");
	fixture_free(&f);
}

/* What we hand out is good, and passes its own tests on any day. */
static void shipped_policy(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	struct policy *p = policy_load(CAGE_SOURCE_DIR "/policies/default.yaml", &f.arena, NOW, NULL, f.errs);
	policy_errors_print(f.errs, STDERR_FILENO);
	assert_non_null(p);
	assert_slice(p->name, "default");
	for (size_t i = 0; i < p->n_rules; i++)
		assert_int_equal(p->rules[i].expires, 0);
	fixture_free(&f);
}

/* ---- memory ---- */

static bool is_inside(const void *p, const char *region, size_t size)
{
	return (const char *)p >= region && (const char *)p < region + size;
}

static void loads_into_a_region(void **state)
{
	(void)state;
	size_t size = MIB(1);
	char *region = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(region != MAP_FAILED);
	struct fixture f = fixture_new();
	struct arena heap = f.arena;
	arena_init_region(&f.arena, region, size);
	assert_non_null(fixture_load(&f, HEAD
				     "rules:\n"
				     "  - {id: a, hosts: [a.test, '*.b.test'], methods: [GET], paths: [/a%2f/**]}\n"
				     "  - {id: d, hosts: [a.test], action: deny, paths: [/x]}\n"
				     "upstream: {resolve: {a.test: 127.0.0.1}}\n"));
	const struct policy *p = f.policy;
	const struct policy_rule *r = &p->rules[0];
	const void *parts[] = {p,
			       p->name.ptr,
			       p->rules,
			       p->exact.slots,
			       p->wildcard.slots,
			       p->pins.slots,
			       p->pin_list,
			       p->pin_list[0].host.ptr,
			       p->listed_ports,
			       r->id.ptr,
			       r->hosts,
			       r->hosts[0].ptr,
			       r->hosts[1].ptr,
			       r->ports,
			       r->methods,
			       r->methods[0].ptr,
			       r->paths,
			       r->paths[0].ptr,
			       r->loose_paths,
			       r->loose_paths[0].ptr};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		assert_true(is_inside(parts[i], region, size));

	/* workers see it read-only */
	assert_int_equal(mprotect(region, size, PROT_READ), 0);
	f.arena = heap;
	expect_verdict(fixture_ask(&f, "GET https://a.test/a%2f/b"), REASON_NONE, "a");
	expect_verdict(fixture_ask(&f, "GET https://x.b.test/a%2f"), REASON_NONE, "a");
	expect_verdict(fixture_ask(&f, "GET https://a.test/x"), REASON_RULE_DENIED, "d");
	assert_int_equal(munmap(region, size), 0);
	fixture_free(&f);
}

/* However little memory there is: an error and no crash, until it is enough. */
static void runs_out_of_memory(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	bool is_loaded = false;
	size_t size = 16;
	for (; !is_loaded; size += 16) {
		char *region = calloc(1, size);
		struct arena heap = f.arena;
		assert_non_null(region);
		assert_true(size < KIB(16));
		arena_init_region(&f.arena, region, size);
		is_loaded = fixture_load(&f, HEAD
					 "rules:\n"
					 "  - {id: a, hosts: [a.test, '*.b.test'], methods: [GET], paths: [/a/**]}\n"
					 "  - {id: d, hosts: ['::1'], action: deny}\n"
					 "upstream: {resolve: {a.test: 127.0.0.1}, resolvers: ['::1']}\n"
					 "tests: [{request: GET https://a.test/a, expect: allow}]\n");
		f.arena = heap;
		free(region);
	}
	assert_true(size > 1000);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(smallest),
		cmocka_unit_test(defaults_of_a_rule),
		cmocka_unit_test(everything),
		cmocka_unit_test(a_rule_takes_the_mode_of_the_policy),
		cmocka_unit_test(sizes),
		cmocka_unit_test(rates),
		cmocka_unit_test(burst_by_default_is_the_rate),
		cmocka_unit_test(sha_of_file_and_includes),
		cmocka_unit_test(includes),
		cmocka_unit_test(include_errors),
		cmocka_unit_test(trust_files),
		cmocka_unit_test(shipped_policy),
		cmocka_unit_test(loads_into_a_region),
		cmocka_unit_test(runs_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
