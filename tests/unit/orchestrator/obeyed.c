/* Names that programs of a host obey, and links that lead out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "orchestrator/below.h"
#include "orchestrator/obeyed.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(by_name), cmocka_unit_test(links), cmocka_unit_test(below)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
