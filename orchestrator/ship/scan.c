/* Which files there are. Names say what may be a log, device and inode which one it is. No link is followed, and nothing deeper than the
 * directories right below one that is named is looked at: an agent may be able to write there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/ship/ship.h"

struct source *source_find(const struct ship *s, uint64_t dev, uint64_t ino)
{
	struct source *f = s->buckets[ino % SHIP_BUCKETS];
	while (f && (f->dev != dev || f->ino != ino))
		f = f->same_bucket;
	return f;
}

/* ---- names ---- */

enum name { NAME_OTHER, NAME_LOG, NAME_ROTATED /* a log if it looks like one */ };

static bool is_packed(struct slice name)
{
	static const struct slice ends[] = {WORD(".gz"), WORD(".xz"), WORD(".zst"), WORD(".bz2")};
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (slice_ends(name, ends[i]))
			return true;
	return false;
}

/* file: the name of ROOT_LOG; empty: any log. */
static enum name judge(struct slice name, struct slice file)
{
	if (file.len > 0) {
		const struct slice rest = slice_from(name, file.len);
		if (!slice_starts(name, file) || is_packed(name))
			return NAME_OTHER;
		if (rest.len == 0)
			return NAME_LOG;
		return rest.ptr[0] == '.' || rest.ptr[0] == '-' ? NAME_ROTATED : NAME_OTHER;
	}
	if (slice_ends(name, SLICE(".jsonl")) || slice_ends(name, SLICE(".jsonl.dns")))
		return NAME_LOG;
	return memmem(name.ptr, name.len, ".jsonl", 6) && !is_packed(name) ? NAME_ROTATED : NAME_OTHER;
}

static bool begins_like_one(int dir, const char *name)
{
	static const struct slice head = WORD("{\"schema\":\"cage.log/1\",");
	char bytes[32];
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	const ssize_t n = fd >= 0 ? pread(fd, bytes, head.len, 0) : -1;
	if (fd >= 0)
		close(fd);
	return n > 0 && slice_eq(slice_of(bytes, (size_t)n), head);
}

/* ---- one file ---- */

static void use_path(char **at, const char *path)
{
	char *copy = *at && strcmp(*at, path) == 0 ? NULL : strdup(path);
	if (!copy)
		return;
	free(*at);
	*at = copy;
}

static struct source *adopt(struct ship *s, const struct stat *st, const char *path)
{
	if (s->n == LIMIT_SHIP_LOGS) {
		if (!s->is_full)
			say("there are more than %d logs: others are not shipped before some of these are gone",
			    LIMIT_SHIP_LOGS);
		s->is_full = true;
		return NULL;
	}
	struct source *f = source_new(s, (uint64_t)st->st_dev, (uint64_t)st->st_ino, path);
	if (!f)
		return NULL;
	s->list[s->n++] = f;
	if (s->n_open < LIMIT_SHIP_OPEN) /* from here on it may lose its name */
		source_open(s, f);
	return f;
}

static void meet(struct ship *s, const struct root *r, int dir, const char *name, const char *path, enum name kind)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		return;
	struct source *f = source_find(s, (uint64_t)st.st_dev, (uint64_t)st.st_ino);
	const bool is_empty = st.st_size == 0 && r->kind != ROOT_KEPT;
	if (!f && (is_empty || (kind == NAME_ROTATED && !begins_like_one(dir, name))))
		return;
	if (!f && !(f = adopt(s, &st, path)))
		return;
	if (r->kind == ROOT_KEPT)
		use_path(&f->kept, path);
	if (!f->is_seen || r->kind == ROOT_KEPT) /* of two names, the one that stays */
		use_path(&f->path, path);
	f->size = (uint64_t)st.st_size;
	f->is_seen = true;
	f->missed = 0;
}

/* ---- directories ---- */

static DIR *open_dir(struct ship *s, int at, const char *name, const char *path)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (at == AT_FDCWD ? 0 : O_NOFOLLOW));
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	if (d)
		return d;
	const int why = errno;
	if (why != ENOENT && why != ENOTDIR && why != ELOOP) {
		s->is_whole = false;
		ship_trouble(s, "%s: can't be read: %s", path, strerror(why));
	}
	if (fd >= 0)
		close(fd);
	errno = why;
	return NULL;
}

static void look_at(struct ship *s, const struct root *r, DIR *d, const char *path, struct slice file, bool goes_down);

static void look_below(struct ship *s, const struct root *r, int dir, const char *name, const char *path)
{
	DIR *d = open_dir(s, dir, name, path);
	if (!d)
		return;
	look_at(s, r, d, path, SLICE_NONE, false);
	closedir(d);
}

static void look_at(struct ship *s, const struct root *r, DIR *d, const char *path, struct slice file, bool goes_down)
{
	const struct dirent *e;
	char below[SHIP_PATH];
	while ((e = readdir(d))) {
		if (s->entries++ >= LIMIT_SHIP_ENTRIES) {
			s->is_whole = false;
			ship_trouble(s, "%s: there are too many files: not all of them are looked at", path);
			return;
		}
		if (e->d_name[0] == '.' ||
		    snprintf(below, sizeof(below), "%s/%s", path, e->d_name) >= (int)sizeof(below))
			continue;
		const enum name kind = judge(slice_str(e->d_name), file);
		if (goes_down && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN))
			look_below(s, r, dirfd(d), e->d_name, below);
		if (kind != NAME_OTHER)
			meet(s, r, dirfd(d), e->d_name, below, kind);
	}
}

/* Of a log that is named, where to look and what for. */
static struct slice split(const struct root *r, struct slice *file)
{
	const struct slice path = slice_str(r->path);
	const size_t slash = slice_rfind(path, '/');
	*file = SLICE_NONE;
	if (r->kind != ROOT_LOG)
		return path;
	*file = slash == path.len ? path : slice_from(path, slash + 1);
	return slash == path.len ? SLICE(".") : slash == 0 ? SLICE("/") : slice_head(path, slash);
}

static void look_at_root(struct ship *s, const struct root *r)
{
	char dir[SHIP_PATH];
	struct slice file;
	snprintf(dir, sizeof(dir), "%.*s", SLICE_FMT(split(r, &file)));
	DIR *d = open_dir(s, AT_FDCWD, dir, dir);
	if (!d) {
		s->is_whole = false;
		ship_trouble(s, "%s: can't be read: %s", dir, strerror(errno));
		return;
	}
	look_at(s, r, d, dir, file, r->kind == ROOT_TREE);
	closedir(d);
}

/* ---- all of them ---- */

/* A directory may be read while a file is renamed in it, so one look that misses it says little. One that is open is read to its end,
 * whether it has a name or not. */
static bool is_gone(const struct ship *s, struct source *f)
{
	if (f->is_seen || source_has_moved(f) || !s->is_whole || ++f->missed < LIMIT_SHIP_MISSED)
		return false;
	return f->fd < 0 || f->size <= f->place.offset;
}

static void forget(struct ship *s, size_t i)
{
	struct source *f = s->list[i];
	const uint64_t left = f->size > f->place.offset ? f->size - f->place.offset : 0;
	if (left > 0 && f->is_checked) {
		s->counts.lost_bytes += left;
		ship_trouble(s, "%s: is gone before its last %llu bytes were shipped", f->path,
			     (unsigned long long)left);
	}
	place_drop(s, f->dev, f->ino);
	source_free(s, &s->list[i]);
	s->list[i] = s->list[--s->n];
	s->is_full = false;
}

static void tell_no_log(struct ship *s, const char *path)
{
	if (s->options->once)
		s->code = 1;
	say(s->options->once ? "%s: there is no such log: nothing of it is shipped"
			     : "%s: there is no such log yet: it is shipped as soon as there is",
	    path);
}

/* Of what was named, once: the others are waited for. */
static void tell_missing(struct ship *s)
{
	for (size_t i = 0; i < s->options->n_roots; i++) {
		const struct root *r = &s->options->roots[i];
		if (r->kind == ROOT_LOG && access(r->path, F_OK) != 0)
			tell_no_log(s, r->path);
		else if (r->kind == ROOT_TREE && s->n == 0)
			say("%s: there is no log in it yet", r->path);
	}
}

void ship_scan(struct ship *s)
{
	s->entries = 0;
	s->is_whole = true;
	for (size_t i = 0; i < s->n; i++)
		s->list[i]->is_seen = false;
	for (size_t i = 0; i < s->options->n_roots; i++)
		look_at_root(s, &s->options->roots[i]);
	for (size_t i = s->n; i-- > 0;)
		if (is_gone(s, s->list[i]))
			forget(s, i);
	if (!s->is_whole || s->scans == LIMIT_SHIP_MISSED)
		return;
	if (++s->scans == 1)
		tell_missing(s);
	if (s->scans == LIMIT_SHIP_MISSED)
		places_tidy(s);
}
