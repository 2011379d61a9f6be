/* What stands behind a sandbox: something that starts one from its directory, ends one by force, says which ones it owns, and
 * removes what one left.
 *
 * start() is called on the loop of the service and may not wait: whatever takes long is done by the process that it starts, the
 * keeper of that sandbox. All others are called in a process of their own (child.h), may block for as long as a helper may, and
 * answer by what they return and write to stdout. So a backend whose work takes seconds answers later in both cases, and the loop
 * goes on.
 *
 * A keeper outlives the service. Whoever has started it, it holds DIR/lock as long as it lives, listens at DIR/socket
 * (inside/frame.h), by which all is done with a sandbox that runs, and leaves DIR/result at its end. The directory is the service's:
 * it is made before start(), and nobody but remove() removes it. */
#ifndef CAGE_ORCHESTRATOR_BACKEND_H
#define CAGE_ORCHESTRATOR_BACKEND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/limits.h"
#include "orchestrator/words.h"

#define BACKEND_PATH LIMIT_SERVE_DIR

/* What is to be started. All of it is the caller's, and gone when start() returns. */
struct backend_start {
	const char *id;
	const char *state;       /* directory of the service */
	const char *dir;         /* of this sandbox */
	const char *mode;        /* of the lock: auto, netns or seccomp */
	const char *rootfs;      /* directory; NULL: the programs of this machine */
	const char *signatures;  /* directory, of images; NULL or "": none */
	const json_t *spec;      /* as create.h makes it */
	uint64_t life_s;         /* that are left of its lifetime */
	uint64_t log_max;        /* bytes of each of its logs */
	uint64_t stand_ms;       /* not 0: it stands so long, with nothing in it, until begin() and FRAME_BEGIN */
	const struct words *env; /* NAME=VALUE: values of secrets, in the order of spec's `secrets` */
};

struct maker; /* service/maker.h */

/* Each function is told whose it is, so that several backends can be rows over the same functions. */
struct backend {
	const char *name;    /* as `backend` of a create and the row of a sandbox have it */
	struct maker *maker; /* the program that makes its rooms in the place of `cage run`; NULL: none */

	/* May a create name an `image`? Then start() sees to it that it is admitted once more, by who makes a container of it. */
	bool takes_images;

	/* On the loop, once: are memory and processes limited for all of a sandbox together, by a cgroup? Else each process is
	 * limited by itself, which is weaker. */
	bool (*has_groups)(const struct backend *self);

	/* On the loop. The pid of the keeper, which the service reaps if it is still there then; -1 with a message: there is
	 * none. */
	pid_t (*start)(const struct backend *self, const struct backend_start *s);

	/* On the loop: what its keeper shall read at FRAME_BEGIN, of one that was started to stand. False with errno. NULL: this
	 * backend has none that stand. */
	bool (*begin)(const struct backend *self, const struct backend_start *s);

	/* In a process of its own: writes the id of each sandbox of which there is anything, one for each line, to stdout. False
	 * with errno: the list is not whole. */
	bool (*list)(const struct backend *self, const char *state);

	/* On the loop, and for the few that have no row: was it this backend that started what is in a directory? NULL: what no
	 * other one has. */
	bool (*has_started)(const struct backend *self, const char *dir);

	/* In a process of its own: what is nobody's any more, outside of the directories of sandboxes. */
	void (*tidy)(const struct backend *self, const char *state);

	/* In a process of its own: ends its keeper and its room by force, if they are there, and clears what they have outside of
	 * the directory. The directory stays. False with errno: it may still run. */
	bool (*reap)(const struct backend *self, const char *dir);

	/* In a process of its own: the same, and then its directory. False with errno: something is left. */
	bool (*remove)(const struct backend *self, const char *dir);
};

extern const struct backend backend_local, backend_podman, backend_aci;

#endif
