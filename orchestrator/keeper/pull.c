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
#include "orchestrator/gate/room_limits.h"

#define TOP "kept"
#define PATH_ROOM 4096
#define HERE_ROOM (PATH_ROOM + sizeof(TOP) + 1)
#define LIST_ROOM (LIMIT_INSIDE_LIST * (NAME_MAX + 32))

/* ---- names ---- */

bool pull_name_is_good(struct slice name)
{
	return name.len > 0 && name.len <= 255 && slice_find(name, '/') == name.len &&
	       slice_find(name, '\0') == name.len && !slice_eq(name, SLICE(".")) && !slice_eq(name, SLICE(".."));
}

bool pull_entry_parse(struct slice text, struct pull_listed *out)
{
	struct slice kind = slice_cut(&text, ' '), size = slice_cut(&text, ' ');
	*out = (struct pull_listed){.name = text, .is_dir = slice_eq(kind, SLICE("d"))};
	return (out->is_dir || slice_eq(kind, SLICE("f"))) && slice_to_u64(size, UINT64_MAX, &out->size) &&
	       pull_name_is_good(text);
}

/* ---- how much there may be ---- */

/* What the room had for its workspace, so that nobody gets more of this machine's disk by leaving files than by writing them. */
static uint64_t bytes_allowed(const struct keeper *k)
{
	static const struct slice place = WORD("/workspace:");
	const char *option = spec_option(&k->spec, "--tmpfs");
	struct slice size = slice_str(option ? option : "");
	uint64_t n;
	if (!slice_starts(size, place))
		return 0;
	size = slice_from(size, place.len);
	if (room_limits_size(size.ptr, size.len, &n) != 0)
		return 0;
	return n < LIMIT_KEEPER_KEPT_BYTES ? n : LIMIT_KEEPER_KEPT_BYTES;
}

/* In whole blocks, as a disk has them: many small files are as large as they are there. */
static bool fits(const struct pull *p, uint64_t bytes)
{
	const uint64_t left = p->allowed - p->bytes, over = bytes % LIMIT_KEEPER_KEPT_BLOCK;
	return bytes <= left && (over == 0 || LIMIT_KEEPER_KEPT_BLOCK - over <= left - bytes);
}

static void charge(struct pull *p, uint64_t bytes)
{
	p->bytes += (bytes + LIMIT_KEEPER_KEPT_BLOCK - 1) / LIMIT_KEEPER_KEPT_BLOCK * LIMIT_KEEPER_KEPT_BLOCK;
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
		struct pull_listed e;
		if (pull_entry_parse(slice_cut(&rest, '\0'), &e) &&
		    ((!e.is_dir && !fits(p, e.size)) || !add(p, p->at, e.name, e.is_dir)))
			p->lost++;
	}
}

/* ---- what comes ---- */

static void next(struct keeper *k);

static void unheard(struct keeper *k, struct task *t, const struct frame *f)
{
	(void)k, (void)t, (void)f;
}

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

static void path_here(const struct pull *p, char out[HERE_ROOM])
{
	char below[PATH_ROOM];
	path_of(p, p->at, below);
	snprintf(out, HERE_ROOM, TOP "%s%s", below[0] ? "/" : "", below);
}

/* What is there in part would be taken for the whole. */
static void lose(struct pull *p)
{
	char path[HERE_ROOM];
	path_here(p, path);
	if (p->is_made)
		remove(path);
	fd_close(&p->fd);
	p->is_made = false;
	p->lost++;
	p->at++;
}

static void keep(struct pull *p)
{
	if (p->entries[p->at].is_dir)
		add_listed(p);
	else
		charge(p, p->size);
	fd_close(&p->fd);
	p->is_made = false;
	p->at++;
}

/* No more of it: the disk is full, or the sandbox sends what it can't have. */
static void give_up(struct keeper *k)
{
	lose(&k->pull);
	keeper_leave(k);
}

/* It has grown since it was listed: the job that reads it goes on without anybody who listens, until it is told. */
static void take_bytes(struct keeper *k, struct task *t, struct slice piece)
{
	struct pull *p = &k->pull;
	p->size += piece.len;
	if (!fits(p, p->size)) {
		t->heard = unheard;
		wire_send(k, FRAME_CANCEL, t->id, SLICE_NONE);
		lose(p);
		next(k);
	} else if (write_all(p->fd, piece.ptr, piece.len)) {
		wire_took(k, t, piece.len);
	} else {
		give_up(k);
	}
}

static void take_piece(struct keeper *k, struct task *t, struct slice piece)
{
	struct pull *p = &k->pull;
	if (!p->entries[p->at].is_dir)
		take_bytes(k, t, piece);
	else if (take_list(p, piece))
		wire_took(k, t, piece.len);
	else
		give_up(k);
}

static void heard(struct keeper *k, struct task *t, const struct frame *f)
{
	int why;
	if (k->state != KEEPER_PULLING)
		return;
	if (f->kind == FRAME_OUT) {
		take_piece(k, t, f->payload);
	} else if (f->kind == FRAME_DONE) {
		if (done_is_good(f, &why))
			keep(&k->pull);
		else
			lose(&k->pull);
		next(k);
	}
}

/* ---- one after the other ---- */

/* Makes it here: nothing but what was made here lies on the way. A directory takes a block too, but for the workspace itself. */
static bool make(struct pull *p)
{
	char path[HERE_ROOM];
	const bool is_dir = p->entries[p->at].is_dir;
	path_here(p, path);
	p->size = 0;
	if (is_dir && p->at > 0 && !fits(p, 1))
		return false;
	if (!is_dir)
		p->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	p->is_made = is_dir ? mkdir(path, 0700) == 0 : p->fd >= 0;
	if (p->is_made && is_dir && p->at > 0)
		charge(p, 1);
	return p->is_made;
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
	drop_list(p);
	while (p->at < p->n) {
		path_of(p, p->at, path);
		if (make(p) && ask(k, path, p->entries[p->at].is_dir))
			return;
		lose(p);
	}
	keeper_leave(k);
}

void pull_begin(struct keeper *k)
{
	k->pull.allowed = bytes_allowed(k);
	if (!add(&k->pull, 0, SLICE_NONE, true))
		k->pull.lost++;
	next(k);
}

void pull_end(struct keeper *k)
{
	struct pull *p = &k->pull;
	char text[LIMIT_KEEPER_MESSAGE];
	if (p->is_made)
		lose(p);
	p->lost += p->n - p->at;
	if (p->lost > 0) {
		int n = snprintf(text, sizeof(text),
				 "the workspace is not kept as a whole: %llu files or directories are missing",
				 (unsigned long long)p->lost);
		result_say(&k->result, slice_of(text, (size_t)n));
	}
	drop_list(p);
	for (size_t i = 0; i < p->n; i++)
		free(p->entries[i].name);
	free(p->entries);
	*p = (struct pull){.fd = -1};
}
