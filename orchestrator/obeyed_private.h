/* What the files that look for what is obeyed share. */
#ifndef CAGE_ORCHESTRATOR_OBEYED_PRIVATE_H
#define CAGE_ORCHESTRATOR_OBEYED_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/base/limits.h"
#include "core/base/slice.h"
#include "orchestrator/obeyed.h"

/* One of them. */
struct obeyed_search {
	const char *dir;         /* the workspace, by its real name */
	struct words links;      /* of it, all of them; empty ones were followed */
	size_t n_bytes;          /* of their names */
	struct words everywhere; /* what users have told git of every repository: paths that begin where it works */
	char homes[2][LIMIT_WORKSPACE_PATH]; /* ours, and that of the owner; empty: not known */
	size_t n_files, n_looks;             /* what was read, and looked at */
	struct words *out;                   /* failed: not all are known */
};

/* obeyed_find.c: is there a use in looking on? Not where something is unknown already, or where we are asked to end. */
bool obeyed_goes_on(struct obeyed_search *s);

/* Adds what decides which file an absolute path leads to, if it is in the workspace. */
void obeyed_add(struct obeyed_search *s, const char *path);

/* obeyed_config.c: configurations of git. */

struct git_scope {
	struct obeyed_search *search;
	const char *top;  /* where git works, and paths begin; NULL: in any repository */
	const char *home; /* empty: not known */
};

/* git passes over those of a user that this user may not read. Others may be read by somebody. */
enum git_closed { CLOSED_IS_UNKNOWN, CLOSED_IS_NONE };

void git_config_obey(const struct git_scope *scope, const char *path, enum git_closed closed);

/* A setting that is a path. */
void git_path_obey(const struct git_scope *scope, struct slice path);

/* The path in a file of one line, which begins where the file is; false: there is none. */
bool git_pointer_read(const struct git_scope *scope, const char *dir, const char *name, struct slice before,
		      char to[LIMIT_WORKSPACE_PATH]);

/* obeyed_git.c: what the repository of the .git in that directory makes obeyed, or one that the directory itself is, if there
 * is one. */
void obeyed_find_git(struct obeyed_search *s, const char *parent);
void obeyed_find_bare(struct obeyed_search *s, const char *repository);

/* The same for all repositories, of who we are and of the machine, or of another user. */
void obeyed_find_ours(struct obeyed_search *s);
void obeyed_find_of_user(struct obeyed_search *s, uid_t uid);

/* obeyed_found.c: sorted names, none of them below another. */
void obeyed_found_add(struct words *found, const char *name);

/* Is a path the same as one of them, or below it? Or, touching, also above one? */
bool obeyed_is_found(const struct words *found, const char *path);
bool obeyed_touches_found(const struct words *found, const char *path);

/* obeyed_names.c: by its name alone. */
bool obeyed_by_name(const char *path);

/* Of what is below a repository: do commits, branches and merges write it, and nothing runs it? */
bool obeyed_is_commit(struct slice below);

/* Does git take a directory of any name, which has this and that in it, for a repository? */
typedef bool obeyed_has(const void *dir, const char *name);
bool obeyed_is_repository(obeyed_has *has, const void *dir);

/* obeyed.c: does a link of that name lead out of the root, or can it do so once others have changed? */
bool link_leads_out(const char *path, const char *target);

#endif
