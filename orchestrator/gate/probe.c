/* Nothing is concluded from versions: each mode is rehearsed in full, with no command behind it. */
#include "orchestrator/gate/probe.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/gate/handoff.h"
#include "orchestrator/gate/lock.h"
#include "orchestrator/gate/nested.h"
#include "orchestrator/gate/netns.h"
#include "orchestrator/gate/overlay.h"
#include "orchestrator/gate/plain.h"
#include "orchestrator/gate/say.h"

static bool ended_well(pid_t child)
{
	int status = 0;
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static pid_t fork_into(unsigned namespaces)
{
	return (pid_t)syscall(SYS_clone, namespaces | (unsigned)SIGCHLD, NULL, NULL, NULL, NULL);
}

/* What goes wrong here is an answer and no complaint. */
static void be_silent(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDERR_FILENO) < 0)
		_exit(EXIT_UNLOCKED);
}

enum noise { SILENT, LOUD };

static bool rehearse(int (*lock)(const struct options *), enum noise noise)
{
	pid_t child = fork();
	if (child == 0) {
		static struct options nothing = {.handoff = -1, .ready = -1};
		room_init(&nothing.room);
		if (noise == SILENT)
			be_silent();
		_exit(lock(&nothing));
	}
	return ended_well(child);
}

bool probe_holds(enum gate_mode mode)
{
	switch (mode) {
	case MODE_NETNS:
		return rehearse(lock_netns, SILENT);
	case MODE_SECCOMP:
		return rehearse(lock_seccomp, SILENT);
	case MODE_AUTO:
		break;
	}
	return false;
}

enum gate_mode probe_best(void)
{
	if (probe_holds(MODE_NETNS))
		return MODE_NETNS;
	return probe_holds(MODE_SECCOMP) ? MODE_SECCOMP : MODE_AUTO;
}

int probe_say_none(void)
{
	if (nested_refuse() < 0)
		return EXIT_UNLOCKED;
	say("neither mode holds here, so the agent can't be locked in; netns, then seccomp:");
	rehearse(lock_netns, LOUD);
	rehearse(lock_seccomp, LOUD);
	return EXIT_UNLOCKED;
}

/* ---- what a room's files would be ---- */

enum files { FILES_OVERLAY, FILES_MOUNTS, FILES_SHARED };

static enum files try_files(const struct room *room, const struct room_supplies *supplies)
{
	if (netns_join() < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return FILES_SHARED;
	for (size_t i = 0; i < room->n_fittings; i++) {
		const struct fitting *f = &room->fittings[i];
		if (f->kind != FITTING_OVERLAY)
			continue;
		return overlay_make(f, supplies->trees[i], supplies->states[i]) < 0 ? FILES_MOUNTS : FILES_OVERLAY;
	}
	return FILES_MOUNTS;
}

/* The child waits until its users are mapped, and its exit code is what it found. A network of its own would take most of
 * the time, and has nothing to do with files. */
static enum files rehearse_files(const struct room *room, const struct room_supplies *supplies)
{
	int control[2], status = 0;
	const char go = HANDOFF_GO;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		return FILES_SHARED;
	pid_t child = fork_into(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS);
	if (child == 0) {
		close(control[0]);
		_exit(handoff_await_go(control[1]) < 0 ? FILES_SHARED : (int)try_files(room, supplies));
	}
	close(control[1]);
	if (child > 0 && netns_map(child, room->uid) == 0)
		send(control[0], &go, 1, MSG_NOSIGNAL);
	close(control[0]);
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return FILES_SHARED;
	return WEXITSTATUS(status) <= FILES_SHARED ? (enum files)WEXITSTATUS(status) : FILES_SHARED;
}

/* A directory that can't be prepared for an overlay gets none; whatever else is wrong with it is said by who uses it. */
static enum files files_of(const struct options *options)
{
	static struct room_supplies supplies;
	static struct room bare;
	be_silent();
	if (room_prepare(&options->room, &supplies) == 0)
		return rehearse_files(&options->room, &supplies);
	room_init(&bare);
	bare.uid = options->room.uid;
	return rehearse_files(&bare, &supplies);
}

/* What can't be had by its name can't be had in any room. */
static int check_name(const char *path)
{
	int fd = plain_open(path);
	if (fd < 0)
		return plain_say(path);
	close(fd);
	return 0;
}

static int check_overlays(const struct room *room)
{
	for (size_t i = 0; i < room->n_fittings; i++) {
		const struct fitting *f = &room->fittings[i];
		if (f->kind == FITTING_OVERLAY && (check_name(f->source) < 0 || check_name(f->state) < 0))
			return -1;
	}
	return 0;
}

int probe_choose(const struct options *options)
{
	static const char *const names[] = {"overlay", "mounts", "shared"};
	enum gate_mode mode = options->mode == MODE_AUTO ? probe_best() : options->mode;
	if (mode == MODE_AUTO)
		return probe_say_none();
	if (check_overlays(&options->room) < 0)
		return EXIT_UNLOCKED;
	enum files files = mode == MODE_NETNS ? files_of(options) : FILES_SHARED;
	printf("%s %s\n", mode_name(mode), names[files]);
	return fflush(stdout) == 0 ? 0 : 1;
}
