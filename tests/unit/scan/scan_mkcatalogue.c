/* The program that builds the catalogue: what it refuses, and in which line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/cage-test-XXXXXX";
static char output[4096];

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	remove("in.yaml");
	remove("out.c");
	return rmdir(dir);
}

/* Its exit status; what it printed is in output. */
static int run(const char *yaml)
{
	FILE *in = fopen("in.yaml", "w");
	assert_non_null(in);
	fputs(yaml, in);
	assert_int_equal(fclose(in), 0);
	remove("out.c");
	FILE *errors = popen(MKCATALOGUE " in.yaml out.c 2>&1", "r"); /* NOLINT(cert-env33-c): our own program */
	assert_non_null(errors);
	output[fread(output, 1, sizeof(output) - 1, errors)] = 0;
	int status = pclose(errors);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void must_refuse(const char *yaml, const char *error)
{
	assert_int_equal(run(yaml), 1);
	if (strncmp(output, error, strlen(error)) != 0)
		fail_msg("'%s' does not begin with '%s'", output, error);
	assert_int_not_equal(access("out.c", F_OK), 0);
}

#define HEAD "version: 1\nformats:\n"
#define GOOD "  - {id: a-b, name: A, pattern: 'a{3}', hits: [aaa], misses: [aa]}\n"

static void good(void **state)
{
	(void)state;
	assert_int_equal(run(HEAD GOOD), 0);
	assert_string_equal(output, "");
	assert_int_equal(access("out.c", F_OK), 0);
	assert_int_equal(run(HEAD "  - {id: x, name: X, pattern: '\"?[ab]\\x00{2}', check: jwt, entropy: 3.5,\n"
				  "     caseless: true, hosts: [a.test, '*.b.test'], hits: [a], misses: [b]}\n"),
			 0);
}

static void bad(void **state)
{
	(void)state;
	must_refuse("", "in.yaml:1: a catalogue: must be a map");
	must_refuse("- a\n", "in.yaml:1: a catalogue: must be a map");
	must_refuse("formats:\n" GOOD, "in.yaml:1: a catalogue: has version");
	must_refuse("version: 2\nformats:\n" GOOD, "in.yaml:1: version");
	must_refuse(HEAD GOOD "extra: 1\n", "in.yaml:4: extra: is not a key");
	must_refuse(HEAD GOOD GOOD, "in.yaml:4: id: is there twice");
	must_refuse(HEAD "  - a\n", "in.yaml:3: formats");
	must_refuse(HEAD "  - {id: [a\n", "in.yaml:4: not YAML");
	must_refuse(HEAD GOOD "  - {id: A, name: A, pattern: a, hits: [a], misses: [b]}\n", "in.yaml:4: id");
	must_refuse(HEAD "  - {id: a, name: A, hits: [a], misses: [b]}\n", "in.yaml:3: pattern: is missing");
	must_refuse(HEAD "  - {id: a, id: b, name: A, pattern: a, hits: [a], misses: [b]}\n", "in.yaml:3: id: is");
	must_refuse(HEAD "  - {id: a, name: A, pattern: a, hits: [], misses: [b]}\n", "in.yaml:3: examples");
	must_refuse(HEAD "  - {id: a, name: A, pattern: a, hits: [a], misses: b}\n", "in.yaml:3: examples");
	must_refuse(HEAD "  - {id: a, name: A, pattern: a, hits: [a], misses: [b], x: 1}\n", "in.yaml:3: x: is not");
}

static void bad_values(void **state)
{
	(void)state;
#define WITH(key) HEAD GOOD "  - {id: c, name: A, pattern: 'a', hits: [a], misses: [b],\n     " key "}\n"
	must_refuse(WITH("check: md5"), "in.yaml:5: check: must be jwt");
	must_refuse(WITH("entropy: high"), "in.yaml:5: entropy");
	must_refuse(WITH("entropy: 9"), "in.yaml:5: entropy");
	must_refuse(WITH("caseless: yes"), "in.yaml:5: caseless");
	must_refuse(WITH("hosts: a.test"), "in.yaml:5: hosts");
	must_refuse(WITH("hosts: [A.test]"), "in.yaml:5: hosts");
	must_refuse(HEAD GOOD "  - id: c\n    name: C\n    pattern: 'a+'\n    hits: [a]\n    misses: [b]\n",
		    "in.yaml:6: pattern: matches have no greatest length");
	must_refuse(HEAD GOOD "  - id: c\n    name: C\n    pattern: '(a'\n    hits: [a]\n    misses: [b]\n",
		    "in.yaml:6: pattern: ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(bad),
		cmocka_unit_test(bad_values),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
