/* Sandboxes of Podman's containers, made by cage-pod (orchestrator/pod). */
#include "orchestrator/service/backend_podman.h"

#include "orchestrator/backend.h"
#include "orchestrator/service/backend_local.h"

struct maker podman_maker = {.program = "cage-pod", .word = "pod="};

static bool has_groups(void)
{
	return true; /* Podman makes them, or no container */
}

static pid_t start(const struct backend_start *s)
{
	return maker_start(&podman_maker, s);
}

static bool begin(const struct backend_start *s)
{
	return maker_begin(&podman_maker, s);
}

static void tidy(const char *state)
{
	maker_tidy(&podman_maker, state);
}

static bool has_started(const char *dir)
{
	return maker_has_started(&podman_maker, dir);
}

static bool reap(const char *dir)
{
	return maker_reap(&podman_maker, dir);
}

static bool remove_all(const char *dir)
{
	return maker_remove(&podman_maker, dir);
}

const struct backend backend_podman = {.name = "podman",
				       .takes_images = true,
				       .has_groups = has_groups,
				       .start = start,
				       .begin = begin,
				       .list = maker_list,
				       .has_started = has_started,
				       .tidy = tidy,
				       .reap = reap,
				       .remove = remove_all};
