/* Files are known by device and inode, not by name: a directory has several names where it is mounted twice. */
#include "orchestrator/own_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/say.h"
#include "orchestrator/gate/machine.h"
#include "orchestrator/own_trace.h"

/* Something that the room is asked to show. */
struct shown {
	const char *option, *source; /* as they were given */
	char *real;
	struct stat st;
	const char *place; /* in the room */
	bool can_change, can_mount;
};

/* ---- which ones ---- */

void own_files_add(struct own_files *f, enum own_kind kind, const char *path)
{
	if (!own_trace(path, &f->paths[kind]))
		f->paths[kind].failed = true;
}

/* ---- where ---- */

/* The part of the path below the directory, or the empty one of the file itself; NULL: it is somewhere else. Only the last
 * part of a path is ever a link (own_trace.h), which is a file like others here. */
static const char *below(const char *path, const struct stat *dir)
{
	struct stat st;
	char *part = strdup(path);
	const char *rest = part ? NULL : path; /* no memory: it counts as found */
	for (size_t len = strlen(path); part && !rest; len = (size_t)(strrchr(part, '/') - part)) {
		part[len] = '\0';
		if (lstat(len > 0 ? part : "/", &st) == 0 && st.st_dev == dir->st_dev && st.st_ino == dir->st_ino)
			rest = path + len;
		if (len == 0)
			break;
	}
	free(part);
	return rest;
}

static bool is_in(const char *path, const char *dir)
{
	struct stat st;
	return lstat(dir, &st) == 0 && below(path, &st);
}

/* ---- what is done about it ---- */

/* Each place once: the mounts of a room are counted. */
static void hide_once(struct own_files *f, const char *path)
{
	for (size_t i = 0; i + 1 < f->room.n; i += 2)
		if (strcmp(f->room.list[i], "--hide") == 0 && strcmp(f->room.list[i + 1], path) == 0)
			return;
	words_add(&f->room, "--hide");
	words_add(&f->room, "%s", path);
}

static void hide(struct own_files *f, const char *place, const char *rest)
{
	char *path = NULL;
	if (asprintf(&path, "%s%s", place, rest) < 0) {
		f->room.failed = true;
		return;
	}
	hide_once(f, path);
	free(path);
}

/* A view of a workspace: what CMD does to the policy there would be made of it by cage apply. A directory is left to that,
 * which asks: it may be that of somebody who works on the ready policies. */
static void keep_as_it_is(struct own_files *f, const char *own, const char *place, const char *rest)
{
	struct stat st;
	if (lstat(own, &st) != 0 || !S_ISREG(st.st_mode))
		return;
	words_add(&f->room, "--bind-ro");
	words_add(&f->room, "%s:%s%s", own, place, rest);
}

static bool refuse(const struct shown *s, const char *own, const char *why)
{
	say("%s %s: %s %s", s->option, s->source, own, why);
	return false;
}

static bool refuse_sight(const struct shown *s, const char *own)
{
	return refuse(s, own, "has secrets of cage, which CMD must not see: keep it elsewhere, or show less");
}

static bool refuse_change(const struct shown *s, const char *own)
{
	return refuse(s, own,
		      "is cage's own, and CMD could change it: keep it elsewhere (--ca-dir, --log, --policy), or show "
		      "this with --bind-ro or --workspace");
}

static bool is_workspace(const struct shown *s)
{
	return strcmp(s->option, "--workspace") == 0;
}

/* It shows nothing: where it leads is looked at itself. */
static bool is_link(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static bool settle(struct own_files *f, const struct shown *s, enum own_kind kind, const char *own)
{
	const char *rest = below(own, &s->st);
	if (!rest && !is_in(s->real, own))
		return true;
	switch (kind) {
	case OWN_RUN:
		return refuse(s, own, "has the files of this run, beside those of others, which CMD must not see");
	case OWN_KEYS:
	case OWN_SECRET:
		return (!s->can_change && is_link(own)) || refuse_sight(s, own);
	case OWN_LOG:
		return !s->can_change || refuse_change(s, own);
	case OWN_POLICY:
	case OWN_PROGRAM:
		if (rest && is_workspace(s) && s->can_mount)
			keep_as_it_is(f, own, s->place, rest);
		return !s->can_change || refuse_change(s, own);
	case OWN_KINDS:
		break;
	}
	return false;
}

/* What is not there is left to the gate, which says so. */
static bool settle_all(struct own_files *f, struct shown *s)
{
	bool ok = true;
	s->real = realpath(s->source, NULL);
	if (!s->real || stat(s->real, &s->st) != 0) {
		free(s->real);
		return true;
	}
	for (int kind = 0; kind < OWN_KINDS; kind++)
		for (size_t i = 0; ok && i < f->paths[kind].n; i++)
			ok = settle(f, s, (enum own_kind)kind, f->paths[kind].list[i]);
	free(s->real);
	return ok;
}

/* ---- all that is asked for ---- */

static bool check_bind(struct own_files *f, const char *option, const char *value, bool can_mount)
{
	char *source = strndup(value, strcspn(value, ":"));
	if (!source) {
		say("no memory");
		return false;
	}
	const char *place = value[strlen(source)] ? value + strlen(source) + 1 : source;
	struct shown s = {.option = option,
			  .source = source,
			  .place = place,
			  .can_change = strcmp(option, "--bind") == 0,
			  .can_mount = can_mount};
	bool ok = settle_all(f, &s);
	free(source);
	return ok;
}

/* Where nothing can be mounted the gate is told what CMD must not be able to open: of a directory that others may look into,
 * the keys. */
static void hide_where_shared(struct own_files *f)
{
	static const char *const secret[] = {"/ca.key", "/fingerprint.key", "/placeholder.key", "/patches"};
	for (size_t i = 0; i < f->paths[OWN_KEYS].n; i++)
		for (size_t j = 0; j < sizeof(secret) / sizeof(secret[0]); j++)
			hide(f, f->paths[OWN_KEYS].list[i], secret[j]);
	for (size_t i = 0; i < f->paths[OWN_SECRET].n; i++)
		hide(f, f->paths[OWN_SECRET].list[i], "");
}

/* What the room shows of this machine by itself must not have it in it; of /etc, the gate leaves out what has. */
static bool check_tree(struct own_files *f, const char *tree, const char *own)
{
	struct stat st;
	const char *rest = stat(tree, &st) == 0 ? below(own, &st) : NULL;
	if (!rest || is_link(own))
		return true;
	if (strcmp(tree, MACHINE_ETC) == 0 && rest[0]) {
		hide(f, MACHINE_ETC, rest);
		return true;
	}
	say("%s has secrets of cage, and every room shows %s: keep it elsewhere", own, tree);
	return false;
}

static bool check_machine(struct own_files *f)
{
	static const enum own_kind kinds[] = {OWN_KEYS, OWN_SECRET};
	bool ok = true;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (size_t i = 0; ok && i < f->paths[kinds[k]].n; i++)
			for (size_t tree = 0; ok && machine_trees[tree]; tree++)
				ok = check_tree(f, machine_trees[tree], f->paths[kinds[k]].list[i]);
	return ok;
}

bool own_files_check(struct own_files *f, const struct words *asked, const struct workspace *w, enum room_files files)
{
	const bool can_mount = files != FILES_SHARED;
	bool ok = !asked->failed;
	struct shown view = {.option = "--workspace", .source = w->dir, .place = w->dir, .can_mount = can_mount};
	for (size_t i = 0; ok && i + 1 < asked->n; i += 2)
		if (strncmp(asked->list[i], "--bind", 6) == 0 || strcmp(asked->list[i], "--root") == 0)
			ok = check_bind(f, asked->list[i], asked->list[i + 1], can_mount);
	if (ok && w->dir[0])
		ok = settle_all(f, &view);
	if (can_mount)
		ok = ok && check_machine(f);
	else
		hide_where_shared(f);
	for (int kind = 0; kind < OWN_KINDS; kind++)
		ok = ok && !f->paths[kind].failed;
	return ok && !f->room.failed;
}

/* ---- what cage apply has to know ---- */

/* One name more; the end is a name that is empty. */
static bool add_name(const char *name, char out[LIMIT_OWN_NAMES])
{
	size_t len = 0, more = strlen(name);
	while (out[len])
		len += strlen(out + len) + 1;
	if (len + more + 2 > LIMIT_OWN_NAMES)
		return false;
	memcpy(out + len, name, more);
	memset(out + len + more, 0, 2);
	return true;
}

static bool add_names(const struct words *paths, const struct stat *dir, char out[LIMIT_OWN_NAMES])
{
	bool ok = true;
	for (size_t i = 0; ok && i < paths->n; i++) {
		const char *rest = below(paths->list[i], dir);
		ok = !rest || !rest[0] || add_name(rest + 1, out);
	}
	return ok;
}

bool own_files_names(const struct own_files *f, const char *dir, char out[LIMIT_OWN_NAMES])
{
	struct stat st;
	memset(out, 0, 2);
	bool ok = stat(dir, &st) == 0;
	for (int kind = 0; kind < OWN_KINDS; kind++)
		ok = ok && add_names(&f->paths[kind], &st, out);
	return ok;
}

void own_files_free(struct own_files *f)
{
	for (int kind = 0; kind < OWN_KINDS; kind++)
		words_free(&f->paths[kind]);
	words_free(&f->room);
}
