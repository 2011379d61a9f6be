/* Looking through a workspace for what makes other names in it obeyed. That is done once for a patch, and only where there is
 * one: all of the workspace has to be looked at. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "orchestrator/asked.h"
#include "orchestrator/below.h"
#include "orchestrator/obeyed_private.h"
#include "orchestrator/own_trace.h"
#include "orchestrator/rights.h"
#include "orchestrator/walk.h"

bool obeyed_goes_on(struct obeyed_search *s)
{
	s->out->failed = s->out->failed || is_asked_to_end();
	return !s->out->failed;
}

/* The workspace itself says that all of it is meant. */
static void add_one(struct obeyed_search *s, const char *path)
{
	const size_t len = strcmp(s->dir, "/") == 0 ? 0 : strlen(s->dir);
	if (!path_is_at_or_below(path, s->dir))
		return;
	if (path[len] == '\0' || path[len + 1] == '\0')
		s->out->failed = true;
	else
		obeyed_found_add(s->out, path + len + 1);
}

void obeyed_add(struct obeyed_search *s, const char *path)
{
	struct words way = {0};
	if (!obeyed_goes_on(s))
		return;
	if (++s->n_looks > LIMIT_OBEYED_LOOKS || !own_trace(path, &way))
		s->out->failed = true;
	for (size_t i = 0; i < way.n; i++)
		add_one(s, way.list[i]);
	words_free(&way);
}

/* ---- the walk ---- */

/* Full of what commits write. */
static bool is_store(const struct walk_at *at)
{
	static const char *const stores[] = {".git/objects", ".git/refs", ".git/logs"};
	const size_t len = strlen(at->path);
	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		const size_t n = strlen(stores[i]);
		if (len >= n && strcmp(at->path + len - n, stores[i]) == 0 &&
		    (len == n || at->path[len - n - 1] == '/'))
			return true;
	}
	return false;
}

/* The directory that it is in, with its name outside. */
static bool name_above(const struct obeyed_search *s, const struct walk_at *at, char out[LIMIT_WORKSPACE_PATH])
{
	const size_t len = strlen(at->path) - strlen(at->name);
	if (snprintf(out, LIMIT_WORKSPACE_PATH, "%s%s%.*s", s->dir, len > 0 ? "/" : "", (int)(len > 0 ? len - 1 : 0),
		     at->path) < LIMIT_WORKSPACE_PATH)
		return true;
	s->out->failed = true;
	return false;
}

static void note_link(struct obeyed_search *s, const char *path)
{
	s->n_bytes += strlen(path) + 1;
	if (s->n_bytes > LIMIT_LINK_NAMES)
		s->out->failed = true;
	else
		words_add(&s->links, "%s", path);
}

static int meet(void *arg, const struct walk_at *at)
{
	struct obeyed_search *s = arg;
	char above[LIMIT_WORKSPACE_PATH];
	if (!obeyed_goes_on(s))
		return ECANCELED;
	if (S_ISLNK(at->st->st_mode))
		note_link(s, at->path);
	if (strcmp(at->name, ".git") == 0 && name_above(s, at, above))
		obeyed_find_git(s, above);
	if (strcmp(at->name, "HEAD") == 0 && name_above(s, at, above))
		obeyed_find_bare(s, above);
	return is_store(at) ? WALK_PASS : 0;
}

/* DIR may be a part of a repository. */
static void look_above(struct obeyed_search *s)
{
	char path[LIMIT_WORKSPACE_PATH];
	snprintf(path, sizeof(path), "%s", s->dir);
	for (char *slash; (slash = strrchr(path, '/')) != NULL && path[1];) {
		slash[slash == path] = '\0';
		obeyed_find_git(s, path);
		obeyed_find_bare(s, path);
	}
}

/* ---- links ---- */

/* True: one more was followed. What it leads to may have others in it. */
static bool follow_links(struct obeyed_search *s)
{
	char path[2 * LIMIT_WORKSPACE_PATH];
	bool any = false;
	for (size_t i = 0; i < s->links.n && !s->out->failed; i++) {
		char *link = s->links.list[i];
		if (!link[0] || !(obeyed_by_name(link) || obeyed_is_found(s->out, link)))
			continue;
		snprintf(path, sizeof(path), "%s/%s", s->dir, link);
		obeyed_add(s, path);
		link[0] = '\0';
		any = true;
	}
	return any;
}

static void follow_all_links(struct obeyed_search *s)
{
	int rounds = 0;
	while (rounds < LIMIT_LINK_ROUNDS && follow_links(s))
		rounds++;
	if (rounds == LIMIT_LINK_ROUNDS)
		s->out->failed = true;
}

/* ---- all of it ---- */

static void look_through(struct obeyed_search *s)
{
	const struct walk walk = {.before = meet, .arg = s, .mounts = WALK_CROSS};
	if (walk_tree(s->dir, &walk) != 0)
		s->out->failed = true;
	look_above(s);
	follow_all_links(s);
}

static void look_as_owner(struct obeyed_search *s, const struct owner *owner)
{
	struct rights rights;
	if (!rights_lower(&rights, owner)) {
		s->out->failed = true;
		return;
	}
	if (rights.is_lowered)
		obeyed_find_of_user(s, owner->uid);
	look_through(s);
	rights_restore(&rights);
}

void obeyed_find(const char *dir, const struct owner *owner, struct obeyed *out)
{
	char *real = realpath(dir, NULL);
	struct obeyed_search s = {.dir = real, .out = &out->names};
	*out = (struct obeyed){.known = OBEYED_UNKNOWN};
	if (real && strlen(real) < LIMIT_WORKSPACE_PATH) {
		obeyed_find_ours(&s);
		look_as_owner(&s, owner);
		if (!out->names.failed && !s.links.failed && !s.everywhere.failed)
			out->known = OBEYED_KNOWN;
	}
	words_free(&s.links);
	words_free(&s.everywhere);
	free(real);
}
