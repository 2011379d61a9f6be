/* Looking through a workspace for what makes other names in it obeyed. That is done once for a patch, and only where there is
 * one: all of the workspace has to be looked at. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/limits.h"
#include "orchestrator/below.h"
#include "orchestrator/obeyed.h"
#include "orchestrator/own_trace.h"
#include "orchestrator/walk.h"

struct search {
	const char *dir;    /* the workspace, by its real name */
	struct words links; /* of it, all of them; empty ones were followed */
	size_t n_bytes;     /* of their names */
	struct words *out;
};

/* ---- names ---- */

static bool has(const struct words *w, const char *word)
{
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->list[i], word) == 0)
			return true;
	return false;
}

/* The workspace itself says that all of it is meant. */
static void add_one(const char *dir, const char *path, struct words *out)
{
	const size_t len = strcmp(dir, "/") == 0 ? 0 : strlen(dir);
	if (!path_is_at_or_below(path, dir))
		return;
	if (out->n == LIMIT_OBEYED || path[len] == '\0' || path[len + 1] == '\0')
		out->failed = true;
	else if (!has(out, path + len + 1))
		words_add(out, "%s", path + len + 1);
}

void obeyed_add(const char *dir, const char *path, struct words *out)
{
	struct words way = {0};
	if (!own_trace(path, &way))
		out->failed = true;
	for (size_t i = 0; i < way.n; i++)
		add_one(dir, way.list[i], out);
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
static bool name_above(const struct search *s, const struct walk_at *at, char out[LIMIT_WORKSPACE_PATH])
{
	const size_t len = strlen(at->path) - strlen(at->name);
	if (snprintf(out, LIMIT_WORKSPACE_PATH, "%s%s%.*s", s->dir, len > 0 ? "/" : "", (int)(len > 0 ? len - 1 : 0),
		     at->path) < LIMIT_WORKSPACE_PATH)
		return true;
	s->out->failed = true;
	return false;
}

static void note_link(struct search *s, const char *path)
{
	s->n_bytes += strlen(path) + 1;
	if (s->n_bytes > LIMIT_LINK_NAMES)
		s->out->failed = true;
	else
		words_add(&s->links, "%s", path);
}

static int meet(void *arg, const struct walk_at *at)
{
	struct search *s = arg;
	char above[LIMIT_WORKSPACE_PATH];
	if (S_ISLNK(at->st->st_mode))
		note_link(s, at->path);
	if (strcmp(at->name, ".git") == 0 && name_above(s, at, above))
		obeyed_find_git(s->dir, above, s->out);
	if (strcmp(at->name, "HEAD") == 0 && name_above(s, at, above))
		obeyed_find_bare(s->dir, above, s->out);
	return is_store(at) ? WALK_PASS : 0;
}

/* DIR may be a part of a repository. */
static void look_above(const struct search *s)
{
	char path[LIMIT_WORKSPACE_PATH];
	snprintf(path, sizeof(path), "%s", s->dir);
	for (char *slash; (slash = strrchr(path, '/')) != NULL && path[1];) {
		slash[slash == path] = '\0';
		obeyed_find_git(s->dir, path, s->out);
		obeyed_find_bare(s->dir, path, s->out);
	}
}

/* ---- links ---- */

/* True: one more was followed. What it leads to may have others in it. */
static bool follow_links(struct search *s)
{
	char path[2 * LIMIT_WORKSPACE_PATH];
	bool any = false;
	for (size_t i = 0; i < s->links.n && !s->out->failed; i++) {
		char *link = s->links.list[i];
		if (!link[0] || !(obeyed_by_name(link) || obeyed_is_found(s->out, link)))
			continue;
		snprintf(path, sizeof(path), "%s/%s", s->dir, link);
		obeyed_add(s->dir, path, s->out);
		link[0] = '\0';
		any = true;
	}
	return any;
}

void obeyed_find(const char *dir, struct words *out)
{
	char *real = realpath(dir, NULL);
	struct search s = {.dir = real, .out = out};
	const struct walk walk = {.before = meet, .arg = &s, .mounts = WALK_CROSS};
	int rounds = 0;
	*out = (struct words){0};
	if (real && strlen(real) < LIMIT_WORKSPACE_PATH && walk_tree(real, &walk) == 0) {
		look_above(&s);
		while (rounds < LIMIT_LINK_ROUNDS && follow_links(&s))
			rounds++;
		out->failed = out->failed || rounds == LIMIT_LINK_ROUNDS;
	} else {
		out->failed = true;
	}
	out->failed = out->failed || s.links.failed;
	words_free(&s.links);
	free(real);
}
