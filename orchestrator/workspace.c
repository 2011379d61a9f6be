/* The view of a workspace, before a run: an overlay, which costs nothing, or a copy where that is refused. */
#include "orchestrator/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/text.h"
#include "orchestrator/below.h"
#include "orchestrator/rights.h"
#include "orchestrator/shown_source.h"
#include "orchestrator/tree_whole.h"

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

/* A view that has itself in it has no end. */
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

bool workspace_find(struct workspace *w, const char *dir, const char *run_dir)
{
	struct stat st;
	if (shown_source("--workspace", dir, w->dir, sizeof(w->dir)) == SHOWN_REFUSED)
		return false;
	bool ok = stat(w->dir, &st) == 0;
	if (ok && !S_ISDIR(st.st_mode)) {
		errno = ENOTDIR;
		ok = false;
	}
	w->dir_owner = ok ? (struct owner){st.st_uid, st.st_gid} : (struct owner){0};
	if (ok)
		return is_apart(w->dir, run_dir);
	say("--workspace %s: %s", dir, strerror(errno));
	return false;
}

bool workspace_begin(struct workspace *w, const char *run_dir, const struct owner *owner)
{
	w->owner = owner;
	if (snprintf(w->state, sizeof(w->state), "%s/work", run_dir) < (int)sizeof(w->state) && make_place(w, "") &&
	    make_place(w, "upper") && make_place(w, "work") && make_place(w, "lower") && make_place(w, "copy"))
		return true;
	say("%s: %s", w->state, strerror(errno));
	return false;
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

static void tell_left_out(void *arg, const char *path)
{
	size_t *n = arg;
	char room[LIMIT_SHOWN_PATH];
	if ((*n)++ < LIMIT_LISTED)
		say("--workspace: %s can't be read, and is left out", path_shown(path, room));
}

static bool copy_to(struct workspace *w, const char *place)
{
	const char *failed = "";
	char room[LIMIT_SHOWN_PATH];
	size_t n_left_out = 0;
	if (!tree_read(&w->before, w->dir, TREE_OF_READABLE))
		return false;
	if (w->before.n > LIMIT_COPY_QUIET)
		say("--workspace %s can't be an overlay here: %zu files are copied", w->dir, w->before.n);
	bool ok = tree_copy(&w->before, place, tell_left_out, &n_left_out, &failed);
	int error = errno;
	if (n_left_out > LIMIT_LISTED)
		say("--workspace: and %zu more", n_left_out - LIMIT_LISTED);
	if (!ok && error == EINTR)
		say("asked to end while %s was copied", w->dir);
	else if (!ok)
		say("--workspace: %s: %s", path_shown(failed, room), strerror(error));
	return ok;
}

/* Root reads only what the owner of the directory can read, and writes with those rights too. Nobody else reaches the copy by
 * its name, so it has none for the owner either. */
static bool copy_as_owner(struct workspace *w)
{
	struct rights rights;
	char place[32];
	int fd = open(w->view, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(place, sizeof(place), "/proc/self/fd/%d/.", fd);
	bool ok = fd >= 0 && (!w->owner || chown(w->view, w->dir_owner.uid, w->dir_owner.gid) == 0) &&
		  rights_lower(&rights, &w->dir_owner);
	if (!ok) {
		say("%s: %s", w->view, strerror(errno));
	} else {
		ok = copy_to(w, place);
		rights_restore(&rights);
	}
	if (fd >= 0)
		close(fd);
	return ok;
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
	if (!copy_as_owner(w))
		return false;
	bool ok = !w->owner || tree_give(w->view, w->owner);
	if (ok && !tree_read(&w->shown, w->view, TREE_OF_ALL))
		return false;
	if (ok && end_copy(w))
		return true;
	say("%s: %s", w->state, strerror(errno));
	return false;
}

/* ---- both ---- */

static bool gate_can_open(const char *path)
{
	int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree >= 0)
		close(tree);
	return tree >= 0;
}

/* Root's gate opens the view before it takes the rights of CMD's user, so no other process of that user has to find it. Where
 * nothing can be mounted, or not by root, CMD has to go there by name. */
static bool let_find_way(const struct workspace *w)
{
	char around[LIMIT_WORKSPACE_PATH + 4];
	snprintf(around, sizeof(around), "%s/..", w->state);
	if (!w->owner || (w->files != FILES_SHARED && gate_can_open(w->view)) || chmod(around, 0711) == 0)
		return true;
	say("%s: %s", around, strerror(errno));
	return false;
}

static bool name_view(struct workspace *w, const char *name)
{
	if (snprintf(w->view, sizeof(w->view), "%s/%s", w->state, name) < (int)sizeof(w->view))
		return true;
	errno = ENAMETOOLONG;
	return false;
}

bool workspace_open(struct workspace *w, enum room_files files)
{
	bool is_overlay = files == FILES_OVERLAY;
	w->files = files;
	if (!name_view(w, is_overlay ? "upper" : "copy") || !look_at_workspace(w)) {
		say("--workspace %s: %s", w->dir, strerror(errno));
		return false;
	}
	if (!let_find_way(w))
		return false;
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
	words_free(&w->obeyed.names);
	*w = (struct workspace){0};
}
