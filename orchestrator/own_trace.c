/* realpath() says where a name ends, but not what it came by: who can change a link on the way says where it leads. */
#include "orchestrator/own_trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/say.h"
#include "core/base/slice.h"

struct trace {
	char real[LIMIT_WORKSPACE_PATH];     /* how far we are; empty: the root */
	char rest[2 * LIMIT_WORKSPACE_PATH]; /* what is still to go */
	int hops;
};

static void add_once(struct words *w, const char *word)
{
	if (!words_has(w, word))
		words_add(w, "%s", word);
}

static bool too_long(void)
{
	errno = ENAMETOOLONG;
	return false;
}

/* What the link says comes before the rest, from the root or from the directory that it is in. */
static bool follow(struct trace *t, const char *target)
{
	char all[sizeof(t->rest)];
	if (++t->hops > LIMIT_LINK_HOPS) {
		errno = ELOOP;
		return false;
	}
	if (snprintf(all, sizeof(all), "%s/%s", target, t->rest) >= (int)sizeof(all))
		return too_long();
	memcpy(t->rest, all, strlen(all) + 1);
	if (target[0] == '/')
		t->real[0] = '\0';
	return true;
}

static void go_up(struct trace *t)
{
	char *slash = strrchr(t->real, '/');
	if (slash)
		*slash = '\0';
}

static bool enter(struct trace *t, struct slice name, struct words *out)
{
	char next[sizeof(t->real)], target[LIMIT_WORKSPACE_PATH];
	if (snprintf(next, sizeof(next), "%s/%.*s", t->real, SLICE_FMT(name)) >= (int)sizeof(next))
		return too_long();
	ssize_t n = readlink(next, target, sizeof(target));
	if (n == (ssize_t)sizeof(target))
		return too_long();
	if (n < 0) { /* no link, or nothing that we can look at */
		memcpy(t->real, next, strlen(next) + 1);
		return true;
	}
	target[n] = '\0';
	add_once(out, next);
	return follow(t, target);
}

static bool begin(struct trace *t, const char *path)
{
	if (path[0] != '/' && !getcwd(t->real, sizeof(t->real)))
		return false;
	if (strcmp(t->real, "/") == 0)
		t->real[0] = '\0';
	return snprintf(t->rest, sizeof(t->rest), "%s", path) < (int)sizeof(t->rest) || too_long();
}

/* Its first part is taken off before it is looked at, since a link puts another before what remains. */
static bool step(struct trace *t, struct words *out)
{
	char part[sizeof(t->rest)];
	size_t len = strcspn(t->rest, "/"), skip = t->rest[len] ? len + 1 : len;
	memcpy(part, t->rest, len);
	memmove(t->rest, t->rest + skip, strlen(t->rest + skip) + 1);
	struct slice name = slice_of(part, len);
	if (len == 0 || slice_eq(name, SLICE(".")))
		return true;
	if (!slice_eq(name, SLICE("..")))
		return enter(t, name, out);
	go_up(t);
	return true;
}

bool own_trace(const char *path, struct words *out)
{
	struct trace t = {.hops = 0};
	bool ok = begin(&t, path);
	while (ok && t.rest[0])
		ok = step(&t, out);
	if (!ok) {
		say("%s: %s", path, strerror(errno));
		return false;
	}
	add_once(out, t.real[0] ? t.real : "/");
	return !out->failed;
}
