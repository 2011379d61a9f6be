/* Names count whatever their case, since some file systems have none, and at any depth: every directory may be somebody's
 * project. Of a repository that is all but what a commit writes. */
#include "orchestrator/obeyed_private.h"

/* Files, or directories with all that is in them. */
static const struct slice names[] = {
	/* git, and what hangs hooks into it */
	WORD(".gitmodules"), WORD(".gitattributes"), WORD(".gitconfig"), WORD(".githooks"), WORD("githooks"),
	WORD("git-hooks"), WORD(".husky"), WORD(".pre-commit-config.yaml"), WORD(".pre-commit-config.yml"),
	WORD(".pre-commit-hooks.yaml"), WORD(".overcommit.yml"), WORD(".hg"), WORD(".hgrc"), WORD(".svn"), WORD(".jj"),
	/* editors, debuggers and containers for them */
	WORD(".vscode"), WORD(".idea"), WORD(".vs"), WORD(".zed"), WORD(".fleet"), WORD(".settings"),
	WORD(".devcontainer"), WORD(".devcontainer.json"), WORD(".gitpod.yml"), WORD(".exrc"), WORD(".lvimrc"),
	WORD(".vim"), WORD(".nvim"), WORD(".dir-locals.el"), WORD(".dir-locals-2.el"), WORD(".emacs"), WORD(".emacs.d"),
	WORD(".ycm_extra_conf.py"), WORD(".helix"), WORD(".bsp"), WORD("hie.yaml"), WORD(".lazy.lua"),
	WORD(".pylintrc"), WORD(".clangd"), WORD(".gdbearlyinit"), WORD(".pdbrc"),
	/* agents and their servers */
	WORD(".claude"), WORD(".claude.json"), WORD(".mcp.json"), WORD("mcp.json"), WORD(".cursor"), WORD(".codex"),
	WORD(".gemini"), WORD(".qwen"), WORD(".opencode"), WORD("opencode.json"), WORD("opencode.jsonc"),
	WORD(".windsurf"), WORD(".continue"), WORD(".roo"), WORD(".cline"), WORD(".clinerules"), WORD(".kiro"),
	WORD(".openhands"), WORD(".amazonq"), WORD(".crush.json"), WORD("crush.json"), WORD(".aider.conf.yml"),
	WORD(".aider.model.settings.yml"),
	/* shells, and what they run when a directory is entered */
	WORD(".envrc"), WORD(".env"), WORD(".direnv"), WORD(".shadowenv.d"), WORD(".prototools"),
	WORD(".tool-versions"), WORD(".bashrc"), WORD(".bash_profile"), WORD(".bash_login"), WORD(".bash_logout"),
	WORD(".bash_aliases"), WORD(".profile"), WORD(".zshrc"), WORD(".zshenv"), WORD(".zprofile"), WORD(".zlogin"),
	WORD(".zlogout"), WORD(".kshrc"), WORD(".cshrc"), WORD(".tcshrc"), WORD(".login"), WORD(".inputrc"),
	WORD(".screenrc"), WORD(".xprofile"), WORD(".xinitrc"), WORD(".xsession"), WORD(".pam_environment"),
	WORD("flake.nix"), WORD("flake.lock"), WORD("shell.nix"), WORD("devenv.nix"), WORD("devbox.json"),
	/* package managers: where they get things from, and what they run */
	WORD(".npmrc"), WORD(".yarn"), WORD("bunfig.toml"), WORD(".bunfig.toml"), WORD(".bundle"), WORD(".gemrc"),
	WORD(".cargo"), WORD(".mvn"), WORD("pip.conf"), WORD(".pypirc"), WORD(".condarc"), WORD("nuget.config"),
	WORD(".bazelrc"), WORD("rust-toolchain"), WORD("rust-toolchain.toml"),
	/* interpreters that begin with it */
	WORD(".rprofile"), WORD(".renviron"), WORD(".ghci"), WORD(".irbrc"), WORD(".pryrc"), WORD(".psqlrc"),
	WORD(".sqliterc"), WORD(".ocamlinit"), WORD(".octaverc"), WORD(".iex.exs"), WORD(".perldb"), WORD(".user.ini"),
	WORD(".htaccess"), WORD("sitecustomize.py"), WORD("usercustomize.py"),
	/* of a home */
	WORD(".ssh"), WORD(".gnupg"), WORD(".config"), WORD(".local"), WORD(".netrc"), WORD(".curlrc"), WORD(".wgetrc"),
	WORD(".docker"), WORD(".kube"), WORD(".aws"), WORD(".azure")};

/* The same for what begins so: such files come in several forms, and with something for each machine. */
static const struct slice beginnings[] = {
	WORD(".lefthook"),     WORD("lefthook."),  WORD("lefthook-local."), WORD(".huskyrc"),   WORD(".lintstagedrc"),
	WORD(".vimrc"),        WORD(".nvimrc"),    WORD(".nvim."),          WORD(".gdbinit"),   WORD(".lldbinit"),
	WORD(".envrc."),       WORD(".env."),      WORD(".autoenv"),        WORD(".mise"),      WORD("mise."),
	WORD(".rtx."),         WORD(".tmux.conf"), WORD(".yarnrc"),         WORD(".pnpmfile."), WORD(".pythonrc"),
	WORD(".pythonstartup")};

static const struct slice endings[] = {WORD(".code-workspace"), WORD(".sublime-project")};

/* Where Python reads files whose lines it runs, if they end so. Elsewhere they are something else, such as weights of a model. */
static const struct slice packages[] = {WORD("site-packages"), WORD("dist-packages"), WORD(".venv"), WORD("venv")};
static const struct slice package_endings[] = {WORD(".pth")};

#define N(table) (sizeof(table) / sizeof((table)[0]))

static bool has_beginning(struct slice name)
{
	for (size_t i = 0; i < N(beginnings); i++)
		if (slice_ieq(slice_head(name, beginnings[i].len), beginnings[i]))
			return true;
	return false;
}

static bool has_ending(struct slice name, const struct slice *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (name.len > table[i].len && slice_ieq(slice_from(name, name.len - table[i].len), table[i]))
			return true;
	return false;
}

bool obeyed_is_commit(struct slice below)
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

bool obeyed_is_repository(obeyed_has *has, const void *dir)
{
	return has(dir, "HEAD") && (has(dir, "objects") || has(dir, "commondir"));
}

bool obeyed_by_name(const char *path)
{
	struct slice rest = slice_str(path);
	bool is_in_packages = false;
	while (rest.len > 0) {
		struct slice name = slice_cut(&rest, '/');
		if (slice_ieq(name, SLICE(".git")) && !obeyed_is_commit(rest))
			return true;
		if (slice_is_one_of(name, names, N(names)) || has_beginning(name) ||
		    has_ending(name, endings, N(endings)))
			return true;
		if (is_in_packages && has_ending(name, package_endings, N(package_endings)))
			return true;
		is_in_packages = is_in_packages || slice_is_one_of(name, packages, N(packages));
	}
	return false;
}
