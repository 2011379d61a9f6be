/* Judged is what the workspace will be with the patch in it, not the patch alone: two that are harmless may not add up to one
 * that is not. */
#include "orchestrator/obeyed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/below.h"
#include "orchestrator/obeyed_private.h"

/* What can't be looked at may be. */
static bool is_there(const char *root, struct slice dir, const char *name)
{
	char path[2 * LIMIT_WORKSPACE_PATH + 16];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%.*s%s", root, SLICE_FMT(dir), name);
	return lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* A directory below the workspace. */
struct place {
	const struct obeyed_in *in;
	struct slice dir;
};

static bool was_there(const void *arg, const char *name)
{
	const struct place *p = arg;
	return is_there(p->in->dir, p->dir, name);
}

static bool will_be_there(const void *arg, const char *name)
{
	const struct place *p = arg;
	return is_there(p->in->files, p->dir, name) || was_there(p, name);
}

/* By the name that git gives it, or by what is in it. */
static bool is_repository(const struct place *p, obeyed_has *has)
{
	struct slice name = slice_head(p->dir, p->dir.len > 0 ? p->dir.len - 1 : 0); /* without its slash */
	size_t slash = slice_rfind(name, '/');
	name = slash == name.len ? name : slice_from(name, slash + 1);
	return slice_ieq(name, SLICE(".git")) || obeyed_is_repository(has, p);
}

/* Of a directory on the way to something, and what is left of the way. */
typedef bool judge_place(const struct place *dir, struct slice rest);

static bool is_any_on_the_way(const struct obeyed_in *in, const char *path, judge_place *judge)
{
	struct slice all = slice_str(path);
	for (size_t at = 0; at < all.len; at += slice_find(slice_from(all, at), '/') + 1) {
		const struct place dir = {in, slice_head(all, at)};
		if (judge(&dir, slice_from(all, at)))
			return true;
	}
	return false;
}

static bool has_history(const struct place *dir, struct slice rest)
{
	return obeyed_is_commit(rest) && is_repository(dir, will_be_there);
}

bool obeyed_is_history(const struct obeyed_in *in, const char *path)
{
	return is_any_on_the_way(in, path, has_history);
}

static bool becomes_repository(const struct place *dir, struct slice rest)
{
	return obeyed_is_repository(will_be_there, dir) &&
	       (!obeyed_is_repository(was_there, dir) || !obeyed_is_commit(rest));
}

/* One that comes about by the patch is obeyed with all that is in it: what was there before counts from then on. */
static bool is_in_repository(const struct obeyed_in *in, const char *path)
{
	return is_any_on_the_way(in, path, becomes_repository);
}

/* ---- links ---- */

/* Only at the beginning of a target it is known where ".." leads: a name before it may become a link one day. */
bool link_leads_out(const char *path, const char *target)
{
	struct slice rest = slice_str(target), dir = slice_str(path);
	size_t depth = 0;
	bool has_name = false;
	if (target[0] == '/')
		return true;
	for (size_t i = 0; i < dir.len; i++)
		depth += dir.ptr[i] == '/';
	while (rest.len > 0) {
		struct slice name = slice_cut(&rest, '/');
		if (slice_eq(name, SLICE(".."))) {
			if (has_name || depth == 0)
				return true;
			depth--;
		} else if (name.len > 0 && !slice_eq(name, SLICE("."))) {
			has_name = true;
		}
	}
	return false;
}

/* A link of the workspace that was there before may lead out, and this one over it. */
static bool leads_over_another(const char *dir, const char *path, const char *target)
{
	char name[3 * LIMIT_WORKSPACE_PATH];
	struct slice way = slice_str(path);
	size_t slash = slice_rfind(way, '/');
	snprintf(name, sizeof(name), "%s/%.*s/%s", dir, slash == way.len ? 0 : (int)slash, path, target);
	char *root = realpath(dir, NULL), *real = realpath(name, NULL);
	bool out = !root || (real && !path_is_at_or_below(real, root));
	free(root);
	free(real);
	return out;
}

enum link { LINK_NONE, LINK_READ, LINK_UNKNOWN };

static enum link read_link(const struct obeyed_in *in, const char *path, char target[LIMIT_WORKSPACE_PATH])
{
	char name[2 * LIMIT_WORKSPACE_PATH];
	snprintf(name, sizeof(name), "%s/%s", in->files, path);
	ssize_t n = readlink(name, target, LIMIT_WORKSPACE_PATH - 1);
	if (n < 0)
		return errno == EINVAL || errno == ENOENT || errno == ENOTDIR ? LINK_NONE : LINK_UNKNOWN;
	target[n] = '\0';
	return LINK_READ;
}

/* Where a link leads that does not lead out: names below the workspace, of which ".." takes away those before it. */
static void follow_names(const char *path, const char *target, char out[2 * LIMIT_WORKSPACE_PATH])
{
	struct slice rest = slice_str(target), way = slice_str(path);
	size_t slash = slice_rfind(way, '/'), len = slash == way.len ? 0 : slash;
	memcpy(out, path, len);
	while (rest.len > 0) {
		struct slice name = slice_cut(&rest, '/');
		if (slice_eq(name, SLICE(".."))) {
			struct slice up = slice_of(out, len);
			slash = slice_rfind(up, '/');
			len = slash == up.len ? 0 : slash;
		} else if (name.len > 0 && !slice_eq(name, SLICE("."))) {
			if (len > 0)
				out[len++] = '/';
			memcpy(out + len, name.ptr, name.len);
			len += name.len;
		}
	}
	out[len] = '\0';
}

static bool is_obeyed(const struct obeyed_in *in, const char *path)
{
	return obeyed_by_name(path) || obeyed_touches_found(&in->found->names, path) || is_in_repository(in, path);
}

/* Whoever writes to it by that name writes what is obeyed. In a repository links have no place. */
static bool leads_to_obeyed(const struct obeyed_in *in, const char *path, const char *target)
{
	char to[2 * LIMIT_WORKSPACE_PATH];
	follow_names(path, target, to);
	return obeyed_is_history(in, path) || is_obeyed(in, to) || obeyed_is_history(in, to);
}

static const char *link_why(const struct obeyed_in *in, const char *path)
{
	char target[LIMIT_WORKSPACE_PATH];
	enum link link = read_link(in, path, target);
	if (link == LINK_NONE)
		return NULL;
	if (link == LINK_UNKNOWN || link_leads_out(path, target) || leads_over_another(in->dir, path, target))
		return "is a link that leads out of the workspace";
	return leads_to_obeyed(in, path, target)
		       ? "is a link to something that programs outside of the room run or obey"
		       : NULL;
}

/* ---- all of it ---- */

static bool is_at_or_below(struct slice path, struct slice dir)
{
	return slice_ieq(slice_head(path, dir.len), dir) && (path.len == dir.len || path.ptr[dir.len] == '/');
}

/* Also what takes the place of a directory above it: a link there leads to another file. */
static bool touches(struct slice changed, struct slice name)
{
	return is_at_or_below(name, changed) || is_at_or_below(changed, name);
}

static bool is_own(const struct obeyed_in *in, const char *path)
{
	for (const char *name = in->own; *name; name += strlen(name) + 1)
		if (touches(slice_str(path), slice_str(name)))
			return true;
	return false;
}

const char *obeyed_why(const struct obeyed_in *in, const char *path)
{
	if (is_obeyed(in, path))
		return "is something that programs outside of the room run or obey";
	if (is_own(in, path))
		return "belongs to the policy of the run, or to cage itself";
	const char *why = link_why(in, path);
	if (why)
		return why;
	if (in->found->known != OBEYED_KNOWN)
		return "may be obeyed by programs outside of the room: what they obey in the workspace can't be told";
	return NULL;
}
