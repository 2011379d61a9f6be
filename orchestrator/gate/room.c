/* The life of a room, from what is got for it outside to the last step before CMD. */
#include "orchestrator/gate/room.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/below.h"
#include "orchestrator/gate/container.h"
#include "orchestrator/gate/measure.h"
#include "orchestrator/gate/mount_tree.h"
#include "orchestrator/gate/mounts.h"
#include "orchestrator/gate/overlay.h"
#include "orchestrator/gate/plain.h"
#include "orchestrator/gate/say.h"

void room_init(struct room *room)
{
	*room = (struct room){.uid = 1000, .runner = getuid()};
}

const char *room_home(const struct room *room)
{
	for (size_t i = 0; i < room->n_env; i++)
		if (strncmp(room->env[i], "HOME=/", 6) == 0)
			return room->env[i] + 5;
	return "/home/agent";
}

static bool is_bind(enum fitting_kind kind)
{
	switch (kind) {
	case FITTING_BIND:
	case FITTING_BIND_RO:
	case FITTING_OVERLAY:
		return true;
	case FITTING_REPLACE: /* left out where nothing can be mounted */
	case FITTING_COPY:
	case FITTING_TMPFS:
	case FITTING_HIDE:
		break;
	}
	return false;
}

enum bound room_bound(const struct room *room, const char *path)
{
	enum bound best = BOUND_NOT;
	for (size_t i = 0; i < room->n_fittings && best != BOUND_ITSELF; i++) {
		const struct fitting *f = &room->fittings[i];
		size_t len = strlen(f->path);
		while (len > 0 && f->path[len - 1] == '/')
			len--;
		if (!is_bind(f->kind) || strncmp(path, f->path, len) != 0)
			continue;
		if (path[len] == '\0')
			best = BOUND_ITSELF;
		else if (path[len] == '/')
			best = BOUND_ABOVE;
	}
	return best;
}

/* Root may bind what the agent itself could not reach. For all others, and for the root of a container, it is the same inside,
 * and has to be done there: only there they may mount. */
static int open_sources(const struct room *room, struct room_supplies *out)
{
	for (size_t i = 0; i < room->n_fittings; i++) {
		const struct fitting *f = &room->fittings[i];
		if (!f->source || geteuid() != 0)
			continue;
		out->trees[i] = f->kind == FITTING_OVERLAY ? overlay_lower(f->source, room->uid)
							   : mount_tree_clone_plain(f->source);
		if (out->trees[i] < 0 && (errno != EPERM || f->kind == FITTING_OVERLAY))
			return plain_say(f->source);
		if (f->kind == FITTING_OVERLAY && (out->states[i] = mount_tree_clone_plain(f->state)) < 0)
			return plain_say(f->state);
	}
	return 0;
}

void room_prepare_shared(const struct room *room, struct room_supplies *out)
{
	*out = (struct room_supplies){.cgroup = {.n = 0}};
	for (size_t i = 0; i < LIMIT_ROOM_FITTINGS; i++)
		out->trees[i] = out->states[i] = -1;
	cgroup_make(&out->cgroup, &room->limits);
}

int room_prepare(const struct room *room, struct room_supplies *out)
{
	room_prepare_shared(room, out);
	return open_sources(room, out);
}

int room_admit(const struct room *room, const struct room_supplies *supplies, pid_t child)
{
	if (cgroup_add(&supplies->cgroup, child) < 0)
		return -1;
	return room_limits_start_clock(&room->limits);
}

static int name_host(const struct room *room, unsigned namespaces)
{
	const char *name = room->hostname ? room->hostname : "cage";
	if (!(namespaces & CLONE_NEWUTS)) {
		if (room->hostname)
			say("--hostname: this host allows no name of the room's own");
		return room->hostname ? -1 : 0;
	}
	return sethostname(name, strlen(name)) < 0 ? say_errno("host name") : 0;
}

/* A directory that the agent has open leads to all that is above it, whatever is mounted. */
static int check_descriptors(void)
{
	struct stat st;
	for (int fd = 0; fd <= 2; fd++)
		if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
			say("descriptor %d is a directory of this machine", fd);
			return -1;
		}
	return 0;
}

/* What lies over the home may have no such directory. */
static int say_no_home(const struct room *room)
{
	const char *home = room_home(room);
	const int error = errno;
	for (size_t i = room->n_fittings; i-- > 0;) {
		const struct fitting *f = &room->fittings[i];
		if (!path_is_at_or_below(home, f->path) || f->kind == FITTING_COPY)
			continue;
		say("%s: %s lies over the home of the agent, and has no %s in it", room_fitting_name(f->kind), f->path,
		    home);
		return EXIT_USAGE;
	}
	errno = error;
	say_errno(home);
	return EXIT_UNLOCKED;
}

/* A home is always there, unless it is covered; a directory that was asked for may not be. */
static int go_to_work(const struct room *room, bool is_shared)
{
	const char *otherwise = is_shared ? "/" : room_home(room);
	if (chdir(room->workdir ? room->workdir : otherwise) == 0)
		return 0;
	if (!room->workdir || (!is_shared && strcmp(room->workdir, otherwise) == 0))
		return say_no_home(room);
	say("--workdir %s, in the room: %s", room->workdir, strerror(errno));
	return EXIT_USAGE;
}

int room_enter(const struct room *room, struct room_supplies *supplies, unsigned namespaces)
{
	const bool is_shared = !(namespaces & CLONE_NEWNS) || !(namespaces & CLONE_NEWPID);
	if (check_descriptors() < 0 || name_host(room, namespaces) < 0 || (is_shared && container_enter(room) < 0))
		return EXIT_UNLOCKED;
	int code = is_shared ? 0 : mounts_make(room, supplies);
	return code != 0 ? code : go_to_work(room, is_shared);
}

int room_fill(struct room_supplies *supplies)
{
	return copies_fill(&supplies->copies) < 0 ? say_errno("--copy") : 0;
}

int room_settle(const struct room *room, const struct room_supplies *supplies)
{
	return room_limits_apply(&room->limits, &supplies->cgroup);
}

void room_clear(struct room_supplies *supplies, int launcher)
{
	struct handoff_usage usage;
	measure(&supplies->cgroup, &usage);
	if (launcher >= 0)
		handoff_send_usage(launcher, &usage);
	cgroup_tell(&supplies->cgroup);
	cgroup_remove(&supplies->cgroup);
	path_sockets_free(&supplies->sockets);
}
