/* The files of cage itself, and what of them a room may see. Whoever can change them, or the directories above them, decides
 * what the next run lets out. */
#ifndef CAGE_ORCHESTRATOR_OWN_FILES_H
#define CAGE_ORCHESTRATOR_OWN_FILES_H

#include "orchestrator/words.h"
#include "orchestrator/workspace.h"

enum own_kind {
	OWN_RUN,     /* the directory of this run, beside which those of others are: never to be seen */
	OWN_KEYS,    /* a directory of a CA: never to be seen */
	OWN_SECRET,  /* a file with the value of a secret: never to be seen */
	OWN_LOG,     /* never to be changed */
	OWN_POLICY,  /* ... and what belongs to it: includes, certificates */
	OWN_PROGRAM, /* of cage, and directories of ready policies: what the next run is made of */
	OWN_KINDS
};

struct own_files {
	struct words paths[OWN_KINDS];
	struct words room; /* for the gate: what hides them, and what keeps them from being changed */
};

/* Also one that is not there yet. The links that lead to it are as much as the file (own_trace.h). */
void own_files_add(struct own_files *f, enum own_kind kind, const char *path);

/* asked: the options of the room, such as --bind SRC:DST; workspace: empty if there is none. False with a message: something
 * of it would show what must not be seen or changed, and can't be shown without it. */
bool own_files_check(struct own_files *f, const struct words *asked, const struct workspace *w, enum room_files files);

/* The names below dir of all of them, as obeyed.h has them. False: there are too many, or dir is gone. */
bool own_files_names(const struct own_files *f, const char *dir, char out[LIMIT_OWN_NAMES]);

void own_files_free(struct own_files *f);

#endif
