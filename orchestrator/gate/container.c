/* Landlock keeps the agent from opening most of it. Where that is not enough, the agent is not run beside what it must
 * not see. */
#include "orchestrator/gate/container.h"

#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/gate/files.h"
#include "orchestrator/gate/path_sockets.h"
#include "orchestrator/gate/say.h"

static const char *const in_home[] = {".ssh",           ".aws",   ".azure",
				      ".config/gcloud", ".kube",  ".docker/config.json",
				      ".gnupg",         ".netrc", ".git-credentials"};

static int refuse_visible(const char *path)
{
	say("%s can be seen by the agent, and can't be hidden on this host", path);
	return -1;
}

/* By opening it, which is what Landlock holds; a socket can't be opened, and is not held. */
static int check_unseen(const struct room *room, const char *path)
{
	if (room_bound(room, path) == BOUND_ITSELF)
		return 0;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 ? refuse_visible(path) : 0;
}

/* Nothing is moved, so what is bound must be where it shall be. */
static int check_bind(const struct room *room, const struct fitting *f, bool restricted)
{
	const bool writable = faccessat(AT_FDCWD, f->path, W_OK, AT_EACCESS) == 0;
	if (strcmp(f->source, f->path) != 0) {
		say("%s: nothing can be mounted on this host", f->path);
		return -1;
	}
	if (faccessat(AT_FDCWD, f->path, F_OK, AT_EACCESS) < 0)
		return say_errno(f->path);
	if (f->kind == FITTING_BIND || (restricted && !(writable && files_are_writable(room, f->path))))
		return 0;
	say("%s: the agent can't be kept from changing it on this host", f->path);
	return -1;
}

static int check_fitting(const struct room *room, const struct fitting *f, bool restricted)
{
	switch (f->kind) {
	case FITTING_BIND:
	case FITTING_BIND_RO:
		return check_bind(room, f, restricted);
	case FITTING_HIDE:
		return check_unseen(room, f->path);
	case FITTING_REPLACE:
	case FITTING_COPY:
		return 0;
	case FITTING_OVERLAY:
	case FITTING_TMPFS:
		break;
	}
	say("%s: nothing can be mounted on this host", f->path);
	return -1;
}

static int check_home(const struct room *room, const char *home)
{
	char path[PATH_MAX];
	for (size_t i = 0; i < sizeof(in_home) / sizeof(in_home[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", home, in_home[i]);
		if (check_unseen(room, path) < 0)
			return -1;
	}
	return 0;
}

/* Those of the users that the agent and who runs the gate are; by now we may be another one to ourselves. The file is read
 * without the C library's name services, which a static program can't have. */
static int check_homes_of_users(const struct room *room)
{
	const uid_t agent = room->runner == 0 ? room->uid : room->runner;
	int result = 0;
	FILE *f = fopen("/etc/passwd", "re");
	for (struct passwd *p = f ? fgetpwent(f) : NULL; p && result == 0; p = fgetpwent(f))
		if (p->pw_uid == agent || p->pw_uid == room->runner)
			result = check_home(room, p->pw_dir);
	if (f)
		fclose(f);
	return result;
}

/* HOME is that of who runs the gate only without a launcher, which has set it for the room. */
static int check_homes(const struct room *room)
{
	const char *set = getenv("HOME");
	if (check_home(room, "/root") < 0 || check_homes_of_users(room) < 0 || (set && check_home(room, set) < 0))
		return -1;
	return check_home(room, room_home(room));
}

int container_enter(const struct room *room)
{
	bool restricted = false;
	if (room->root) {
		say("--root: nothing can be mounted on this host");
		return -1;
	}
	if (files_restrict(room, &restricted) < 0)
		return -1;
	for (size_t i = 0; i < room->n_fittings; i++)
		if (check_fitting(room, &room->fittings[i], restricted) < 0)
			return -1;
	return path_sockets_check(room) < 0 ? -1 : check_homes(room);
}
