/* FRAME_LIST and FRAME_READ, one after the other. */
#include "orchestrator/keeper/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/keeper/keeper.h"
#include "core/base/write_all.h"

#define TOP "kept"
#define PATH_ROOM 4096
#define LIST_ROOM (LIMIT_INSIDE_LIST * (NAME_MAX + 32))

/* ---- names ---- */

bool pull_name_is_good(struct slice name)
{
	return name.len > 0 && name.len <= 255 && slice_find(name, '/') == name.len &&
	       slice_find(name, '\0') == name.len && !slice_eq(name, SLICE(".")) && !slice_eq(name, SLICE(".."));
}

bool pull_entry_parse(struct slice text, bool *is_dir, struct slice *name)
{
	struct slice kind = slice_cut(&text, ' '), size = slice_cut(&text, ' ');
	uint64_t n;
	*name = text;
	*is_dir = slice_eq(kind, SLICE("d"));
	return (*is_dir || slice_eq(kind, SLICE("f"))) && slice_to_u64(size, UINT64_MAX, &n) && pull_name_is_good(text);
}

/* ---- what there is to do ---- */

static bool grow(struct pull *p)
{
	size_t room = p->room ? 2 * p->room : 64;
	struct pull_entry *entries = reallocarray(p->entries, room, sizeof(*entries));
	if (!entries)
		return false;
	p->entries = entries;
	p->room = room;
	return true;
}

/* Names only, since whole paths of a deep tree would be many times as long. What has too long a path is refused here. */
static bool add(struct pull *p, size_t above, struct slice name, bool is_dir)
{
	const bool is_top = p->n == 0;
	if (p->n >= LIMIT_KEEPER_KEPT || (p->n == p->room && !grow(p)))
		return false;
	const struct pull_entry *dir = &p->entries[above];
	const unsigned depth = is_top ? 0 : dir->depth + 1u;
	const size_t length = is_top ? 0 : dir->length + (above > 0) + name.len;
	if (depth > LIMIT_KEEPER_KEPT_DEPTH || length >= PATH_ROOM)
		return false;
	char *copy = strndup(name.len ? name.ptr : "", name.len);
	if (copy)
		p->entries[p->n++] =
			(struct pull_entry){copy, (uint32_t)above, (uint32_t)length, (uint16_t)depth, is_dir};
	return copy;
}

/* From its end to its beginning. */
static void path_of(const struct pull *p, size_t at, char out[PATH_ROOM])
{
	const struct pull_entry *e = &p->entries[at];
	char *end = out + e->length;
	*end = '\0';
	for (; at != 0; at = e->above) {
		e = &p->entries[at];
		size_t n = strlen(e->name);
		end -= n;
		memcpy(end, e->name, n);
		if (e->above != 0)
			*--end = '/';
	}
}

static void add_listed(struct pull *p)
{
	struct slice rest = slice_of(p->list, p->n_list);
	while (rest.len > 0) {
		struct slice text = slice_cut(&rest, '\0'), name;
		bool is_dir;
		if (pull_entry_parse(text, &is_dir, &name) && !add(p, p->at, name, is_dir))
			p->lost++;
	}
}

/* ---- what comes ---- */

static void next(struct keeper *k);

static void drop_list(struct pull *p)
{
	free(p->list);
	p->list = NULL;
	p->n_list = 0;
}

static bool take_list(struct pull *p, struct slice piece)
{
	char *list = p->n_list + piece.len <= LIST_ROOM ? realloc(p->list, p->n_list + piece.len + 1) : NULL;
	if (!list)
		return false;
	memcpy(list + p->n_list, piece.ptr, piece.len);
	p->list = list;
	p->n_list += piece.len;
	return true;
}

static bool take_bytes(struct pull *p, struct slice piece)
{
	p->bytes += piece.len;
	return p->bytes <= LIMIT_KEEPER_KEPT_BYTES && write_all(p->fd, piece.ptr, piece.len);
}

/* The disk is full, or the sandbox sends what it can't have: no more of it. */
static void give_up(struct keeper *k)
{
	k->pull.lost += k->pull.n - k->pull.at;
	k->pull.at = k->pull.n;
	keeper_leave(k);
}

static void heard(struct keeper *k, struct task *t, const struct frame *f)
{
	struct pull *p = &k->pull;
	int why;
	if (k->state != KEEPER_PULLING)
		return;
	if (f->kind == FRAME_OUT) {
		bool is_dir = p->entries[p->at].is_dir;
		if (is_dir ? take_list(p, f->payload) : take_bytes(p, f->payload))
			wire_took(k, t, f->payload.len);
		else
			give_up(k);
	} else if (f->kind == FRAME_DONE) {
		if (!done_is_good(f, &why))
			p->lost++;
		else if (p->entries[p->at].is_dir)
			add_listed(p);
		p->at++;
		next(k);
	}
}

/* ---- one after the other ---- */

/* Makes it here: nothing but what was made here lies on the way. */
static bool make(struct pull *p, const char *below, bool is_dir)
{
	char path[PATH_ROOM + sizeof(TOP) + 1];
	snprintf(path, sizeof(path), TOP "%s%s", below[0] ? "/" : "", below);
	if (is_dir)
		return mkdir(path, 0700) == 0;
	p->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return p->fd >= 0;
}

static bool ask(struct keeper *k, const char *path, bool is_dir)
{
	struct task *t = wire_begin(k, heard, NULL);
	if (!path[0])
		path = ".";
	if (t)
		wire_send(k, is_dir ? FRAME_LIST : FRAME_READ, t->id, slice_of(path, strlen(path) + 1));
	return t != NULL;
}

static void next(struct keeper *k)
{
	struct pull *p = &k->pull;
	char path[PATH_ROOM];
	fd_close(&p->fd);
	drop_list(p);
	for (; p->at < p->n; p->at++) {
		bool is_dir = p->entries[p->at].is_dir;
		path_of(p, p->at, path);
		if (make(p, path, is_dir) && ask(k, path, is_dir))
			return;
		fd_close(&p->fd);
		p->lost++;
	}
	keeper_leave(k);
}

void pull_begin(struct keeper *k)
{
	if (!add(&k->pull, 0, SLICE_NONE, true))
		k->pull.lost++;
	next(k);
}

void pull_end(struct keeper *k)
{
	struct pull *p = &k->pull;
	char text[LIMIT_KEEPER_MESSAGE];
	p->lost += p->n - p->at;
	if (p->lost > 0) {
		int n = snprintf(text, sizeof(text),
				 "the workspace is not kept as a whole: %llu files or directories are missing",
				 (unsigned long long)p->lost);
		result_say(&k->result, slice_of(text, (size_t)n));
	}
	fd_close(&p->fd);
	drop_list(p);
	for (size_t i = 0; i < p->n; i++)
		free(p->entries[i].name);
	free(p->entries);
	*p = (struct pull){.fd = -1};
}
