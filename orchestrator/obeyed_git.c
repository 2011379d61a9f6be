/* Where configurations of git lie that count in a workspace: in repositories, in homes, and one of the machine. Those of users
 * count for each repository, and are read once. No git is run for it. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "orchestrator/obeyed_private.h"

static void read_in(const struct git_scope *scope, const char *dir, const char *name, enum git_closed closed)
{
	char path[LIMIT_WORKSPACE_PATH + 32];
	if (snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path))
		git_config_obey(scope, path, closed);
	else
		scope->search->out->failed = true;
}

/* ---- users ---- */

static void read_home(struct obeyed_search *s, char home[LIMIT_WORKSPACE_PATH], const char *name,
		      enum git_closed closed)
{
	const struct git_scope scope = {.search = s, .home = home};
	if (snprintf(home, LIMIT_WORKSPACE_PATH, "%s", name) >= LIMIT_WORKSPACE_PATH)
		s->out->failed = true;
	if (!home[0])
		return;
	read_in(&scope, home, ".config/git/config", closed);
	read_in(&scope, home, ".gitconfig", closed);
}

void obeyed_find_ours(struct obeyed_search *s)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	const struct git_scope scope = {.search = s, .home = home ? home : ""};
	git_config_obey(&scope, "/etc/gitconfig", CLOSED_IS_NONE);
	if (config && config[0])
		read_in(&scope, config, "git/config", CLOSED_IS_NONE);
	read_home(s, s->homes[0], scope.home, CLOSED_IS_NONE);
}

/* Whom this machine does not know has no home here. */
void obeyed_find_of_user(struct obeyed_search *s, uid_t uid)
{
	char room[LIMIT_WORKSPACE_PATH];
	struct passwd user, *found = NULL;
	const int error = getpwuid_r(uid, &user, room, sizeof(room), &found);
	if (error != 0 && error != ENOENT)
		s->out->failed = true;
	if (found)
		read_home(s, s->homes[1], found->pw_dir, CLOSED_IS_UNKNOWN);
}

/* ---- repositories ---- */

/* A worktree has its own place in the repository that it belongs to, and shares the rest. */
static void read_git_dir(const struct git_scope *scope, const char *git_dir)
{
	char common[LIMIT_WORKSPACE_PATH], hooks[LIMIT_WORKSPACE_PATH + 8];
	if (!git_pointer_read(scope, git_dir, "commondir", SLICE(""), common))
		snprintf(common, sizeof(common), "%s", git_dir);
	snprintf(hooks, sizeof(hooks), "%s/hooks", common);
	obeyed_add(scope->search, hooks);
	read_in(scope, common, "config", CLOSED_IS_UNKNOWN);
	read_in(scope, git_dir, "config.worktree", CLOSED_IS_UNKNOWN);
}

/* What it says of a home is said of that of whoever works there. */
static void read_repository(const struct git_scope *scope, const char *git_dir)
{
	const struct obeyed_search *s = scope->search;
	struct git_scope other = *scope;
	read_git_dir(scope, git_dir);
	other.home = s->homes[1];
	if (other.home[0])
		read_git_dir(&other, git_dir);
	for (size_t i = 0; i < s->everywhere.n; i++)
		git_path_obey(scope, slice_str(s->everywhere.list[i]));
}

void obeyed_find_git(struct obeyed_search *s, const char *parent)
{
	const struct git_scope scope = {.search = s, .top = parent, .home = s->homes[0]};
	char path[LIMIT_WORKSPACE_PATH + 8], git_dir[LIMIT_WORKSPACE_PATH];
	struct stat st;
	snprintf(path, sizeof(path), "%s/.git", parent);
	if (stat(path, &st) != 0) {
		s->out->failed = s->out->failed || (errno != ENOENT && errno != ENOTDIR && errno != ELOOP);
		return;
	}
	const bool is_found = S_ISDIR(st.st_mode)
				      ? snprintf(git_dir, sizeof(git_dir), "%s", path) < (int)sizeof(git_dir)
				      : git_pointer_read(&scope, parent, ".git", SLICE("gitdir:"), git_dir);
	if (is_found)
		read_repository(&scope, git_dir);
}

static bool has(const void *dir, const char *name)
{
	char path[LIMIT_WORKSPACE_PATH + 16];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", (const char *)dir, name);
	return stat(path, &st) == 0;
}

/* All in it but what commits write is obeyed anyway; of that, links may lead elsewhere. */
void obeyed_find_bare(struct obeyed_search *s, const char *repository)
{
	const struct git_scope scope = {.search = s, .top = repository, .home = s->homes[0]};
	if (!obeyed_is_repository(has, repository))
		return;
	git_path_obey(&scope, SLICE("hooks"));
	git_path_obey(&scope, SLICE("config"));
	read_repository(&scope, repository);
}
