/* Which names of a workspace are cage's own, for those who apply a patch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/own_files.h"

/* Each with its NUL. */
static bool has(const char *names, const char *name)
{
	for (; *names; names += strlen(names) + 1)
		if (strcmp(names, name) == 0)
			return true;
	return false;
}

static void every_kind_is(void **state)
{
	static const char *const names[OWN_KINDS] = {"run", "ca", "keys/token", "log", "policy.yaml", "bin/cage"};
	static char out[LIMIT_OWN_NAMES];
	char dir[] = "/tmp/cage-own.XXXXXX", path[64];
	struct own_files f = {0};
	(void)state;
	assert_non_null(mkdtemp(dir));
	for (int kind = 0; kind < OWN_KINDS; kind++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[kind]);
		own_files_add(&f, (enum own_kind)kind, path);
	}
	own_files_add(&f, OWN_SECRET, "/tmp/elsewhere");
	assert_true(own_files_names(&f, dir, out));
	for (int kind = 0; kind < OWN_KINDS; kind++)
		if (!has(out, names[kind]))
			fail_msg("%s", names[kind]);
	assert_false(has(out, "elsewhere"));
	own_files_free(&f);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind_is)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
