/* What CMD has changed in its view of a workspace, listed and kept as a patch. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/proc/key_file.h"
#include "orchestrator/asked.h"
#include "orchestrator/diff.h"
#include "orchestrator/own_files.h"
#include "orchestrator/tree_whole.h"
#include "orchestrator/workspace.h"

/* keep_dir/TIME-PID, with its directories and the name of the workspace. */
static bool make_patch(struct workspace *w, const char *keep_dir)
{
	char path[LIMIT_WORKSPACE_PATH + 16], when[32];
	time_t now = time(NULL);
	struct tm tm;
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	if (snprintf(w->patch, sizeof(w->patch), "%s/patches/%s-%d", keep_dir, when, (int)getpid()) >=
	    (int)sizeof(w->patch))
		return false;
	snprintf(path, sizeof(path), "%s/patches", keep_dir);
	if (!key_dir_make(path) || chmod(path, 0700) != 0 || mkdir(w->patch, 0700) != 0)
		return false;
	snprintf(path, sizeof(path), "%s/base", w->patch);
	bool ok = mkdir(path, 0700) == 0;
	snprintf(path, sizeof(path), "%s/files", w->patch);
	ok = ok && mkdir(path, 0700) == 0;
	snprintf(path, sizeof(path), "%s/workspace", w->patch);
	FILE *f = ok ? fopen(path, "wex") : NULL;
	return f && fputs(w->dir, f) >= 0 && fclose(f) == 0;
}

/* ---- one change ---- */

/* What is not kept, or not as it was, keeps the patch from being applied. */
static void note_conflict(struct workspace *w, const char *path, const char *why)
{
	char name[LIMIT_WORKSPACE_PATH + 16], room[LIMIT_SHOWN_PATH];
	snprintf(name, sizeof(name), "%s/conflicts", w->patch);
	FILE *f = fopen(name, "ae");
	bool ok = f && fprintf(f, "%s: %s\n", path_shown(path, room), why) > 0;
	if ((f && fclose(f) != 0) || !ok)
		w->n_lost++;
}

/* Has somebody else changed it since CMD was started? */
static bool was_changed(const struct workspace *w, const char *path)
{
	char name[2 * LIMIT_WORKSPACE_PATH];
	struct stat st;
	snprintf(name, sizeof(name), "%s/%s", w->dir, path);
	return lstat(name, &st) != 0 || !time_is_later(w->since, st.st_ctim);
}

static bool copy_to(const struct workspace *w, const char *from, const char *kind, const char *path)
{
	char to[LIMIT_WORKSPACE_PATH + 8];
	snprintf(to, sizeof(to), "%s/%s", w->patch, kind);
	return entry_copy(from, to, path);
}

/* Copies it, and notes what is wrong with that. */
static void keep(struct workspace *w, enum change_kind kind, const char *path, const char *shown, bool is_listed)
{
	bool has_base = kind == CHANGE_ADDED || copy_to(w, w->dir, "base", path);
	int error = errno;
	bool is_kept = kind == CHANGE_DELETED || copy_to(w, w->view, "files", path);
	error = is_kept ? error : errno;
	/* Not before: what is changed while it is copied is a conflict too. */
	bool in_conflict = kind != CHANGE_ADDED && was_changed(w, path);
	if (in_conflict) {
		say("    %s was changed in the workspace too", is_listed ? "meanwhile" : shown);
		note_conflict(w, path, "was changed in the workspace while the command ran");
		w->n_conflicts++;
	}
	if (!is_kept || (!has_base && !in_conflict)) {
		say("%s can't be kept: %s", shown, strerror(error));
		note_conflict(w, path, "could not be kept");
		w->n_lost++;
	}
}

static bool keep_change(void *arg, enum change_kind kind, const char *path)
{
	struct workspace *w = arg;
	char shown[LIMIT_SHOWN_PATH], files[LIMIT_WORKSPACE_PATH + 8];
	const struct obeyed_in in = {w->dir, files, &w->obeyed, w->own};
	if (is_asked_to_end()) {
		say("asked to end");
		return false;
	}
	bool is_listed = w->n_changes++ < LIMIT_LISTED;
	snprintf(files, sizeof(files), "%s/files", w->patch);
	path_shown(path, shown);
	if (w->obeyed.known == OBEYED_NOT_YET)
		obeyed_find(w->dir, &w->dir_owner, &w->obeyed);
	if (is_listed)
		say("  %c %s", kind, shown);
	keep(w, kind, path, shown, is_listed);
	diff_add_link(w->patch, path);
	if (w->n_pointed < LIMIT_LISTED)
		w->n_pointed += patch_look(w->patch, &in, path, is_listed ? NULL : shown);
	return true;
}

/* ---- all of them ---- */

static bool find_changes(struct workspace *w)
{
	struct tree before = {0}, after = {0};
	bool ok;
	/* Root can read all, and apply it where it needs no rights of others. */
	if (geteuid() != 0 || w->dir_owner.uid != 0)
		tree_open_up(w->view);
	if (w->files == FILES_OVERLAY) {
		ok = tree_read_overlay(w->dir, w->view, &before, &after) &&
		     tree_compare(&before, &after, keep_change, w);
	} else {
		ok = tree_read(&after, w->view, TREE_OF_ALL);
		after.since = w->copied;
		after.then = &w->shown;
		ok = ok && tree_compare(&w->before, &after, keep_change, w);
	}
	tree_free(&before);
	tree_free(&after);
	return ok;
}

/* Files of the policy that lie in the workspace: for cage apply, which knows no policy. */
static bool note_own(struct workspace *w, const struct own_files *own)
{
	char path[LIMIT_WORKSPACE_PATH + 16];
	size_t len = 0;
	if (!own_files_names(own, w->dir, w->own)) {
		errno = ENAMETOOLONG;
		return false;
	}
	while (w->own[len])
		len += strlen(w->own + len) + 1;
	if (len == 0)
		return true;
	snprintf(path, sizeof(path), "%s/policy", w->patch);
	FILE *f = fopen(path, "wex");
	bool ok = f && fwrite(w->own, 1, len, f) == len;
	return f && fclose(f) == 0 && ok;
}

bool workspace_keep(struct workspace *w, const char *keep_dir, const struct own_files *own)
{
	if (!make_patch(w, keep_dir) || !note_own(w, own)) {
		say("the changes can't be kept in %s: %s", keep_dir, strerror(errno));
		return false;
	}
	say("changes in %s%s:", w->dir, w->files == FILES_OVERLAY ? "" : ", of which the command had a copy");
	bool ok = find_changes(w);
	if (w->n_changes > LIMIT_LISTED)
		say("  and %zu more", w->n_changes - LIMIT_LISTED);
	if (w->n_pointed == LIMIT_LISTED)
		say("  and of these more than can be pointed out");
	if (w->n_changes == 0 && ok)
		say("  none");
	else
		diff_add_files(w->patch);
	return ok && w->n_lost == 0;
}
