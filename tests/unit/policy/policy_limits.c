/* Each limit of a policy file, at its last good value and one beyond. */
#include "tests/unit/policy/fixture.h"

struct big {
	char *ptr;
	size_t len, room;
};

static struct big big_new(size_t room)
{
	struct big b = {.ptr = malloc(room), .room = room};
	assert_non_null(b.ptr);
	return b;
}

static void big_add(struct big *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void big_add(struct big *b, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(b->ptr + b->len, b->room - b->len, fmt, args);
	va_end(args);
	assert_true(n >= 0 && (size_t)n < b->room - b->len);
	b->len += (size_t)n;
}

static void fixture_load_big(struct fixture *f, struct big *b)
{
	fixture_write(f, "policy.yaml", slice_of(b->ptr, b->len));
	fixture_load_file(f);
	free(b->ptr);
}

static void limit_file(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	for (size_t extra = 0; extra < 2; extra++) {
		struct big b = big_new(LIMIT_POLICY_FILE + 2);
		big_add(&b, HEAD "#");
		memset(b.ptr + b.len, 'x', LIMIT_POLICY_FILE + extra - b.len);
		b.len = LIMIT_POLICY_FILE + extra;
		fixture_load_big(&f, &b);
		if (extra == 0)
			assert_non_null(f.policy);
		else
			fixture_expect_error(&f, "policy.yaml:0:0: can't read the policy: it is too big");
	}
	fixture_free(&f);
}

static void limit_trust_file(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	char *bytes = calloc(1, LIMIT_TRUST_FILE + 1);
	assert_non_null(bytes);
	for (size_t extra = 0; extra < 2; extra++) {
		fixture_write(&f, "ca.pem", slice_of(bytes, LIMIT_TRUST_FILE + extra));
		assert_null(fixture_load(&f, HEAD "upstream: {trust: [ca.pem]}\n"));
		fixture_expect_error(&f, extra == 0 ? "policy.yaml:3:20: upstream.trust[0]: can't use \"ca.pem\": it "
						      "holds no PEM certificate"
						    : "policy.yaml:3:20: upstream.trust[0]: can't use \"ca.pem\": it "
						      "is too big");
	}
	free(bytes);
	fixture_free(&f);
}

static void limit_depth(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	for (size_t extra = 0; extra < 2; extra++) {
		struct big b = big_new(256);
		big_add(&b, "version: 1\nname: t\nx: ");
		for (size_t i = 1; i < LIMIT_POLICY_DEPTH + extra; i++)
			big_add(&b, "[");
		for (size_t i = 1; i < LIMIT_POLICY_DEPTH + extra; i++)
			big_add(&b, "]");
		fixture_load_big(&f, &b);
		fixture_expect_error(&f, extra == 0 ? "policy.yaml:3:1: x: unknown key"
						    : "policy.yaml:3:19: nested deeper than 16 levels");
	}
	fixture_free(&f);
}

static void limit_nodes(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	for (size_t extra = 0; extra < 2; extra++) {
		struct big b = big_new(LIMIT_POLICY_FILE);
		big_add(&b, HEAD "x:\n- [");
		/* the root, two values, two lists: five */
		for (size_t i = 5; i < LIMIT_POLICY_NODES + extra; i++) {
			b.ptr[b.len++] = 'a';
			b.ptr[b.len++] = ',';
		}
		big_add(&b, "]\n");
		fixture_load_big(&f, &b);
		assert_int_equal(f.errs->n, 1);
		assert_string_equal(f.errs->list[0].text,
				    extra == 0 ? "x: unknown key" : "there are more than 1000000 values");
	}
	fixture_free(&f);
}

static void limit_includes(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	for (size_t extra = 0; extra < 2; extra++) {
		struct big b = big_new(4096);
		big_add(&b, HEAD "include:\n");
		for (size_t i = 0; i < LIMIT_POLICY_INCLUDES + extra; i++) {
			char name[32], text[64];
			snprintf(name, sizeof(name), "i%zu.yaml", i);
			snprintf(text, sizeof(text), "rules: [{id: r%zu, hosts: [h%zu.test]}]\n", i, i);
			fixture_write(&f, name, slice_str(text));
			big_add(&b, "  - %s\n", name);
		}
		fixture_load_big(&f, &b);
		if (extra == 0)
			assert_int_equal(f.policy->n_rules, LIMIT_POLICY_INCLUDES);
		else
			fixture_expect_error(&f, "policy.yaml:4:3: include: expected at most 64 files, got 65");
	}
	fixture_free(&f);
}

static void limit_errors(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	struct big b = big_new(4096);
	big_add(&b, HEAD);
	for (int i = 0; i < LIMIT_POLICY_ERRORS + 5; i++)
		big_add(&b, "unknown%d: 1\n", i);
	fixture_load_big(&f, &b);
	assert_null(f.policy);
	assert_int_equal(f.errs->n, LIMIT_POLICY_ERRORS);
	assert_int_equal(f.errs->more, 5);
	assert_string_equal(fixture_error(&f, 99), "policy.yaml:102:1: unknown99: unknown key");
	fixture_free(&f);
}

static void limit_rules(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	struct big b = big_new(LIMIT_POLICY_FILE);
	big_add(&b, HEAD "rules:\n");
	for (int i = 0; i < LIMIT_POLICY_RULES + 1; i++)
		big_add(&b, "- {id: r%d, hosts: [h%d.test]}\n", i, i);
	fixture_load_big(&f, &b);
	fixture_expect_error(&f, "policy.yaml:0:0: expected at most 100000 rules, got 100001");
	fixture_free(&f);
}

static void limit_words(void **state)
{
	(void)state;
	char word[66], yaml[2200], path[LIMIT_PATH_PATTERN + 2];
	memset(word, 'a', sizeof(word));
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	for (int extra = 0; extra < 2; extra++) {
		struct fixture f = fixture_new();
		snprintf(yaml, sizeof(yaml), "version: 1\nname: %.*s\n", LIMIT_POLICY_NAME + extra, word);
		assert_int_equal(!fixture_load(&f, yaml), extra);
		snprintf(yaml, sizeof(yaml), HEAD "rules: [{id: %.*s, hosts: [a.test]}]\n", LIMIT_RULE_ID + extra,
			 word);
		assert_int_equal(!fixture_load(&f, yaml), extra);
		snprintf(yaml, sizeof(yaml), HEAD "rules: [{id: a, hosts: [a.test], methods: [%.*s]}]\n",
			 LIMIT_METHOD + extra, "MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM");
		assert_int_equal(!fixture_load(&f, yaml), extra);
		snprintf(yaml, sizeof(yaml), HEAD "rules: [{id: a, hosts: [a.test], paths: [%.*s]}]\n",
			 LIMIT_PATH_PATTERN + extra, path);
		assert_int_equal(!fixture_load(&f, yaml), extra);
		fixture_free(&f);
	}
}

/* Rules that only the search for ties can tell apart, so many that it gives up: refused, not guessed. */
static void limit_compare(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	struct big b = big_new(LIMIT_POLICY_FILE);
	big_add(&b, HEAD "rules:\n");
	for (int i = 0; i < 50000; i++)
		big_add(&b, "- {id: r%d, hosts: [a.test], ports: [%d], paths: [/*]}\n", i, i + 1);
	fixture_load_big(&f, &b);
	fixture_expect_error(&f, "policy.yaml:0:0: too many rules for the same host: they can't all be compared with "
				 "each other");
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limit_file),  cmocka_unit_test(limit_trust_file), cmocka_unit_test(limit_depth),
		cmocka_unit_test(limit_nodes), cmocka_unit_test(limit_includes),   cmocka_unit_test(limit_errors),
		cmocka_unit_test(limit_rules), cmocka_unit_test(limit_words),      cmocka_unit_test(limit_compare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
