/* Names that programs of a host obey, links that lead out, and the bounds of a search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "orchestrator/asked.h"
#include "orchestrator/below.h"
#include "orchestrator/obeyed_private.h"
#include "orchestrator/tree_whole.h"

static void by_name(void **state)
{
	(void)state;
	static const char *const obeyed[] = {".git",
					     ".git/config",
					     ".git/hooks/x",
					     ".git/HOOKS/x",
					     ".git/objects",
					     ".git/Objects/x",
					     ".git/objects/info/alternates",
					     ".git/objects/INFO/alternates",
					     ".git/modules/a/objects/b",
					     ".git/refs/x/.git/config",
					     "a/b/.git/hooks/x",
					     ".gIt/config",
					     "a/.ENVRC",
					     ".vscode",
					     ".direnv/x.rc",
					     "lefthook.toml",
					     "a/.lefthook-local.yml",
					     ".venv/lib/python3/site-packages/x.pth",
					     "venv/x.PTH",
					     "lib/site-packages/a/b.pth",
					     "sitecustomize.py",
					     ".envrc.local",
					     ".autoenv.zsh",
					     ".mise.local.toml",
					     "mise.dev.toml",
					     ".yarnrc.yml",
					     ".pnpmfile.mjs",
					     ".hgrc",
					     ".clangd",
					     "flake.nix",
					     "devbox.json",
					     ".clinerules/hooks/x",
					     ".pythonrc.py",
					     ".tmux.conf.local",
					     "x.CODE-WORKSPACE"};
	static const char *const others[] = {"",
					     "a",
					     ".git/objects/a/b",
					     ".git/refs/heads/x",
					     ".git/index",
					     ".gitignore",
					     "git/hooks/x",
					     ".gitx/config",
					     ".envrc2",
					     ".code-workspace",
					     "x.git",
					     "CLAUDE.md",
					     "AGENTS.md",
					     "model.pth",
					     "weights/a.pth",
					     "mise",
					     "lefthook",
					     ".aider.chat.history.md",
					     "site-packages/x.py",
					     ".nvmrc",
					     ".python-version"};
	for (size_t i = 0; i < sizeof(obeyed) / sizeof(obeyed[0]); i++)
		if (!obeyed_by_name(obeyed[i]))
			fail_msg("%s", obeyed[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (obeyed_by_name(others[i]))
			fail_msg("%s", others[i]);
}

static void links(void **state)
{
	(void)state;
	assert_true(link_leads_out("l", "/"));
	assert_true(link_leads_out("l", ".."));
	assert_true(link_leads_out("l", "./../x"));
	assert_true(link_leads_out("a/l", "../.."));
	assert_true(link_leads_out("a/b/l", "..//.././.."));
	assert_true(link_leads_out("a/b/l", "x/.."));
	assert_false(link_leads_out("l", "."));
	assert_false(link_leads_out("l", "a/b"));
	assert_false(link_leads_out("l", "..a/b.."));
	assert_false(link_leads_out("a/b/l", "../.././x"));
}

static void below(void **state)
{
	(void)state;
	assert_true(path_is_at_or_below("/a", "/a"));
	assert_true(path_is_at_or_below("/a/b", "/a"));
	assert_true(path_is_at_or_below("/a", "/"));
	assert_true(path_is_at_or_below("/", "/"));
	assert_false(path_is_at_or_below("/ab", "/a"));
	assert_false(path_is_at_or_below("/", "/a"));
}

/* ---- what is found ---- */

static void found(void **state)
{
	static const char *const names[] = {"a/b/c", "a-b", "x/Y", "a/b", "a/b/d", "ab", "z/1", "z/2", "z"};
	static const char *const in[] = {"a/b", "A/B/c", "a/b/x/y", "a-b", "A-B/x", "X/y", "x/y/z", "ab/c", "z", "z/3"};
	static const char *const above[] = {"a", "x", "A"};
	static const char *const others[] = {"a/bc", "a/b-", "a-", "a-bc", "abc", "x/z", "xy", "y", "zz", "", "0"};
	struct words w = {0};
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		obeyed_found_add(&w, names[i]);
	assert_int_equal(w.n, 5); /* what is below another says nothing more */
	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++)
		if (!obeyed_is_found(&w, in[i]) || !obeyed_touches_found(&w, in[i]))
			fail_msg("%s", in[i]);
	for (size_t i = 0; i < sizeof(above) / sizeof(above[0]); i++)
		if (obeyed_is_found(&w, above[i]) || !obeyed_touches_found(&w, above[i]))
			fail_msg("%s", above[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (obeyed_is_found(&w, others[i]) || obeyed_touches_found(&w, others[i]))
			fail_msg("%s", others[i]);
	assert_false(w.failed);
	words_free(&w);
}

static void found_is_bounded(void **state)
{
	char name[16];
	struct words w = {0};
	(void)state;
	for (int i = 0; i < LIMIT_OBEYED; i++) {
		snprintf(name, sizeof(name), "%d", i);
		obeyed_found_add(&w, name);
	}
	obeyed_found_add(&w, "17/below");
	assert_true(!w.failed && w.n == LIMIT_OBEYED);
	obeyed_found_add(&w, "x");
	assert_true(w.failed && w.n == LIMIT_OBEYED);
	words_free(&w);
}

/* ---- a search ---- */

static char top[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/cage-obeyed.XXXXXX");
	return mkdtemp(top) && chdir(top) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	tree_remove(top);
	return chdir("/");
}

static bool is_known(void)
{
	const struct owner us = {geteuid(), getegid()};
	struct obeyed o;
	obeyed_find(top, &us, &o);
	words_free(&o.names);
	return o.known == OBEYED_KNOWN;
}

/* Each directory has a link to another, once before it and once behind it in any order of them. */
static void links_behind_links(void **state)
{
	enum { CHAIN = 8 * LIMIT_LINK_ROUNDS };
	char dir[32], target[32], link[64];
	(void)state;
	assert_int_equal(symlink("d0", ".envrc"), 0);
	for (int i = 0; i < CHAIN; i++) {
		int next = i < CHAIN / 2 ? i + CHAIN / 2 : i - CHAIN / 2 + 1;
		snprintf(dir, sizeof(dir), "d%d", i);
		snprintf(target, sizeof(target), "../d%d", next);
		snprintf(link, sizeof(link), "%s/link", dir);
		assert_int_equal(mkdir(dir, 0700), 0);
		if (i < 2)
			assert_int_equal(symlink(target, link), 0);
	}
	assert_true(is_known());
	for (int i = 2; i < CHAIN; i++) {
		int next = i < CHAIN / 2 ? i + CHAIN / 2 : i - CHAIN / 2 + 1;
		snprintf(target, sizeof(target), "../d%d", next);
		snprintf(link, sizeof(link), "d%d/link", i);
		assert_int_equal(symlink(target, link), 0);
	}
	assert_false(is_known());
}

static void too_many_links(void **state)
{
	enum { DEEP = 15, NAME = 250, N = LIMIT_LINK_NAMES / (DEEP * (NAME + 1)) };
	char name[NAME + 1], link[16];
	(void)state;
	memset(name, 'd', NAME);
	name[NAME] = '\0';
	for (int i = 0; i < DEEP; i++)
		assert_true(mkdir(name, 0700) == 0 && chdir(name) == 0);
	for (int i = 0; i < N; i++) {
		if (i == N / 2)
			assert_true(is_known());
		snprintf(link, sizeof(link), "%d", i);
		assert_int_equal(symlink("nowhere", link), 0);
	}
	assert_false(is_known());
}

static void asked_to_end(void **state)
{
	const sigset_t asked = asked_signals();
	const struct timespec at_once = {0};
	(void)state;
	assert_true(is_known());
	assert_int_equal(sigprocmask(SIG_BLOCK, &asked, NULL), 0);
	raise(SIGTERM);
	assert_false(is_known());
	assert_int_equal(sigtimedwait(&asked, NULL, &at_once), SIGTERM); /* it is left to others */
	assert_int_equal(sigprocmask(SIG_UNBLOCK, &asked, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_name),
		cmocka_unit_test(links),
		cmocka_unit_test(below),
		cmocka_unit_test(found),
		cmocka_unit_test(found_is_bounded),
		cmocka_unit_test_setup_teardown(links_behind_links, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_many_links, set_up, tear_down),
		cmocka_unit_test_setup_teardown(asked_to_end, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
