/* Which files of a workspace the policy of the run is made of: the next run obeys what an agent writes there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/policy/policy.h"
#include "orchestrator/below.h"
#include "orchestrator/workspace.h"

/* One name more; the end is a name that is empty. */
static bool add(const char *path, const char *dir, char out[LIMIT_OWN_NAMES])
{
	size_t len = 0, skip = strlen(dir) + 1, more = strlen(path);
	if (!path_is_at_or_below(path, dir) || more <= skip)
		return true;
	more -= skip;
	while (out[len])
		len += strlen(out + len) + 1;
	if (len + more + 2 > LIMIT_OWN_NAMES)
		return false;
	memcpy(out + len, path + skip, more);
	memset(out + len + more, 0, 2);
	return true;
}

/* The file, and the link to it if its name is one. */
static bool add_both(const char *name, const char *dir, char out[LIMIT_OWN_NAMES])
{
	char parent[2 * LIMIT_WORKSPACE_PATH], whole[3 * LIMIT_WORKSPACE_PATH];
	const char *slash = strrchr(name, '/');
	snprintf(parent, sizeof(parent), "%.*s/.", slash ? (int)(slash - name) : 1, slash ? name : ".");
	char *real = realpath(name, NULL), *above = realpath(parent, NULL);
	snprintf(whole, sizeof(whole), "%s/%s", above ? above : "", slash ? slash + 1 : name);
	bool ok = (!real || add(real, dir, out)) && (!above || add(whole, dir, out));
	free(real);
	free(above);
	return ok;
}

bool own_names(const char *policy, const char *dir, char out[LIMIT_OWN_NAMES])
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	struct arena arena;
	if (!errs)
		return false;
	memset(out, 0, 2);
	arena_init(&arena, LIMIT_POLICY_REGION);
	const struct policy *p = policy_load(policy, &arena, clock_wall_s(), NULL, errs);
	bool ok = add_both(policy, dir, out); /* what it includes is not known if it is no longer a good one */
	for (const struct policy_file *f = p ? p->files : NULL; f && ok; f = f->next)
		ok = add_both(f->path.ptr, dir, out);
	arena_free(&arena);
	free(errs);
	return ok;
}
