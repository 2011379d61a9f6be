/* Nothing is concluded from versions: each mode is rehearsed in full, with no command behind it. */
#include "orchestrator/gate/probe.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/gate/handoff.h"
#include "orchestrator/gate/landlock.h"
#include "orchestrator/gate/listening.h"
#include "orchestrator/gate/lock.h"
#include "orchestrator/gate/netns.h"
#include "orchestrator/gate/overlay.h"
#include "orchestrator/gate/say.h"
#include "orchestrator/gate/tree.h"

struct findings {
	struct utsname kernel;
	bool namespaces[4];  /* in the order of namespace_rows */
	bool netns, seccomp; /* the modes, rehearsed */
	int landlock;        /* its version, 0 for none */
	struct listening listening;
};

static const struct {
	const char *name;
	unsigned flags;
} namespace_rows[4] = {
	{"user", CLONE_NEWUSER},
	{"net", CLONE_NEWUSER | CLONE_NEWNET},
	{"mount", CLONE_NEWUSER | CLONE_NEWNS},
	{"pid", CLONE_NEWUSER | CLONE_NEWPID},
};

static bool ended_well(pid_t child)
{
	int status = 0;
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static pid_t fork_into(unsigned namespaces)
{
	return (pid_t)syscall(SYS_clone, namespaces | (unsigned)SIGCHLD, NULL, NULL, NULL, NULL);
}

static bool can_clone(unsigned flags)
{
	pid_t child = fork_into(flags);
	if (child == 0)
		_exit(0);
	return ended_well(child);
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

enum gate_mode probe_best(void)
{
	if (rehearse(lock_netns, SILENT))
		return MODE_NETNS;
	return rehearse(lock_seccomp, SILENT) ? MODE_SECCOMP : MODE_AUTO;
}

int probe_say_none(void)
{
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
		int lower = supplies->trees[i] >= 0 ? supplies->trees[i] : tree_clone(f->source);
		return overlay_make(lower, f->state) < 0 ? FILES_MOUNTS : FILES_OVERLAY;
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

int probe_choose(const struct options *options)
{
	static const char *const names[] = {"overlay", "mounts", "shared"};
	enum gate_mode mode = options->mode == MODE_AUTO ? probe_best() : options->mode;
	if (mode == MODE_AUTO)
		return probe_say_none();
	enum files files = mode == MODE_NETNS ? files_of(options) : FILES_SHARED;
	printf("%s %s\n", mode_name(mode), names[files]);
	return fflush(stdout) == 0 ? 0 : 1;
}

/* ---- all of it ---- */

static enum gate_mode best_of(const struct findings *f)
{
	if (f->netns)
		return MODE_NETNS;
	return f->seccomp ? MODE_SECCOMP : MODE_AUTO;
}

static const char *best_name(const struct findings *f)
{
	return best_of(f) == MODE_AUTO ? "none" : mode_name(best_of(f));
}

static const char *json_bool(bool value)
{
	return value ? "true" : "false";
}

/* Nothing in it comes from outside but the kernel's own version text, which uname gives without quotes. */
static void print_json(const struct findings *f)
{
	printf("{\"version\":\"" CAGE_VERSION "\",\"mode\":\"%s\",\"netns\":%s,\"seccomp\":%s,\"kernel\":\"%s\"",
	       best_name(f), json_bool(f->netns), json_bool(f->seccomp), f->kernel.release);
	printf(",\"machine\":\"%s\",\"uid\":%u,\"landlock\":%d,\"namespaces\":{", f->kernel.machine, geteuid(),
	       f->landlock);
	for (size_t i = 0; i < 4; i++)
		printf("%s\"%s\":%s", i ? "," : "", namespace_rows[i].name, json_bool(f->namespaces[i]));
	printf("},\"listening\":[");
	for (size_t i = 0; i < f->listening.n; i++)
		printf("%s%u", i ? "," : "", f->listening.all[i].port);
	printf("]}\n");
}

static const char *yes_no(bool value)
{
	return value ? "yes" : "no";
}

static void print_text(const struct findings *f)
{
	printf("kernel              %s %s\n", f->kernel.release, f->kernel.machine);
	printf("uid                 %u\n", geteuid());
	for (size_t i = 0; i < 4; i++)
		printf("namespace %-9s %s\n", namespace_rows[i].name, yes_no(f->namespaces[i]));
	printf("landlock            %d\n", f->landlock);
	printf("mode netns          %s\n", yes_no(f->netns));
	printf("mode seccomp        %s\n", yes_no(f->seccomp));
	printf("listening here     ");
	for (size_t i = 0; i < f->listening.n; i++)
		printf(" %u", f->listening.all[i].port);
	printf("%s\nan agent is locked in with mode %s\n", f->listening.n ? "" : " nobody", best_name(f));
}

int probe_print(bool json)
{
	struct findings f = {.netns = rehearse(lock_netns, SILENT),
			     .seccomp = rehearse(lock_seccomp, SILENT),
			     .landlock = landlock_abi()};
	uname(&f.kernel);
	for (size_t i = 0; i < 4; i++)
		f.namespaces[i] = can_clone(namespace_rows[i].flags);
	if (listening_read(&f.listening) < 0)
		return EXIT_UNLOCKED;
	(json ? print_json : print_text)(&f);
	if (fflush(stdout) != 0)
		return 1;
	return best_of(&f) == MODE_AUTO ? EXIT_UNLOCKED : 0;
}
