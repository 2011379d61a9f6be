/* The backends of this build, and how those functions of theirs are called that may take long. */
#ifndef CAGE_SERVICE_BACKENDS_H
#define CAGE_SERVICE_BACKENDS_H

#include "orchestrator/backend.h"
#include "orchestrator/service/child.h"

/* All that this build has, also those that the configuration does not name: there may be sandboxes of theirs. NULL: no more. */
const struct backend *backend_at(size_t i);

/* NULL: this build has none of that name. */
const struct backend *backend_find(const char *name);

/* That of a sandbox, by its spec; NULL likewise. */
const struct backend *backend_of(const json_t *spec);

/* That of what lies in a sandbox's directory, of which there is no row. */
const struct backend *backend_of_dir(const char *dir);

/* What holds the limits of its sandboxes: "cgroup" or "rlimits". It is found out once. */
const char *backend_limits(const struct backend *b);

enum backend_task {
	BACKEND_SWEEP, /* tidy() and list(); where: the state directory */
	BACKEND_REAP,  /* where: the sandbox's */
	BACKEND_REMOVE
};

/* done: the exit code is 0, or an errno. False: not now. */
bool backend_run(struct children *c, const struct backend *b, enum backend_task task, const char *where,
		 child_done *done, void *arg);

#endif
