/* What stands behind a sandbox: something that can start one from its directory, say which ones it owns, and remove what one
 * left. All that is done with a running one goes over the socket in its directory (inside/frame.h), whoever has started it. */
#ifndef CAGE_ORCHESTRATOR_BACKEND_H
#define CAGE_ORCHESTRATOR_BACKEND_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "core/base/limits.h"
#include "orchestrator/words.h"

#define BACKEND_PATH 4200 /* a directory of the state, and a name */

/* What is to be started. */
struct backend_start {
	const char *id;
	const char *state;       /* directory of the service */
	const char *dir;         /* of this sandbox */
	const char *mode;        /* of the lock: auto, netns or seccomp */
	const json_t *spec;      /* as create.h makes it */
	uint64_t life_s;         /* that are left of its lifetime */
	const struct words *env; /* NAME=VALUE: values of secrets, in the order of spec's `secrets` */
};

typedef void backend_found(void *arg, const char *id);

struct backend {
	const char *name;
	/* The process that keeps it, which outlives us; -1 with a message. */
	pid_t (*start)(const struct backend_start *s);
	/* Each sandbox of which there is anything; false with a message. */
	bool (*list)(const char *state, backend_found *found, void *arg);
	/* All that it wrote. In a process of its own, since it may take long. False with errno: something is left. */
	bool (*remove)(const char *dir);
};

extern const struct backend backend_local;

#endif
