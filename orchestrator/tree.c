/* Listing trees and telling what differs between two of them. */
#include "orchestrator/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/say.h"
#include "orchestrator/holes.h"
#include "orchestrator/walk.h"

#define DIR_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC)
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) /* what has just become a pipe is not waited for */

/* ---- listing ---- */

enum entry_kind entry_kind_of(mode_t mode)
{
	if (S_ISREG(mode))
		return ENTRY_FILE;
	if (S_ISLNK(mode))
		return ENTRY_LINK;
	return S_ISDIR(mode) ? ENTRY_DIR : ENTRY_OTHER;
}

static bool grow(struct tree *t)
{
	if (t->n < t->room)
		return true;
	size_t room = t->room ? 2 * t->room : 256;
	struct entry *list = room <= LIMIT_TREE ? realloc(t->list, room * sizeof(*list)) : NULL;
	if (!list)
		return false;
	t->list = list;
	t->room = room;
	return true;
}

int tree_add(struct tree *t, const char *path, const struct stat *st)
{
	const size_t len = strlen(path) + 1;
	if (entry_kind_of(st->st_mode) == ENTRY_OTHER)
		return 0;
	if (len > LIMIT_WORKSPACE_PATH)
		return ENAMETOOLONG;
	char *copy = t->n_bytes + len <= LIMIT_TREE_NAMES && grow(t) ? strdup(path) : NULL;
	if (!copy)
		return ENOMEM;
	t->n_bytes += len;
	t->list[t->n++] = (struct entry){copy, entry_kind_of(st->st_mode), st->st_ctim, st->st_ino};
	return 0;
}

static int add(void *arg, const struct walk_at *at)
{
	return tree_add(arg, at->path, at->st);
}

static int closed(void *arg, int error)
{
	const struct tree *t = arg;
	return t->of_what == TREE_OF_ALL ? error : 0;
}

int tree_walk(struct tree *t, const char *path)
{
	char top[2 * sizeof(t->root)];
	const struct walk walk = {.before = add, .closed = closed, .arg = t, .prefix = path, .mounts = WALK_CROSS};
	snprintf(top, sizeof(top), "%s%s%s", t->root, path[0] ? "/" : "", path);
	return walk_tree(top, &walk);
}

static int by_path(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return strcmp(x->path, y->path);
}

bool tree_begin(struct tree *t, const char *root)
{
	*t = (struct tree){0};
	if (snprintf(t->root, sizeof(t->root), "%s", root) < (int)sizeof(t->root))
		return true;
	say("%s: %s", root, strerror(ENAMETOOLONG));
	return false;
}

static const char *why_not(int error)
{
	switch (error) {
	case ENOMEM:
		return "too many files, or too long names of them";
	case E2BIG:
	case ENAMETOOLONG:
		return "directories lie too deep in it";
	case ESTALE:
		return "it is being changed";
	default:
		return strerror(error);
	}
}

bool tree_end(struct tree *t, int error)
{
	if (error != 0) {
		say("%s: %s", t->root, why_not(error));
		return false;
	}
	if (t->n > 0)
		qsort(t->list, t->n, sizeof(*t->list), by_path);
	return true;
}

bool tree_read(struct tree *t, const char *root, enum tree_of of_what)
{
	if (tree_begin(t, root)) {
		t->of_what = of_what;
		if (tree_end(t, tree_walk(t, "")))
			return true;
	}
	tree_free(t);
	return false;
}

void tree_keep(struct tree *t, tree_stays *stays, void *arg)
{
	size_t n = 0;
	for (size_t i = 0; i < t->n; i++) {
		if (stays(arg, t->list[i].path))
			t->list[n++] = t->list[i];
		else
			free(t->list[i].path);
	}
	t->n = n;
}

void tree_free(struct tree *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->list[i].path);
	free(t->list);
	*t = (struct tree){0};
}

/* ---- comparing ---- */

static bool same_piece(int a, int b, off_t at, off_t end)
{
	char x[16384], y[sizeof(x)];
	while (at < end) {
		size_t want = end - at < (off_t)sizeof(x) ? (size_t)(end - at) : sizeof(x);
		ssize_t n = pread(a, x, want, at);
		if (n <= 0 || pread(b, y, (size_t)n, at) != n || memcmp(x, y, (size_t)n) != 0)
			return false;
		at += n;
	}
	return true;
}

/* Of two files of the same size. What is a hole in both of them is the same. */
static bool same_bytes(int a, int b)
{
	for (off_t at = 0, end = 0;; at = end) {
		off_t at_b = at, end_b = 0;
		int more = holes_skip(a, &at, &end), more_b = holes_skip(b, &at_b, &end_b);
		if (more <= 0 && more_b <= 0)
			return more == 0 && more_b == 0;
		if (more < 0 || more_b < 0)
			return false;
		if (more == 0 || (more_b > 0 && at_b < at)) {
			at = at_b;
			end = end_b;
		}
		if (!same_piece(a, b, at, end))
			return false;
	}
}

/* A thing below a root: no link on the way to it is followed. */
struct spot {
	int dir; /* that it is in; -1: there is none */
	const char *name;
	int error; /* why not */
};

static struct spot spot_open(const char *root, const char *path)
{
	char name[LIMIT_WORKSPACE_PATH];
	struct spot s = {.dir = open(root, DIR_FLAGS)};
	const char *slash;
	s.error = errno;
	for (; (slash = strchr(path, '/')) != NULL && s.dir >= 0; path = slash + 1) {
		bool fits = snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path) < (int)sizeof(name);
		errno = ENAMETOOLONG;
		int next = fits ? openat(s.dir, name, DIR_FLAGS | O_NOFOLLOW) : -1;
		s.error = errno;
		close(s.dir);
		s.dir = next;
	}
	s.name = path;
	return s;
}

static void spot_close(struct spot *s)
{
	if (s->dir >= 0)
		close(s->dir);
	s->dir = -1;
}

static bool same_files(const struct spot *a, const struct spot *b)
{
	int x = openat(a->dir, a->name, FILE_FLAGS), y = openat(b->dir, b->name, FILE_FLAGS);
	bool same = x >= 0 && y >= 0 && same_bytes(x, y);
	if (x >= 0)
		close(x);
	if (y >= 0)
		close(y);
	return same;
}

static bool same_links(const struct spot *a, const struct spot *b)
{
	char x[4096], y[4096];
	ssize_t n = readlinkat(a->dir, a->name, x, sizeof(x)), m = readlinkat(b->dir, b->name, y, sizeof(y));
	return n >= 0 && n == m && memcmp(x, y, (size_t)n) == 0;
}

/* Bits that give the rights of another user or group are never taken over. */
static bool same_stats(const struct stat *a, const struct stat *b)
{
	return entry_kind_of(a->st_mode) == entry_kind_of(b->st_mode) && (a->st_mode & 0777) == (b->st_mode & 0777);
}

enum presence { PRESENT, ABSENT, UNKNOWN };

/* What lies behind a link is not there: the kernel says ENOTDIR of one. */
static enum presence look(const struct spot *s, struct stat *st)
{
	if (s->dir >= 0 && fstatat(s->dir, s->name, st, AT_SYMLINK_NOFOLLOW) == 0)
		return PRESENT;
	int error = s->dir >= 0 ? errno : s->error;
	return error == ENOENT || error == ENOTDIR ? ABSENT : UNKNOWN;
}

static bool spots_same(const struct spot *a, const struct spot *b)
{
	struct stat x, y;
	enum presence has_a = look(a, &x), has_b = look(b, &y);
	if (has_a != PRESENT || has_b != PRESENT)
		return has_a == ABSENT && has_b == ABSENT;
	switch (entry_kind_of(x.st_mode)) {
	case ENTRY_FILE:
		return same_stats(&x, &y) && x.st_size == y.st_size && same_files(a, b);
	case ENTRY_LINK:
		return same_stats(&x, &y) && same_links(a, b);
	case ENTRY_DIR:
	case ENTRY_OTHER:
		break;
	}
	return entry_kind_of(x.st_mode) == entry_kind_of(y.st_mode);
}

bool entry_same(const char *root, const char *other, const char *path)
{
	struct spot a = spot_open(root, path), b = spot_open(other, path);
	bool same = spots_same(&a, &b);
	spot_close(&a);
	spot_close(&b);
	return same;
}

bool time_is_later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

static bool tell(change_found *found, void *arg, enum change_kind kind, const struct entry *e)
{
	return e->kind == ENTRY_DIR || found(arg, kind, e->path);
}

static const struct entry *find(const struct tree *t, const char *path, size_t len)
{
	char name[LIMIT_WORKSPACE_PATH];
	struct entry key = {.path = name};
	if (snprintf(name, sizeof(name), "%.*s", (int)len, path) >= (int)sizeof(name))
		return NULL;
	return bsearch(&key, t->list, t->n, sizeof(*t->list), by_path);
}

static bool is_untouched(const struct tree *t, const struct entry *e)
{
	if (t->since.tv_sec == 0 || time_is_later(e->changed, t->since))
		return false;
	for (const char *slash = e->path; (slash = strchr(slash, '/')) != NULL; slash++) {
		size_t len = (size_t)(slash - e->path);
		const struct entry *now = find(t, e->path, len), *then = find(t->then, e->path, len);
		if (!now || !then || now->id != then->id)
			return false;
	}
	return true;
}

static bool tell_both(const struct tree *from, const struct tree *to, const struct entry *a, const struct entry *b,
		      change_found *found, void *arg)
{
	if (a->kind == ENTRY_DIR || b->kind == ENTRY_DIR)
		return a->kind == b->kind || (tell(found, arg, CHANGE_DELETED, a) && tell(found, arg, CHANGE_ADDED, b));
	if (a->kind == b->kind && is_untouched(to, b))
		return true;
	return entry_same(from->root, to->root, a->path) || found(arg, CHANGE_MODIFIED, a->path);
}

bool tree_compare(const struct tree *from, const struct tree *to, change_found *found, void *arg)
{
	size_t i = 0, j = 0;
	bool more = true;
	while (more && (i < from->n || j < to->n)) {
		int order = i == from->n ? 1 : j == to->n ? -1 : strcmp(from->list[i].path, to->list[j].path);
		if (order < 0)
			more = tell(found, arg, CHANGE_DELETED, &from->list[i++]);
		else if (order > 0)
			more = tell(found, arg, CHANGE_ADDED, &to->list[j++]);
		else
			more = tell_both(from, to, &from->list[i++], &to->list[j++], found, arg);
	}
	return more;
}
