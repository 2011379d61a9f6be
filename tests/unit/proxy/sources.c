/* Variables and files on their way into the vault. */
#include "tests/unit/policy/fixture.h"

#include <sys/stat.h>

#include "proxy/sources.h"

#define POLICY HEAD "rules: [{id: r, hosts: [x.test], secrets: [k]}]\nsecrets:\n  - {id: k, from: "
#define FROM_FILE POLICY "{file: k}}\n"
#define FROM_ENV POLICY "{env: CAGE_TEST_K}}\n"

#define ONLY(p) ((struct policy_list){(const struct policy *const[]){p}, 1})

struct rig {
	struct fixture f;
	struct vault *vault;
	struct sources *sources;
	char path[128]; /* of the file k */
};

static struct rig rig_new(void)
{
	struct rig r = {.f = fixture_new(), .vault = vault_new()};
	assert_non_null(r.vault);
	r.sources = sources_new(r.vault);
	assert_non_null(r.sources);
	fixture_path(&r.f, "k", r.path);
	return r;
}

static void rig_free(struct rig *r)
{
	sources_free(&r->sources);
	vault_forget(&r->vault);
	fixture_free(&r->f);
}

/* As the master does it; NULL: the policy is refused. */
static const struct policy *load(struct rig *r, const char *yaml)
{
	char path[128];
	struct policy_readers readers = {.value = sources_value, .arg = r->sources};
	fixture_write(&r->f, "policy.yaml", slice_str(yaml));
	fixture_path(&r->f, "policy.yaml", path);
	struct policy *p = policy_load(path, &r->f.arena, NOW, &readers, r->f.errs);
	sources_done(r->sources);
	if (!p)
		return NULL;
	assert_true(sources_assign(r->sources, p));
	assert_true(sources_use(r->sources, p, &ONLY(p)));
	return p;
}

/* NULL: none. */
static void expect_secret(const struct rig *r, const struct policy *p, const char *value)
{
	struct slice got;
	assert_int_equal(vault_get(r->vault, p->secrets[0].slot, &got), value != NULL);
	if (value)
		assert_true(slice_eq(got, slice_str(value)));
}

static void write_k(const struct rig *r, const char *value)
{
	fixture_write(&r->f, "k", slice_str(value));
}

static void a_variable_is_taken(void **state)
{
	(void)state;
	struct rig r = rig_new();
	char entry[] = "CAGE_TEST_K=value-of-variable"; /* in place of the memory that /proc shows */
	assert_int_equal(putenv(entry), 0);
	const struct policy *p = load(&r, FROM_ENV);
	assert_non_null(p);
	expect_secret(&r, p, "value-of-variable");
	assert_null(getenv("CAGE_TEST_K"));
	for (size_t i = sizeof("CAGE_TEST_K"); i < sizeof(entry); i++)
		assert_int_equal(entry[i], 0);
	sources_look(r.sources, &ONLY(p));
	expect_secret(&r, load(&r, FROM_ENV), "value-of-variable"); /* and still there at a reload */
	rig_free(&r);
}

/* It can't be read again, so it outlives a policy that does not name it. */
static void a_variable_is_kept(void **state)
{
	(void)state;
	struct rig r = rig_new();
	assert_int_equal(setenv("CAGE_TEST_K", "value-of-variable", 1), 0);
	assert_non_null(load(&r, FROM_ENV));
	const struct policy *p = load(&r, HEAD);
	assert_non_null(p);
	sources_look(r.sources, &ONLY(p));
	expect_secret(&r, load(&r, FROM_ENV), "value-of-variable");
	rig_free(&r);
}

static void a_variable_that_is_no_good(void **state)
{
	(void)state;
	struct rig r = rig_new();
#define BAD(why) "policy.yaml:5:19: secrets[0].from: the variable \"CAGE_TEST_K\" can't be used: it " why
	unsetenv("CAGE_TEST_K");
	assert_null(load(&r, FROM_ENV));
	fixture_expect_error(&r.f, BAD("is not set"));
	setenv("CAGE_TEST_K", "", 1);
	assert_null(load(&r, FROM_ENV));
	fixture_expect_error(&r.f, BAD("is empty"));
	setenv("CAGE_TEST_K", "short", 1);
	assert_null(load(&r, FROM_ENV));
	fixture_expect_error(&r.f, BAD("is shorter than 8 bytes"));
	unsetenv("CAGE_TEST_K");
	rig_free(&r);
}

static void the_end_of_a_file(void **state)
{
	(void)state;
	static const struct {
		const char *bytes, *value;
	} list[] = {
		{"value-of-file", "value-of-file"},
		{"value-of-file\n", "value-of-file"},
		{"value-of-file\r\n", "value-of-file"},
		{"value-of-file\n\n", NULL},
		{"value-of-file\r", NULL},
		{" value-of-file \n", " value-of-file "},
		{"\n", NULL},
		{"", NULL},
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		struct rig r = rig_new();
		write_k(&r, list[i].bytes);
		const struct policy *p = load(&r, FROM_FILE);
		assert_int_equal(p != NULL, list[i].value != NULL);
		if (p)
			expect_secret(&r, p, list[i].value);
		rig_free(&r);
	}
}

static void the_longest_file(void **state)
{
	(void)state;
	static char big[LIMIT_SECRET_VALUE + 4];
	struct rig r = rig_new();
	memset(big, 'x', LIMIT_SECRET_VALUE);
	memcpy(big + LIMIT_SECRET_VALUE, "\r\n", 3);
	write_k(&r, big);
	assert_non_null(load(&r, FROM_FILE));
	memset(big, 'x', LIMIT_SECRET_VALUE + 1);
	write_k(&r, big);
	assert_null(load(&r, FROM_FILE));
	assert_non_null(strstr(fixture_error(&r.f, 0), "it is too long"));
	rig_free(&r);
}

static void a_file_that_is_no_file(void **state)
{
	(void)state;
	struct rig r = rig_new();
	assert_null(load(&r, FROM_FILE));
	assert_non_null(strstr(fixture_error(&r.f, 0), "it is not there"));
	assert_int_equal(mkdir(r.path, 0700), 0);
	assert_null(load(&r, FROM_FILE));
	assert_non_null(strstr(fixture_error(&r.f, 0), "it is not a regular file"));
	assert_int_equal(rmdir(r.path), 0);
	assert_int_equal(mkfifo(r.path, 0600), 0); /* nobody waits for its writer */
	assert_null(load(&r, FROM_FILE));
	assert_non_null(strstr(fixture_error(&r.f, 0), "it is not a regular file"));
	rig_free(&r);
}

static void a_file_changes(void **state)
{
	(void)state;
	struct rig r = rig_new();
	struct slice values[LIMIT_SECRET_VERSIONS];
	write_k(&r, "the-first-value\n");
	const struct policy *p = load(&r, FROM_FILE);
	assert_non_null(p);
	write_k(&r, "the-second-value\n");
	expect_secret(&r, p, "the-first-value");
	sources_look(r.sources, &ONLY(p));
	expect_secret(&r, p, "the-second-value");
	assert_int_equal(vault_known(r.vault, p->secrets[0].slot, values), 2);
	uint64_t version = vault_version(r.vault);
	sources_look(r.sources, &ONLY(p));
	assert_int_equal(vault_version(r.vault), version);
	rig_free(&r);
}

static void a_file_goes_and_comes_back(void **state)
{
	(void)state;
	struct rig r = rig_new();
	struct slice values[LIMIT_SECRET_VERSIONS];
	write_k(&r, "the-first-value\n");
	const struct policy *p = load(&r, FROM_FILE);
	assert_non_null(p);
	assert_int_equal(unlink(r.path), 0);
	sources_look(r.sources, &ONLY(p));
	expect_secret(&r, p, NULL);
	assert_int_equal(vault_known(r.vault, p->secrets[0].slot, values), 1);
	write_k(&r, "the-first-value\n");
	sources_look(r.sources, &ONLY(p));
	expect_secret(&r, p, "the-first-value");
	write_k(&r, "bad\n");
	sources_look(r.sources, &ONLY(p));
	expect_secret(&r, p, NULL);
	write_k(&r, "the-other-value\n");
	sources_look(r.sources, &ONLY(p));
	expect_secret(&r, p, "the-other-value");
	rig_free(&r);
}

/* So that a file can be changed as Kubernetes does it. */
static void a_link_that_moves(void **state)
{
	(void)state;
	struct rig r = rig_new();
	fixture_write(&r.f, "a", SLICE("value-of-a"));
	fixture_write(&r.f, "b", SLICE("value-of-b"));
	assert_int_equal(symlink("a", r.path), 0);
	const struct policy *p = load(&r, FROM_FILE);
	expect_secret(&r, p, "value-of-a");
	assert_int_equal(unlink(r.path), 0);
	assert_int_equal(symlink("b", r.path), 0);
	sources_look(r.sources, &ONLY(p));
	expect_secret(&r, p, "value-of-b");
	rig_free(&r);
}

static void two_secrets_of_one_file(void **state)
{
	(void)state;
	struct rig r = rig_new();
	write_k(&r, "value-of-both");
	const struct policy *p =
		load(&r, HEAD "rules: [{id: r, hosts: [x.test], secrets: [k, l]}]\nsecrets:\n"
			      "  - {id: k, from: {file: k}, in: [body]}\n  - {id: l, from: {file: k}, in: [path]}\n");
	assert_non_null(p);
	assert_int_equal(p->secrets[0].slot, p->secrets[1].slot);
	expect_secret(&r, p, "value-of-both");
	rig_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_variable_is_taken),
		cmocka_unit_test(a_variable_is_kept),
		cmocka_unit_test(a_variable_that_is_no_good),
		cmocka_unit_test(the_end_of_a_file),
		cmocka_unit_test(the_longest_file),
		cmocka_unit_test(a_file_that_is_no_file),
		cmocka_unit_test(a_file_changes),
		cmocka_unit_test(a_file_goes_and_comes_back),
		cmocka_unit_test(a_link_that_moves),
		cmocka_unit_test(two_secrets_of_one_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
