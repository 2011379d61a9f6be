/* A workspace: CMD works on a view of a directory, and what it changed there is kept.
 *
 *	PATCH/workspace   the directory that it is about
 *	PATCH/base/       what was changed or deleted, as it was
 *	PATCH/files/      what was changed or added, as it is now
 *	PATCH/conflicts   what others have changed meanwhile: only where there is any
 *	PATCH/policy      what of the directory is part of the policy or of cage, each name with a NUL: only where there is any
 *	PATCH/diff.patch  both for readers; without diff, only where links lead */
#ifndef CAGE_ORCHESTRATOR_WORKSPACE_H
#define CAGE_ORCHESTRATOR_WORKSPACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/base/limits.h"
#include "orchestrator/obeyed.h"
#include "orchestrator/room_kind.h"
#include "orchestrator/tree.h"

struct workspace {
	char dir[LIMIT_WORKSPACE_PATH];   /* of this machine; empty: none */
	char state[LIMIT_WORKSPACE_PATH]; /* where the view is kept */
	char view[LIMIT_WORKSPACE_PATH];  /* what CMD has written: the upper directory of an overlay, or a copy */
	const struct owner *owner;        /* the user that CMD is; NULL: ours */
	struct owner dir_owner;           /* that of the directory */
	enum room_files files;
	struct tree before, shown; /* of a copy: what there was at the start, and the copy itself */
	/* Ends of the start: what is not older in the directory was changed by others, what is newer in a copy by CMD. */
	struct timespec since, copied;
	char patch[LIMIT_WORKSPACE_PATH];
	struct obeyed obeyed;                  /* looked for when the first change is found */
	char own[LIMIT_OWN_NAMES];             /* of the directory, as obeyed.h has them */
	size_t n_changes, n_conflicts, n_lost; /* lost: what could not be kept */
	size_t n_pointed;                      /* what was pointed out of those that are not listed */
};

/* Finds the directory, in which run_dir may not be. False with a message: another one has to be named. */
bool workspace_find(struct workspace *w, const char *dir, const char *run_dir);

/* Makes a place for it below run_dir, which nobody else can enter. False with a message. */
bool workspace_begin(struct workspace *w, const char *run_dir, const struct owner *owner);

/* DIR:STATE for the gate, if an overlay is worth a try. */
bool workspace_overlay(const struct workspace *w, char *out, size_t room);

/* Makes the view. False with a message. */
bool workspace_open(struct workspace *w, enum room_files files);

/* Where CMD finds it. */
const char *workspace_place(const struct workspace *w);

/* Keeps the changes below keep_dir and lists them on stderr. own: the files of cage. False with a message. */
struct own_files;
bool workspace_keep(struct workspace *w, const char *keep_dir, const struct own_files *own);

void workspace_free(struct workspace *w);

/* apply.c: makes the changes of a patch in its directory: all of them, or none where something there is not as it was, or
 * where one is obeyed by others and that was not agreed to. An exit code. */
enum apply_what { APPLY_PLAIN, APPLY_OBEYED_TOO };
int patch_apply(const char *patch, enum apply_what what);

/* patch_look.c: points out what a reader of a patch should know: what looks like a credential, and what others will run.
 * name: said first if there is anything: then it is true; NULL: it was said already. */
bool patch_look(const char *patch, const struct obeyed_in *in, const char *path, const char *name);

/* A path for people, without its control characters. room: LIMIT_SHOWN_PATH. */
const char *path_shown(const char *path, char *room);

/* The same for text that has such paths in it already. */
const char *line_shown(const char *text, char *room);

int cmd_apply(int argc, char **argv);

#endif
