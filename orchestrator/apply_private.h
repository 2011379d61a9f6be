/* What the files of cage apply share. */
#ifndef CAGE_ORCHESTRATOR_APPLY_PRIVATE_H
#define CAGE_ORCHESTRATOR_APPLY_PRIVATE_H

#include <signal.h>

#include "core/base/limits.h"
#include "orchestrator/tree.h"
#include "orchestrator/workspace.h"

/* The workspace is where we are while it is applied, so that nobody can put another directory in its place. */
#define APPLY_ROOT "."

#define APPLY_PLACE 40

struct patch {
	char shown[LIMIT_SHOWN_PATH]; /* the workspace, for people */
	struct owner owner;           /* of it */
	int dir, back;                /* the workspace, and where we were */
	char top[LIMIT_WORKSPACE_PATH], base[LIMIT_WORKSPACE_PATH + 16], files[LIMIT_WORKSPACE_PATH + 16];
	struct obeyed found;                     /* as obeyed.h has it, ... */
	char own[LIMIT_OWN_NAMES];               /* ... and this too */
	char stage[32];                          /* in the workspace; empty: none */
	int old_fd, new_fd;                      /* directories in it, ... */
	char old[APPLY_PLACE], new[APPLY_PLACE]; /* ... and names that lead to them; -1: there are none */
	sigset_t mask;                           /* of signals, as it was */
	char lent[LIMIT_WORKSPACE_PATH + 16];    /* a copy of base and files for the owner; empty: none */
	int lent_fds[2];                         /* of these; -1: not open */
	struct tree before, after;
	size_t conflicts, obeyed, left; /* left: what git alone writes, which was not asked for */
	size_t not_undone;
	size_t taken, made; /* how many are out of the way, and how many are in place, or gone */
};

/* apply_open.c: reads what a patch says of itself and goes to its workspace. False with a message. */
bool patch_open(struct patch *p, const char *path);
void patch_close(struct patch *p);

/* What was found at the end of the run is said and counted. False with a message. */
bool patch_read_conflicts(struct patch *p);

/* apply_lend.c: root, who has the rights of the owner of the workspace while it is applied, could not read the patch then; the
 * owner gets a copy. base and files are in it from then on. False with a message. */
bool patch_lend(struct patch *p);
void patch_end_lending(struct patch *p);

/* apply_make.c: who asks us to end waits from here to there. */
void patch_hold_signals(struct patch *p);
void patch_let_signals(const struct patch *p);

/* Has one of them come? Then that is said. */
bool patch_must_end(void);

/* All changes, or none, or, where that can't be undone, some. False with a message. */
bool patch_make(struct patch *p);

/* Removes what that needed. */
void patch_clean(struct patch *p);

/* Says the errno of a path in the workspace, and is false. */
bool patch_failed(const char *path);

#endif
