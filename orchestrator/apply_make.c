/* Making the changes of a patch. All that is new is written beside, and then put into place by renaming, which is undone if
 * it fails halfway. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/apply_private.h"
#include "orchestrator/asked.h"
#include "orchestrator/tree_whole.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

bool patch_failed(const char *path)
{
	char room[LIMIT_SHOWN_PATH];
	int error = errno;
	say("%s: %s", path_shown(path, room), strerror(error));
	return false;
}

/* ---- doing ---- */

/* Whoever owns the workspace can put another directory in the place of ours, so it is known by its descriptor. */
static bool make_place(int stage, const char *name, int *fd, char path[APPLY_PLACE])
{
	*fd = mkdirat(stage, name, 0700) == 0 ? openat(stage, name, DIR_FLAGS) : -1;
	snprintf(path, APPLY_PLACE, "/proc/self/fd/%d/.", *fd);
	return *fd >= 0;
}

static bool make_stage(struct patch *p)
{
	snprintf(p->stage, sizeof(p->stage), APPLY_ROOT "/.cage-apply.XXXXXX");
	if (!mkdtemp(p->stage)) {
		p->stage[0] = '\0';
		return patch_failed(p->shown);
	}
	int stage = open(p->stage, DIR_FLAGS);
	bool ok = stage >= 0 && make_place(stage, "old", &p->old_fd, p->old) &&
		  make_place(stage, "new", &p->new_fd, p->new);
	if (!ok)
		patch_failed(p->stage);
	if (stage >= 0)
		close(stage);
	return ok;
}

/* Who asks us to end gets all of it or nothing: until files are put into place it is nothing. */
void patch_hold_signals(struct patch *p)
{
	sigset_t asked = asked_signals();
	sigprocmask(SIG_BLOCK, &asked, &p->mask);
}

void patch_let_signals(const struct patch *p)
{
	sigprocmask(SIG_SETMASK, &p->mask, NULL);
}

bool patch_must_end(void)
{
	const bool asked = is_asked_to_end();
	if (asked)
		say("asked to end");
	return asked;
}

/* All that needs space or rights to read, before anything is touched. */
static bool stage(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	if (patch_must_end())
		return false;
	return kind == CHANGE_DELETED || entry_copy(p->files, p->new, path) || patch_failed(path);
}

/* Copying takes its time, and others may have been at work meanwhile. */
static bool is_as_it_was(const struct patch *p, const char *root, const char *path)
{
	char room[LIMIT_SHOWN_PATH];
	if (entry_same(p->base, root, path))
		return true;
	say("%s has changed since", path_shown(path, room));
	return false;
}

/* A file that is to be replaced stays until then; one that is deleted may stand where a directory is to be. */
static bool take_out(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	if (kind != CHANGE_ADDED) {
		if (!entry_save(APPLY_ROOT, p->old, path))
			return patch_failed(path);
		if (!is_as_it_was(p, p->old, path))
			return false;
	}
	if (kind == CHANGE_DELETED && !entry_remove(APPLY_ROOT, path))
		return patch_failed(path);
	p->taken++;
	return true;
}

static bool put_in(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	if (kind == CHANGE_MODIFIED && !is_as_it_was(p, APPLY_ROOT, path))
		return false;
	if (kind != CHANGE_DELETED &&
	    !entry_move(p->new, APPLY_ROOT, path, kind == CHANGE_ADDED ? MOVE_NEW : MOVE_OVER))
		return patch_failed(path);
	p->made++;
	return true;
}

/* ---- undoing ---- */

static bool put_back(struct patch *p, const char *path, enum move_how how)
{
	if (entry_move(p->old, APPLY_ROOT, path, how))
		return true;
	patch_failed(path);
	p->not_undone++;
	return true;
}

/* What was put in goes, and what it has replaced comes back. */
static bool take_back(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	if (p->made == 0)
		return false;
	p->made--;
	if (kind == CHANGE_ADDED)
		entry_remove(APPLY_ROOT, path);
	return kind != CHANGE_MODIFIED || put_back(p, path, MOVE_OVER);
}

/* Then there is room for what was deleted. */
static bool undelete(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	if (p->taken == 0)
		return false;
	p->taken--;
	return kind != CHANGE_DELETED || put_back(p, path, MOVE_NEW);
}

/* ---- all of it ---- */

static bool each(struct patch *p, change_found *found)
{
	return tree_compare(&p->before, &p->after, found, p);
}

static void undo(struct patch *p)
{
	each(p, take_back);
	each(p, undelete);
}

static bool commit(struct patch *p)
{
	bool ok = each(p, take_out) && each(p, put_in);
	if (!ok)
		undo(p);
	return ok;
}

bool patch_make(struct patch *p)
{
	return make_stage(p) && each(p, stage) && commit(p);
}

void patch_clean(struct patch *p)
{
	if (p->old_fd >= 0)
		close(p->old_fd);
	if (p->new_fd >= 0)
		close(p->new_fd);
	if (p->stage[0] && p->not_undone == 0)
		tree_remove(p->stage);
	if (p->not_undone > 0)
		say("%s is changed in part; what was there is in it, in %s/old", p->shown, p->stage);
}
