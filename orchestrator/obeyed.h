/* What programs of this machine run or obey without being asked: a patch that changes it is no longer only a change of
 * files. Code of a project is not meant, which is run by those who ask for it. */
#ifndef CAGE_ORCHESTRATOR_OBEYED_H
#define CAGE_ORCHESTRATOR_OBEYED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/limits.h"

/* Where it is looked for. */
struct obeyed_in {
	const char *dir;   /* the workspace */
	const char *files; /* what was changed or added, as it is now */
	const char *hooks; /* where the repository says that its hooks are, below the workspace; empty: it does not */
	const char *own;   /* names below it of files of the policy and of cage, each with a NUL, and one more NUL */
};

/* Why a changed path is more than a file, for people: "is something that ..."; NULL: it is not. */
const char *obeyed_why(const struct obeyed_in *in, const char *path);

/* hooks_path.c: for obeyed_in. */
void obeyed_find_hooks(const char *dir, char out[LIMIT_WORKSPACE_PATH]);

/* By its name alone. */
bool obeyed_by_name(const char *path);

/* Does a link of that name lead out of the root, or can it do so once others have changed? */
bool link_leads_out(const char *path, const char *target);

#endif
