/* Names count whatever their case, since some file systems have none, and at any depth: every directory may be somebody's
 * project. Of a repository that is all but what a commit writes. */
#include "orchestrator/obeyed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/slice.h"
#include "orchestrator/below.h"

/* Files, or directories with all that is in them. */
static const struct slice names[] = {
	/* git, and what hangs hooks into it */
	WORD(".gitmodules"), WORD(".gitattributes"), WORD(".gitconfig"), WORD(".githooks"), WORD("githooks"),
	WORD("git-hooks"), WORD(".husky"), WORD(".huskyrc"), WORD(".pre-commit-config.yaml"),
	WORD(".pre-commit-config.yml"), WORD(".pre-commit-hooks.yaml"), WORD("lefthook.yml"), WORD(".lefthook.yml"),
	WORD("lefthook.yaml"), WORD(".lefthook.yaml"), WORD("lefthook-local.yml"), WORD(".lefthook"),
	WORD(".lefthook-local"), WORD(".overcommit.yml"), WORD(".lintstagedrc"), WORD(".hg"), WORD(".svn"), WORD(".jj"),
	/* editors, debuggers and containers for them */
	WORD(".vscode"), WORD(".idea"), WORD(".vs"), WORD(".zed"), WORD(".fleet"), WORD(".settings"),
	WORD(".devcontainer"), WORD(".devcontainer.json"), WORD(".gitpod.yml"), WORD(".vimrc"), WORD(".exrc"),
	WORD(".nvimrc"), WORD(".nvim.lua"), WORD(".lvimrc"), WORD(".vim"), WORD(".dir-locals.el"),
	WORD(".dir-locals-2.el"), WORD(".emacs"), WORD(".emacs.d"), WORD(".ycm_extra_conf.py"), WORD(".gdbinit"),
	WORD(".lldbinit"), WORD(".pdbrc"),
	/* agents and their servers */
	WORD(".claude"), WORD(".claude.json"), WORD(".mcp.json"), WORD("mcp.json"), WORD(".cursor"), WORD(".codex"),
	WORD(".gemini"), WORD(".qwen"), WORD(".opencode"), WORD("opencode.json"), WORD("opencode.jsonc"),
	WORD(".windsurf"), WORD(".continue"), WORD(".roo"), WORD(".cline"), WORD(".kiro"), WORD(".amazonq"),
	WORD(".crush.json"), WORD("crush.json"), WORD(".aider.conf.yml"),
	/* shells, and what they run when a directory is entered */
	WORD(".envrc"), WORD(".env"), WORD(".autoenv"), WORD(".autoenv.zsh"), WORD(".mise"), WORD(".mise.toml"),
	WORD("mise.toml"), WORD("mise.local.toml"), WORD(".tool-versions"), WORD(".bashrc"), WORD(".bash_profile"),
	WORD(".bash_login"), WORD(".bash_logout"), WORD(".bash_aliases"), WORD(".profile"), WORD(".zshrc"),
	WORD(".zshenv"), WORD(".zprofile"), WORD(".zlogin"), WORD(".zlogout"), WORD(".kshrc"), WORD(".cshrc"),
	WORD(".tcshrc"), WORD(".login"), WORD(".inputrc"), WORD(".tmux.conf"), WORD(".screenrc"), WORD(".xprofile"),
	WORD(".xinitrc"), WORD(".xsession"), WORD(".pam_environment"),
	/* package managers: where they get things from, and what they run */
	WORD(".npmrc"), WORD(".yarnrc"), WORD(".yarnrc.yml"), WORD(".yarn"), WORD(".pnpmfile.cjs"), WORD("bunfig.toml"),
	WORD(".bundle"), WORD(".gemrc"), WORD(".cargo"), WORD(".mvn"), WORD("pip.conf"), WORD(".pypirc"),
	WORD(".condarc"), WORD("nuget.config"), WORD(".bazelrc"),
	/* interpreters that begin with it */
	WORD(".rprofile"), WORD(".renviron"), WORD(".ghci"), WORD(".irbrc"), WORD(".pryrc"), WORD(".psqlrc"),
	WORD(".sqliterc"), WORD(".ocamlinit"), WORD("sitecustomize.py"), WORD("usercustomize.py"),
	/* of a home */
	WORD(".ssh"), WORD(".gnupg"), WORD(".config"), WORD(".local"), WORD(".netrc"), WORD(".curlrc"), WORD(".wgetrc"),
	WORD(".docker"), WORD(".kube"), WORD(".aws"), WORD(".azure")};

static const struct slice endings[] = {WORD(".code-workspace"), WORD(".sublime-project")};

#define N(table) (sizeof(table) / sizeof((table)[0]))

static bool is_one_of(struct slice name, const struct slice *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (slice_ieq(name, table[i]))
			return true;
	return false;
}

static bool has_ending(struct slice name)
{
	for (size_t i = 0; i < N(endings); i++)
		if (name.len > endings[i].len && slice_ieq(slice_from(name, name.len - endings[i].len), endings[i]))
			return true;
	return false;
}

/* ---- repositories ---- */

/* What commits, branches and merges write below .git, and nothing runs. */
static bool is_written_by_commits(struct slice below)
{
	static const struct slice files[] = {
		WORD("index"),          WORD("HEAD"),        WORD("ORIG_HEAD"),        WORD("FETCH_HEAD"),
		WORD("MERGE_HEAD"),     WORD("MERGE_MSG"),   WORD("MERGE_MODE"),       WORD("AUTO_MERGE"),
		WORD("COMMIT_EDITMSG"), WORD("packed-refs"), WORD("CHERRY_PICK_HEAD"), WORD("REVERT_HEAD"),
		WORD("SQUASH_MSG")};
	static const struct slice dirs[] = {WORD("objects/"), WORD("refs/"), WORD("logs/")};
	if (slice_ieq(below, SLICE("objects/info/alternates")) ||
	    slice_ieq(below, SLICE("objects/info/http-alternates")))
		return false;
	for (size_t i = 0; i < N(files); i++)
		if (slice_eq(below, files[i]))
			return true;
	for (size_t i = 0; i < N(dirs); i++)
		if (slice_starts(below, dirs[i]))
			return true;
	return false;
}

bool obeyed_by_name(const char *path)
{
	struct slice rest = slice_str(path);
	while (rest.len > 0) {
		struct slice name = slice_cut(&rest, '/');
		if (slice_ieq(name, SLICE(".git")) && !is_written_by_commits(rest))
			return true;
		if (is_one_of(name, names, N(names)) || has_ending(name))
			return true;
	}
	return false;
}

/* What can't be looked at may be. */
static bool is_there(const char *root, struct slice dir, const char *name)
{
	char path[2 * LIMIT_WORKSPACE_PATH + 16];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%.*s%s", root, SLICE_FMT(dir), name);
	return lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

static bool will_be_there(const struct obeyed_in *in, struct slice dir, const char *name)
{
	return is_there(in->files, dir, name) || is_there(in->dir, dir, name);
}

/* git takes a directory of any name for a repository that has these, and then obeys what else is in it. */
static bool is_repository(const struct obeyed_in *in, struct slice dir)
{
	return will_be_there(in, dir, "HEAD") &&
	       (will_be_there(in, dir, "objects") || will_be_there(in, dir, "commondir"));
}

static bool is_in_repository(const struct obeyed_in *in, const char *path)
{
	struct slice all = slice_str(path);
	for (size_t at = 0; at < all.len; at += slice_find(slice_from(all, at), '/') + 1)
		if (is_repository(in, slice_head(all, at)) && !is_written_by_commits(slice_from(all, at)))
			return true;
	return false;
}

/* ---- links ---- */

/* Only at the beginning of a target it is known where ".." leads: a name before it may become a link one day. */
bool link_leads_out(const char *path, const char *target)
{
	struct slice rest = slice_str(target), dir = slice_str(path);
	size_t depth = 0;
	bool has_name = false;
	if (target[0] == '/')
		return true;
	for (size_t i = 0; i < dir.len; i++)
		depth += dir.ptr[i] == '/';
	while (rest.len > 0) {
		struct slice name = slice_cut(&rest, '/');
		if (slice_eq(name, SLICE(".."))) {
			if (has_name || depth == 0)
				return true;
			depth--;
		} else if (name.len > 0 && !slice_eq(name, SLICE("."))) {
			has_name = true;
		}
	}
	return false;
}

/* A link of the workspace that was there before may lead out, and this one over it. */
static bool leads_over_another(const char *dir, const char *path, const char *target)
{
	char name[3 * LIMIT_WORKSPACE_PATH];
	struct slice way = slice_str(path);
	size_t slash = slice_rfind(way, '/');
	snprintf(name, sizeof(name), "%s/%.*s/%s", dir, slash == way.len ? 0 : (int)slash, path, target);
	char *root = realpath(dir, NULL), *real = realpath(name, NULL);
	bool out = !root || (real && !path_is_at_or_below(real, root));
	free(root);
	free(real);
	return out;
}

static bool leads_out(const struct obeyed_in *in, const char *path)
{
	char name[2 * LIMIT_WORKSPACE_PATH], target[LIMIT_WORKSPACE_PATH];
	snprintf(name, sizeof(name), "%s/%s", in->files, path);
	ssize_t n = readlink(name, target, sizeof(target) - 1);
	if (n < 0)
		return errno != EINVAL && errno != ENOENT && errno != ENOTDIR; /* what can't be looked at may do so */
	target[n] = '\0';
	return link_leads_out(path, target) || leads_over_another(in->dir, path, target);
}

/* ---- all of it ---- */

static bool is_at_or_below(struct slice path, struct slice dir)
{
	return slice_ieq(slice_head(path, dir.len), dir) && (path.len == dir.len || path.ptr[dir.len] == '/');
}

/* Also what takes the place of a directory above it: a link there leads to another file. */
static bool is_own(const struct obeyed_in *in, const char *path)
{
	struct slice changed = slice_str(path);
	for (const char *name = in->own; *name; name += strlen(name) + 1) {
		struct slice own = slice_str(name);
		if (is_at_or_below(own, changed) || is_at_or_below(changed, own))
			return true;
	}
	return false;
}

static bool is_hook(const struct obeyed_in *in, const char *path)
{
	struct slice dir = slice_str(in->hooks), all = slice_str(path);
	return dir.len > 0 && is_at_or_below(all, dir);
}

const char *obeyed_why(const struct obeyed_in *in, const char *path)
{
	if (obeyed_by_name(path) || is_hook(in, path) || is_in_repository(in, path))
		return "is something that programs outside of the room run or obey";
	if (is_own(in, path))
		return "belongs to the policy of the run, or to cage itself";
	if (leads_out(in, path))
		return "is a link that leads out of the workspace";
	return NULL;
}
