/* What the ceiling of a service takes and what it refuses: one row for each field of a policy. */
#include "orchestrator/service/ceiling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after them */
#include <cmocka.h>

#include "core/base/clock.h"

#define HEAD "version: 1\nname: x\n"
#define SECRET "secrets: [{id: key, from: {env: KEY}}]\n"

static void write_policy(const char *text, char path[64])
{
	snprintf(path, 64, "/tmp/cage-ceiling-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void print(const struct policy_errors *errs, const char *text)
{
	for (size_t i = 0; i < errs->n; i++)
		print_error("%s\n%s\n", text, errs->list[i].text);
}

/* The errors; NULL: there are none. */
static json_t *compare(const char *high, const char *low, enum policy_kind kind)
{
	char path[64];
	struct arena arena;
	json_t *errors = json_array();
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	write_policy(high, path);
	struct ceiling *ceiling = ceiling_load(path, errs);
	unlink(path);
	print(errs, high);
	assert_non_null(ceiling);
	write_policy(low, path);
	arena_init(&arena, LIMIT_POLICY_REGION);
	const struct policy *p = policy_load(path, &arena, clock_wall_s(), &ceiling_readers, errs);
	unlink(path);
	print(errs, low);
	assert_non_null(p);
	bool is_good = ceiling_check(ceiling, p, kind, errors);
	assert_int_equal(is_good, json_array_size(errors) == 0);
	arena_free(&arena);
	ceiling_free(&ceiling);
	free(errs);
	if (!is_good)
		return errors;
	json_decref(errors);
	return NULL;
}

static const struct row {
	const char *what, *high, *low;
	bool is_good;
} rows[] = {
	{"same", "rules: [{id: r, hosts: [a.test]}]", "rules: [{id: s, hosts: [a.test]}]", true},
	{"nothing", "rules: [{id: r, hosts: [a.test]}, {id: d, action: deny, hosts: [b.test]}]", "", true},
	{"wildcard", "rules: [{id: r, hosts: ['*.test']}]", "rules: [{id: s, hosts: [a.test, '*.b.test']}]", true},
	{"host", "rules: [{id: r, hosts: [a.test]}]", "rules: [{id: s, hosts: [a.test, b.test]}]", false},
	{"apex", "rules: [{id: r, hosts: ['*.a.test']}]", "rules: [{id: s, hosts: [a.test]}]", false},
	{"action", "rules: [{id: r, hosts: [a.test]}]", "rules: [{id: s, action: tunnel, hosts: [a.test]}]", false},
	{"port", "rules: [{id: r, hosts: [a.test]}]", "rules: [{id: s, hosts: [a.test], ports: [443, 8443]}]", false},
	{"methods", "rules: [{id: r, hosts: [a.test], methods: [GET]}]", "rules: [{id: s, hosts: [a.test]}]", false},
	{"paths", "rules: [{id: r, hosts: [a.test], paths: [/a]}]", "rules: [{id: s, hosts: [a.test], paths: [/b]}]",
	 false},
	{"addresses", "rules: [{id: r, hosts: [a.test]}]", "rules: [{id: s, hosts: [a.test], addresses: [10.0.0.0/8]}]",
	 false},
	{"expires", "rules: [{id: r, hosts: [a.test], expires: 2099-01-01T00:00:00Z}]",
	 "rules: [{id: s, hosts: [a.test]}]", false},
	{"mode of a rule", "rules: [{id: r, hosts: [a.test], methods: [GET]}]",
	 "rules: [{id: s, hosts: [a.test], methods: [GET], mode: observe}]", false},
	{"mode", "rules: [{id: r, hosts: [a.test]}]", "mode: observe", false},
	{"mode but for its rules", "rules: [{id: r, hosts: [a.test]}]",
	 "mode: observe\nrules: [{id: s, hosts: [a.test], mode: enforce}]", false},
	{"body", "rules: [{id: r, hosts: [a.test], limits: {body: 1KiB}}]", "rules: [{id: s, hosts: [a.test]}]", false},
	{"less body", "rules: [{id: r, hosts: [a.test]}]", "rules: [{id: s, hosts: [a.test], limits: {body: 1KiB}}]",
	 true},
	{"rate", "rules: [{id: r, hosts: [a.test], limits: {rate: 5/m}}]",
	 "rules: [{id: s, hosts: [a.test], limits: {rate: 6/m}}]", false},
	{"no rate", "rules: [{id: r, hosts: [a.test], limits: {rate: 5/m}}]", "rules: [{id: s, hosts: [a.test]}]",
	 false},
	{"lower rate", "rules: [{id: r, hosts: [a.test], limits: {rate: 5/m}}]",
	 "rules: [{id: s, hosts: [a.test], limits: {rate: 4/m}}]", true},
	{"twice the rate", "rules: [{id: r, hosts: ['*.test'], limits: {rate: 5/m}}]",
	 "rules: [{id: s, hosts: [a.test], limits: {rate: 5/m}}, {id: t, hosts: [b.test], limits: {rate: 5/m}}]",
	 false},
	{"burst", "rules: [{id: r, hosts: [a.test], limits: {rate: 5/m, burst: 1}}]",
	 "rules: [{id: s, hosts: [a.test], limits: {rate: 5/m, burst: 5}}]", false},
	{"out", "rules: [{id: r, hosts: [a.test], limits: {out: 1MiB/h}}]",
	 "rules: [{id: s, hosts: [a.test], limits: {out: 2MiB/h}}]", false},
	{"secret", SECRET "rules: [{id: r, hosts: [a.test], secrets: [key]}]",
	 SECRET "rules: [{id: s, hosts: [a.test], secrets: [key]}]", true},
	{"secret of no rule", SECRET "rules: [{id: r, hosts: [a.test], secrets: [key]}, {id: q, hosts: [b.test]}]",
	 SECRET "rules: [{id: s, hosts: [b.test], secrets: [key]}]", false},
	{"file of a secret", SECRET "rules: [{id: r, hosts: [a.test], secrets: [key]}]",
	 "secrets: [{id: key, from: {file: /etc/machine-id}}]\nrules: [{id: s, hosts: [a.test], secrets: [key]}]",
	 false},
	{"variable of a secret", SECRET "rules: [{id: r, hosts: [a.test], secrets: [key]}]",
	 "secrets: [{id: key, from: {env: OTHER}}]\nrules: [{id: s, hosts: [a.test], secrets: [key]}]", false},
	{"place of a secret", SECRET "rules: [{id: r, hosts: [a.test], secrets: [key]}]",
	 "secrets: [{id: key, from: {env: KEY}, in: [body]}]\nrules: [{id: s, hosts: [a.test], secrets: [key]}]",
	 false},
	{"inspectors", "rules: [{id: r, hosts: [a.test]}]",
	 "inspectors: {secrets: off, entropy: off}\nrules: [{id: s, hosts: [a.test]}]", false},
	{"no inspectors", "inspectors: {secrets: block}\nrules: [{id: r, hosts: [a.test]}]",
	 "rules: [{id: s, hosts: [a.test]}]", false},
	{"same inspectors", "inspectors: {secrets: block}\nrules: [{id: r, hosts: [a.test]}]",
	 "inspectors:\n  secrets: block\nrules: [{id: s, hosts: [a.test]}]", true},
	{"aliases", "rules: [{id: r, hosts: [a.test]}]", "dns: {aliases: any}\nrules: [{id: s, hosts: [a.test]}]",
	 false},
	{"types", "rules: [{id: r, hosts: [a.test]}]", "dns: {types: [TXT]}\nrules: [{id: s, hosts: [a.test]}]", false},
	{"pins", "rules: [{id: r, hosts: [a.test]}]",
	 "upstream: {resolve: {a.test: 192.0.2.1}}\nrules: [{id: s, hosts: [a.test]}]", false},
};

#define DENIES "rules: [{id: r, hosts: ['*.test']}, {id: d, action: deny, hosts: [b.test], "

static const struct row denials[] = {
	{"same", DENIES "ports: [443], methods: [PUT]}]", DENIES "ports: [443], methods: [PUT]}]", true},
	{"without", DENIES "ports: [443]}]", "rules: [{id: r, hosts: ['*.test']}]", false},
	{"port", DENIES "ports: [443]}]", DENIES "ports: [22]}]", false},
	{"mode", DENIES "ports: [443]}]", DENIES "ports: [443], mode: observe}]", false},
	{"method", DENIES "methods: [PUT]}]", DENIES "methods: [POST]}]", false},
	{"path", DENIES "paths: [/a]}]", DENIES "paths: [/b]}]", false},
	{"expires", DENIES "ports: [443]}]", DENIES "ports: [443], expires: 2099-01-01T00:00:00Z}]", false},
};

#define IMAGE(more) "images: [{registry: r.test, repository: " more "}]"
#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST ", digest: 'sha256:" HEX "'"
#define KEY_1                                                                                                          \
	", key: '-----BEGIN PUBLIC KEY----- "                                                                          \
	"MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEdawLUiBpBCuNUCddSaPDSb8DE4wiAfE4srpQPcYplK02dswh2FFfPJqFv5iiN4bWaNQkM+M+" \
	"FAdc29+nuOw3Ig== -----END PUBLIC KEY-----'"
#define KEY_2                                                                                                         \
	", key: '-----BEGIN PUBLIC KEY----- "                                                                         \
	"MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEtryoUo3JYRbXy8BWILECjUW4zPeHnF6W+bPKWMvaqikGQXtzidQKYEVVeyLyDT3kAuVVr7+" \
	"b3EZdFKsCzsOjcw== -----END PUBLIC KEY-----'"

static const struct row images[] = {
	{"none", IMAGE("org/agent"), "", true},
	{"not allowed", "", IMAGE("org/agent"), false},
	{"same", IMAGE("org/**"), IMAGE("org/**"), true},
	{"narrower", IMAGE("org/**"), IMAGE("org/a/b"), true},
	{"a pattern below a pattern", IMAGE("org/**"), IMAGE("org/a/**"), false},
	{"wider", IMAGE("org/agent"), IMAGE("org/**"), false},
	{"repository", IMAGE("org/agent"), IMAGE("org/agents"), false},
	{"registry", IMAGE("org/agent"), "images: [{registry: 'r.test:443', repository: org/agent}]", false},
	{"digest", IMAGE("org/agent" DIGEST), IMAGE("org/agent" DIGEST), true},
	{"any digest", IMAGE("org/agent" DIGEST), IMAGE("org/agent"), false},
	{"own digest", IMAGE("org/agent"), IMAGE("org/agent" DIGEST), true},
	{"key", IMAGE("org/agent" KEY_1), IMAGE("org/agent" KEY_1), true},
	{"other key", IMAGE("org/agent" KEY_1), IMAGE("org/agent" KEY_2), false},
	{"no key", IMAGE("org/agent" KEY_1), IMAGE("org/agent"), false},
	{"own key", IMAGE("org/agent"), IMAGE("org/agent" KEY_2), true},
	{"one of two", IMAGE("org/a" KEY_1),
	 "images: [{registry: r.test, repository: org/a" KEY_1 "}, {registry: r.test, repository: b}]", false},
};

static void check_rows(const struct row *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char high[1000], low[1000];
		snprintf(high, sizeof(high), HEAD "%s\n", list[i].high);
		snprintf(low, sizeof(low), HEAD "%s\n", list[i].low);
		json_t *errors = compare(high, low, POLICY_GIVEN);
		if (!errors != list[i].is_good)
			fail_msg("%s: %s", list[i].what, errors ? json_dumps(errors, 0) : "was taken");
		json_decref(errors);
	}
}

static void test_fields(void **state)
{
	(void)state;
	check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_denials(void **state)
{
	(void)state;
	check_rows(denials, sizeof(denials) / sizeof(denials[0]));
}

static void test_images(void **state)
{
	(void)state;
	check_rows(images, sizeof(images) / sizeof(images[0]));
}

static void expect(json_t *errors, const char *pointer, const char *detail)
{
	json_t *first = json_array_get(errors, 0);
	const char *at = json_string_value(json_object_get(first, "pointer"));
	assert_string_equal(at ? at : "", pointer);
	assert_string_equal(json_string_value(json_object_get(first, "detail")), detail);
	json_decref(errors);
}

static void test_what_is_told(void **state)
{
	static const char high[] = HEAD "rules: [{id: top, hosts: [a.test], methods: [GET]}]\n";
	(void)state;
	expect(compare(high, HEAD "rules: [{id: s, hosts: [a.test], methods: [GET]}, {id: t, hosts: [b.test]}]\n",
		       POLICY_MADE),
	       "/network/domain_allowlist/1", "b.test: no rule of this service's ceiling covers its hosts");
	expect(compare(high, HEAD "rules: [{id: s, hosts: [a.test]}]\n", POLICY_GIVEN), "",
	       "rule s (a.test): rule top of this service's ceiling covers its hosts, but not its methods");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields), cmocka_unit_test(test_denials),
					   cmocka_unit_test(test_images), cmocka_unit_test(test_what_is_told)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
