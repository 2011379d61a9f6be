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

static bool add(struct pull *p, const struct pull_entry *above, struct slice name, bool is_dir)
{
	char *path = NULL;
	const bool is_top = !above || !above->path[0];
	unsigned depth = above ? above->depth + 1 : 0;
	if (p->n >= LIMIT_KEEPER_KEPT || depth > LIMIT_KEEPER_KEPT_DEPTH || (p->n == p->room && !grow(p)))
		return false;
	if (above) /* growing may have moved it */
		above = &p->entries[p->at];
	if (asprintf(&path, "%s%s%.*s", is_top ? "" : above->path, is_top ? "" : "/", SLICE_FMT(name)) < 0)
		return false;
	p->entries[p->n++] = (struct pull_entry){path, is_dir, depth};
	return true;
}

static void add_listed(struct pull *p)
{
	struct slice rest = slice_of(p->list, p->n_list);
	while (rest.len > 0) {
		struct slice text = slice_cut(&rest, '\0'), name;
		bool is_dir;
		if (pull_entry_parse(text, &is_dir, &name) && !add(p, &p->entries[p->at], name, is_dir))
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
static bool make(struct pull *p, const struct pull_entry *e)
{
	char path[PATH_ROOM + sizeof(TOP)];
	if (snprintf(path, sizeof(path), TOP "%s%s", e->path[0] ? "/" : "", e->path) >= (int)sizeof(path))
		return false;
	if (e->is_dir)
		return mkdir(path, 0700) == 0;
	p->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return p->fd >= 0;
}

static bool ask(struct keeper *k, const struct pull_entry *e)
{
	struct task *t = wire_begin(k, heard, NULL);
	const char *path = e->path[0] ? e->path : ".";
	if (t)
		wire_send(k, e->is_dir ? FRAME_LIST : FRAME_READ, t->id, slice_of(path, strlen(path) + 1));
	return t != NULL;
}

static void next(struct keeper *k)
{
	struct pull *p = &k->pull;
	fd_close(&p->fd);
	drop_list(p);
	for (; p->at < p->n; p->at++) {
		const struct pull_entry *e = &p->entries[p->at];
		if (make(p, e) && ask(k, e))
			return;
		fd_close(&p->fd);
		p->lost++;
	}
	keeper_leave(k);
}

void pull_begin(struct keeper *k)
{
	if (!add(&k->pull, NULL, SLICE_NONE, true))
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
		free(p->entries[i].path);
	free(p->entries);
	*p = (struct pull){.fd = -1};
}
