/* One row for each backend. */
#include "orchestrator/service/backends.h"

#include <errno.h>
#include <string.h>

static const struct backend *const known[] = {&backend_local, &backend_podman, &backend_aci};

const struct backend *backend_at(size_t i)
{
	return i < sizeof(known) / sizeof(known[0]) ? known[i] : NULL;
}

const struct backend *backend_find(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && name; i++)
		if (strcmp(known[i]->name, name) == 0)
			return known[i];
	return NULL;
}

const struct backend *backend_of(const json_t *spec)
{
	return backend_find(json_string_value(json_object_get(spec, "backend")));
}

const struct backend *backend_of_dir(const char *dir)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i]->has_started && known[i]->has_started(known[i], dir))
			return known[i];
	return &backend_local;
}

const char *backend_limits(const struct backend *b)
{
	static enum { UNKNOWN, CGROUP, RLIMITS } found[sizeof(known) / sizeof(known[0])];
	size_t i = 0;
	while (i + 1 < sizeof(known) / sizeof(known[0]) && known[i] != b)
		i++;
	if (found[i] == UNKNOWN)
		found[i] = known[i]->has_groups(known[i]) ? CGROUP : RLIMITS;
	return found[i] == CGROUP ? "cgroup" : "rlimits";
}

/* ---- in a process of their own ---- */

static int outcome(bool ok)
{
	const int why = errno;
	return ok ? 0 : why > 0 && why < CHILD_UNPREPARED ? why : EIO;
}

static int sweep(const char *state, const void *backend)
{
	const struct backend *b = backend;
	b->tidy(b, state);
	return outcome(b->list(b, state));
}

static int reap(const char *dir, const void *backend)
{
	const struct backend *b = backend;
	return outcome(b->reap(b, dir));
}

static int remove_all(const char *dir, const void *backend)
{
	const struct backend *b = backend;
	return outcome(b->remove(b, dir));
}

bool backend_run(struct children *c, const struct backend *b, enum backend_task task, const char *where,
		 child_done *done, void *arg)
{
	static int (*const tasks[])(const char *, const void *) = {
		[BACKEND_SWEEP] = sweep, [BACKEND_REAP] = reap, [BACKEND_REMOVE] = remove_all};
	const struct child_spec spec = {.function = tasks[task],
					.text = where,
					.with = b,
					.most_said = task == BACKEND_SWEEP ? LIMIT_SERVE_SWEPT : 0,
					.done = done,
					.arg = arg};
	return child_run(c, &spec);
}
