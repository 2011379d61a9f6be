/* Which policies need not be loaded again: policy_is_as_in(). */
#include "tests/unit/policy/fixture.h"

#include <sys/stat.h>

#define RULES "rules: [{id: a, hosts: [a.test], secrets: [k]}]\n"

static bool is_as_there(const struct fixture *f)
{
	char path[128];
	fixture_path(f, "policy.yaml", path);
	return policy_is_as_in(f->policy, path);
}

static void what_is_there_counts(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD);
	assert_true(is_as_there(&f));
	fixture_write(&f, "policy.yaml", SLICE(HEAD "# more\n"));
	assert_false(is_as_there(&f));
	fixture_write(&f, "policy.yaml", SLICE("version: 1\nname: u\n"));
	assert_false(is_as_there(&f));
	fixture_write(&f, "policy.yaml", SLICE(HEAD));
	assert_true(is_as_there(&f));
	fixture_free(&f);
}

static void what_can_not_be_read_is_not_the_same(void **state)
{
	(void)state;
	char path[128];
	struct fixture f = fixture_good(HEAD);
	fixture_path(&f, "policy.yaml", path);
	assert_int_equal(unlink(path), 0);
	assert_false(is_as_there(&f));
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(is_as_there(&f));
	fixture_free(&f);
}

static void one_of_several_files_is_loaded_again(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	fixture_write(&f, "more.yaml", SLICE("rules: [{id: b, hosts: [b.test]}]\n"));
	fixture_load(&f, HEAD "include: [more.yaml]\n");
	assert_non_null(f.policy);
	assert_false(is_as_there(&f));
	fixture_free(&f);
}

static void secrets_of_variables_stay(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD RULES "secrets: [{id: k, from: {env: K}}]\n");
	assert_true(is_as_there(&f));
	fixture_free(&f);
}

static void other_secrets_are_read_again(void **state)
{
	(void)state;
	static const char *const sources[] = {"file: k", "keyvault: 'https://v.vault.azure.net/secrets/k'"};
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		char yaml[256];
		snprintf(yaml, sizeof(yaml), HEAD RULES "secrets: [{id: k, from: {%s}}]\n", sources[i]);
		struct fixture f = fixture_good(yaml);
		assert_false(is_as_there(&f));
		fixture_free(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_there_counts),
		cmocka_unit_test(what_can_not_be_read_is_not_the_same),
		cmocka_unit_test(one_of_several_files_is_loaded_again),
		cmocka_unit_test(secrets_of_variables_stay),
		cmocka_unit_test(other_secrets_are_read_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
