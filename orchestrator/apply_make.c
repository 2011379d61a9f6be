/* Making the changes of a patch. All that is new is written beside, and then put into place by renaming, which is undone if
 * it fails halfway. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/say.h"
#include "orchestrator/apply_private.h"
#include "orchestrator/rundir.h"

bool patch_failed(const char *path)
{
	char room[LIMIT_SHOWN_PATH];
	int error = errno;
	say("%s: %s", path_shown(path, room), strerror(error));
	return false;
}

/* ---- doing ---- */

static bool make_stage(struct patch *p)
{
	snprintf(p->stage, sizeof(p->stage), APPLY_ROOT "/.cage-apply.XXXXXX");
	if (!mkdtemp(p->stage)) {
		p->stage[0] = '\0';
		return patch_failed(p->shown);
	}
	snprintf(p->old, sizeof(p->old), "%s/old", p->stage);
	snprintf(p->new, sizeof(p->new), "%s/new", p->stage);
	return (mkdir(p->old, 0700) == 0 && mkdir(p->new, 0700) == 0) || patch_failed(p->stage);
}

/* All that needs space or rights to read, before anything is touched. */
static bool stage(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	return kind == CHANGE_DELETED || entry_copy(p->files, p->new, path, NULL) || patch_failed(path);
}

/* A file that is to be replaced stays until then; one that is deleted may stand where a directory is to be. */
static bool take_out(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	bool ok = kind == CHANGE_ADDED || entry_save(APPLY_ROOT, p->old, path);
	ok = ok && (kind != CHANGE_DELETED || entry_remove(APPLY_ROOT, path));
	p->taken += ok;
	return ok || patch_failed(path);
}

static bool put_in(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	bool ok = kind == CHANGE_DELETED || entry_move(p->new, APPLY_ROOT, path);
	p->made += ok;
	return ok || patch_failed(path);
}

/* ---- undoing ---- */

static bool take_back(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	if (p->made == 0)
		return false;
	p->made--;
	if (kind == CHANGE_ADDED)
		entry_remove(APPLY_ROOT, path);
	return true;
}

static bool put_back(void *arg, enum change_kind kind, const char *path)
{
	struct patch *p = arg;
	if (p->taken == 0)
		return false;
	p->taken--;
	if (kind == CHANGE_ADDED || entry_same(p->old, APPLY_ROOT, path) || entry_move(p->old, APPLY_ROOT, path))
		return true;
	patch_failed(path);
	p->not_undone++;
	return true;
}

/* ---- all of it ---- */

static bool each(struct patch *p, change_found *found)
{
	return tree_compare(&p->before, &p->after, found, p);
}

static void undo(struct patch *p)
{
	each(p, take_back);
	each(p, put_back);
}

/* Nobody who asks us to end gets half of it. */
static bool commit(struct patch *p)
{
	sigset_t asked, before;
	sigemptyset(&asked);
	for (int i = 0; i < 4; i++)
		sigaddset(&asked, (const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT}[i]);
	sigprocmask(SIG_BLOCK, &asked, &before);
	bool ok = each(p, take_out) && each(p, put_in);
	if (!ok)
		undo(p);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return ok;
}

bool patch_make(struct patch *p)
{
	bool ok = make_stage(p) && each(p, stage) && commit(p);
	if (p->stage[0] && p->not_undone == 0)
		tree_remove(p->stage);
	if (p->not_undone > 0)
		say("%s is changed in part; what was there is in it, in %s", p->shown, p->old);
	return ok;
}
