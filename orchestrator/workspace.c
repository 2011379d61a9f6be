/* The view of a workspace, before a run: an overlay, which costs nothing, or a copy where that is refused. */
#include "orchestrator/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/text.h"
#include "orchestrator/below.h"
#include "orchestrator/rundir.h"

const char *path_shown(const char *path, char *room)
{
	struct text t = text_in(room, LIMIT_SHOWN_PATH - 1);
	text_put_json(&t, slice_str(path));
	room[t.len] = '\0';
	return room;
}

const char *line_shown(const char *text, char *room)
{
	size_t len = 0;
	for (; text[len] && len < LIMIT_SHOWN_PATH - 1; len++)
		room[len] = text[len] < ' ' || text[len] > '~' ? '?' : text[len];
	room[len] = '\0';
	return room;
}

/* ---- the directory ---- */

/* Cage's own files are not to be seen, and a view that has itself in it has no end. */
static bool is_apart(const char *dir, const char *other)
{
	char *real = realpath(other, NULL);
	bool apart = real && !path_is_at_or_below(real, dir);
	if (!apart)
		say("--workspace %s: has files of cage in it: %s", dir, other);
	free(real);
	return apart;
}

static bool make_place(const struct workspace *w, const char *name)
{
	char path[LIMIT_WORKSPACE_PATH + 16];
	snprintf(path, sizeof(path), "%s%s%s", w->state, name[0] ? "/" : "", name);
	return mkdir(path, 0700) == 0 && (!w->owner || chown(path, w->owner->uid, w->owner->gid) == 0);
}

bool workspace_begin(struct workspace *w, const char *dir, const char *run_dir, const char *ca_dir,
		     const struct owner *owner)
{
	struct stat st;
	char *real = realpath(dir, NULL);
	bool ok = real && stat(real, &st) == 0 && snprintf(w->dir, sizeof(w->dir), "%s", real) < (int)sizeof(w->dir) &&
		  snprintf(w->state, sizeof(w->state), "%s/work", run_dir) < (int)sizeof(w->state);
	free(real);
	if (ok && !S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		ok = false;
	}
	w->owner = owner;
	if (!ok || !make_place(w, "") || !make_place(w, "upper") || !make_place(w, "work") || !make_place(w, "lower") ||
	    !make_place(w, "copy")) {
		say("--workspace %s: %s", dir, strerror(errno));
		return false;
	}
	return is_apart(w->dir, run_dir) && is_apart(w->dir, ca_dir);
}

/* ---- an overlay ---- */

/* Some characters are three octal digits there. */
static void unescape(char *text)
{
	char *to = text;
	for (const char *at = text; *at; to++) {
		bool is_escape = at[0] == '\\' && at[1] && at[2] && at[3];
		*to = is_escape ? (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0')) : *at;
		at += is_escape ? 4 : 1;
	}
	*to = '\0';
}

/* It shows one file system: what is mounted below the directory would be missing. */
static bool has_mounts(const char *dir)
{
	char *line = NULL, place[LIMIT_WORKSPACE_PATH] = "";
	size_t size = 0;
	bool any = false;
	FILE *f = fopen("/proc/self/mountinfo", "re");
	while (f && !any && getline(&line, &size, f) > 0) {
		any = sscanf(line, "%*s %*s %*s %*s %4095s", place) != 1;
		unescape(place);
		any = any || (path_is_at_or_below(place, dir) && strcmp(place, dir) != 0);
	}
	any = any || !f;
	free(line);
	if (f)
		fclose(f);
	return any;
}

/* The kernel notes in such attributes which directories hide a lower one. */
static bool has_attributes(const char *dir)
{
	return setxattr(dir, "user.cage", "", 0, 0) == 0 && removexattr(dir, "user.cage") == 0;
}

bool workspace_overlay(const struct workspace *w, char *out, size_t room)
{
	char upper[LIMIT_WORKSPACE_PATH + 8];
	snprintf(upper, sizeof(upper), "%s/upper", w->state);
	return has_attributes(upper) && !has_mounts(w->dir) && !strchr(w->dir, ':') &&
	       snprintf(out, room, "%s:%s", w->dir, w->state) < (int)room;
}

/* Trying it has left something there. */
static bool renew_work(const struct workspace *w)
{
	char path[LIMIT_WORKSPACE_PATH + 8];
	snprintf(path, sizeof(path), "%s/work", w->state);
	tree_remove(path);
	return make_place(w, "work");
}

/* ---- clocks ---- */

/* A file system has its own, which may be coarse or a server's: what a file made now gets is what it says. */
static bool look_at_clock(const char *dir, struct timespec *out)
{
	char path[LIMIT_WORKSPACE_PATH + 24];
	struct stat st;
	int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0) {
		snprintf(path, sizeof(path), "%s/.cage-clock.XXXXXX", dir);
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0)
			unlink(path);
	}
	bool ok = fd >= 0 && fstat(fd, &st) == 0;
	if (fd >= 0)
		close(fd);
	if (ok)
		*out = st.st_ctim;
	return ok;
}

/* Where we may not write we can only guess, and a change too many that counts as one of others does no harm. */
static bool look_at_workspace(struct workspace *w)
{
	enum { GUESS_S = 2 };
	if (look_at_clock(w->dir, &w->since))
		return true;
	bool ok = clock_gettime(CLOCK_REALTIME_COARSE, &w->since) == 0;
	w->since.tv_sec -= GUESS_S;
	return ok;
}

/* ---- a copy ---- */

static bool copy_all(const struct tree *t, const char *to, const struct owner *owner)
{
	const char *failed = "";
	char room[LIMIT_SHOWN_PATH];
	if (tree_copy(t, to, owner, &failed))
		return true;
	say("--workspace: %s: %s", path_shown(failed, room), strerror(errno));
	return false;
}

/* What CMD changes has a later time than what was copied. Where the clock stands still that is not known of anything. */
static bool end_copy(struct workspace *w)
{
	enum { TRIES = 50 };
	const struct timespec pause = {0, 1000000};
	struct timespec now = {0};
	if (!look_at_clock(w->state, &w->copied))
		return false;
	for (int i = 0; i < TRIES; i++) {
		if (look_at_clock(w->state, &now) && time_is_later(now, w->copied))
			return true;
		nanosleep(&pause, NULL);
	}
	w->copied = (struct timespec){0};
	return true;
}

static bool open_copy(struct workspace *w)
{
	if (!tree_read(&w->before, w->dir) || !copy_all(&w->before, w->view, w->owner) ||
	    !tree_read(&w->shown, w->view))
		return false;
	if (end_copy(w))
		return true;
	say("%s: %s", w->state, strerror(errno));
	return false;
}

/* ---- both ---- */

bool workspace_open(struct workspace *w, enum room_files files)
{
	bool is_overlay = files == FILES_OVERLAY;
	w->files = files;
	if (snprintf(w->view, sizeof(w->view), "%s/%s", w->state, is_overlay ? "upper" : "copy") >=
		    (int)sizeof(w->view) ||
	    !look_at_workspace(w)) {
		say("--workspace %s: %s", w->dir, strerror(errno));
		return false;
	}
	if (!is_overlay)
		return open_copy(w);
	if (renew_work(w))
		return true;
	say("%s/work: %s", w->state, strerror(errno));
	return false;
}

const char *workspace_place(const struct workspace *w)
{
	return w->files == FILES_SHARED ? w->view : w->dir;
}

void workspace_free(struct workspace *w)
{
	tree_free(&w->before);
	tree_free(&w->shown);
	*w = (struct workspace){0};
}
