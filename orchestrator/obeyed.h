/* What programs of this machine run or obey without being asked: a patch that changes it is no longer only a change of
 * files. Code of a project is not meant, which is run by those who ask for it. */
#ifndef CAGE_ORCHESTRATOR_OBEYED_H
#define CAGE_ORCHESTRATOR_OBEYED_H

#include "orchestrator/tree.h"
#include "orchestrator/words.h"

/* Names below a workspace that something in it, or above it, makes obeyed: what configurations of git name, and where links
 * lead that are obeyed. All of them are known, or not all, and then any name may be one. */
struct obeyed {
	enum { OBEYED_NOT_YET, OBEYED_KNOWN, OBEYED_UNKNOWN } known;
	struct words names; /* as obeyed_found.c has them */
};

/* Where it is looked for. */
struct obeyed_in {
	const char *dir;            /* the workspace */
	const char *files;          /* what was changed or added, as it is now */
	const struct obeyed *found; /* of obeyed_find() */
	const char *own;            /* names below it of files of cage, each with a NUL, and one more NUL */
};

/* Why a changed path is more than a file, for people: "is something that ..."; NULL: it is not. */
const char *obeyed_why(const struct obeyed_in *in, const char *path);

/* Is it what commits, branches and merges write in a repository of git? git believes what it finds there: names in the index, files
 * in commits. */
bool obeyed_is_history(const struct obeyed_in *in, const char *path);

/* Root looks through a workspace with the rights of its owner; what root and the owner have told git both counts. Whoever asks
 * us to end meanwhile ends the search, and not all is known then. */
void obeyed_find(const char *dir, const struct owner *owner, struct obeyed *out);

#endif
