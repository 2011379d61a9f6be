/* What programs of this machine run or obey without being asked: a patch that changes it is no longer only a change of
 * files. Code of a project is not meant, which is run by those who ask for it. */
#ifndef CAGE_ORCHESTRATOR_OBEYED_H
#define CAGE_ORCHESTRATOR_OBEYED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/slice.h"
#include "orchestrator/words.h"

/* Where it is looked for. */
struct obeyed_in {
	const char *dir;           /* the workspace */
	const char *files;         /* what was changed or added, as it is now */
	const struct words *found; /* of obeyed_find() */
	const char *own;           /* names below it of files of cage, each with a NUL, and one more NUL */
};

/* Why a changed path is more than a file, for people: "is something that ..."; NULL: it is not. */
const char *obeyed_why(const struct obeyed_in *in, const char *path);

/* obeyed_find.c: names below the workspace that something in it, or above it, makes obeyed: what configurations of git name, and
 * where links lead that are obeyed. failed: not all of them are known, and any name may be one. */
void obeyed_find(const char *dir, struct words *out);

/* Is a path the same as one of them, or below it? */
bool obeyed_is_found(const struct words *found, const char *path);

/* obeyed_git.c: the same for the repository of the .git in that directory, or for one that the directory itself is, if there is
 * one. dir: the workspace, by its real name. */
void obeyed_find_git(const char *dir, const char *parent, struct words *out);
void obeyed_find_bare(const char *dir, const char *repository, struct words *out);

/* Adds what decides which file an absolute path leads to, if it is in the workspace. */
void obeyed_add(const char *dir, const char *path, struct words *out);

/* obeyed_names.c: by its name alone. */
bool obeyed_by_name(const char *path);

/* Of what is below a repository: do commits, branches and merges write it, and nothing runs it? */
bool obeyed_is_commit(struct slice below);

/* Does a link of that name lead out of the root, or can it do so once others have changed? */
bool link_leads_out(const char *path, const char *target);

#endif
