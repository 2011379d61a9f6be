/* Configurations of git, against what git itself makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "core/base/limits.h"
#include "orchestrator/git_config.h"

/* All settings as "section.key=value;". */
static bool note(void *arg, const struct git_setting *s)
{
	char *text = arg;
	size_t len = strlen(text);
	snprintf(text + len, 1024 - len, "%.*s.%.*s=%.*s;", SLICE_FMT(s->section), SLICE_FMT(s->key),
		 SLICE_FMT(s->value));
	return !slice_eq(s->key, SLICE("last"));
}

static void assert_read(const char *config, bool ok, const char *expected)
{
	char text[1024] = "";
	assert_int_equal(git_config_parse(slice_str(config), note, text), ok);
	assert_string_equal(text, expected);
}

static void forms(void **state)
{
	(void)state;
	assert_read("", true, "");
	assert_read("[core]\n\thooksPath = x\n", true, "core.hooksPath=x;");
	assert_read("[core] hooksPath = x", true, "core.hooksPath=x;");
	assert_read("[core]hooksPath=x", true, "core.hooksPath=x;");
	assert_read("\xef\xbb\xbf[CORE]\r\n HOOKSPATH = x\r\n", true, "CORE.HOOKSPATH=x;");
	assert_read("[include \"a ] \\\" b\"] path = y # z", true, "include.path=y;");
	assert_read("[includeIf \"gitdir:~/x/\"]\npath = y ; z", true, "includeIf.path=y;");
	assert_read("[core.sub]\na = 1\nb\n[d]\nc=", true, "core.a=1;core.b=;d.c=;");
	assert_read("# x\n; y\n[a] b = c # d\n", true, "a.b=c;");
	assert_read("[a]\n[b]\nc = d", true, "b.c=d;");
	assert_read("[a]\nlast = b\nc = d\n[e\n", true, "a.last=b;");
}

static void values(void **state)
{
	(void)state;
	assert_read("[a]\nb = \"c ; d\"  \n", true, "a.b=c ; d;");
	assert_read("[a]\nb = c \" d \" e  \n", true, "a.b=c  d  e;");
	assert_read("[a]\nb = c\\\nd\ne = f", true, "a.b=cd;a.e=f;");
	assert_read("[a]\nb = \"c\\\n d\"", true, "a.b=c d;");
	assert_read("[a]\nb = \\\"c\\\\d\\te", true, "a.b=\"c\\d\te;");
	assert_read("[a]\nb = c\\", true, "a.b=c;");
	assert_read("[a]\nb = c\rd", true, "a.b=c\rd;");
}

/* What is wrong is said, and the rest is found all the same. */
static void wrong(void **state)
{
	static char text[LIMIT_GIT_VALUE + 64];
	(void)state;
	assert_read("a = b\n[c]\nd = e", false, "c.d=e;");
	assert_read("[a\nb = c\n[d]\ne = f", false, "a.b=c;d.e=f;");
	assert_read("[a \"b]\nc = d", false, "a.c=d;");
	assert_read("[a]\nb c\nd = e", false, "a.d=e;");
	assert_read("[a]\nb = \"c\nd = e", false, "a.d=e;");
	assert_read("[a]\nb = \\x\nd = e", false, "a.d=e;");
	assert_read("[a]\n1b = c\nd = e", false, "a.d=e;");
	snprintf(text, sizeof(text), "[a]\nb = %0*d\nc = d", (int)LIMIT_GIT_VALUE + 1, 0);
	assert_read(text, false, "a.c=d;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(forms), cmocka_unit_test(values), cmocka_unit_test(wrong)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
