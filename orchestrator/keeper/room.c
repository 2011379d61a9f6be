/* Starting cage run, and its messages. */
#include "orchestrator/keeper/room.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/gate/sweep.h"
#include "orchestrator/keeper/keeper.h"
#include "orchestrator/launch.h"
#include "orchestrator/tree_whole.h"

#define INSIDE "/run/cage/inside" /* where cage-inside is in the room */
#define WORKSPACE "/workspace"
#define RUNDIR_BEGINS "/tmp/cage-run."
#define PACKET 512
#define VARIABLE "CAGE_ENV_" /* and a number: a value of the room's, in our environment */

/* ---- the start ---- */

/* The program that makes the room, and what it is told of itself. */
static const char *add_program(const struct spec *s, struct words *argv)
{
	const char *name = s->pod.n > 0 ? "cage-pod" : s->aci.n > 0 ? "cage-aci" : "cage";
	const struct words *own = s->pod.n > 0 ? &s->pod : &s->aci;
	words_add(argv, "%s", name);
	for (size_t i = 0; i < own->n; i++)
		words_add(argv, "%s", own->list[i]);
	return name;
}

/* What the service has decided comes first; what follows is not for it to change. */
static bool add_arguments(const struct keeper *k, struct words *argv)
{
	char inside[LIMIT_KEEPER_PATH + 32];
	const struct words *run = &k->spec.run, *env = &k->spec.env;
	if (!launch_path("cage-inside", inside, sizeof(inside)))
		return false;
	words_add(argv, "run");
	for (size_t i = 0; i < run->n; i++)
		words_add(argv, "%s", run->list[i]);
	for (size_t i = 0; i < env->n; i++) {
		words_add(argv, "--env-from");
		words_add(argv, "%.*s=" VARIABLE "%zu", (int)strcspn(env->list[i], "="), env->list[i], i);
	}
	words_add(argv, "--quiet");
	words_add(argv, "--control");
	words_add(argv, "fd:%d", LAUNCH_FIRST_FD);
	words_add(argv, "--socks");
	words_add(argv, "unix:%s/proxy", k->path);
	words_add(argv, "--tools");
	words_add(argv, "unix:%s/tools", k->path);
	words_add(argv, "--workdir");
	words_add(argv, WORKSPACE);
	words_add(argv, "--bind-ro");
	words_add(argv, "%s:" INSIDE, inside);
	words_add(argv, "--");
	words_add(argv, INSIDE);
	return !argv->failed;
}

/* Everybody may read the arguments of cage run, so that values are in its environment; and by other names, since theirs may be
 * such as cage run itself would obey. The values of secrets are in ours. */
static bool add_variables(const struct words *of_room, struct words *env)
{
	for (char **at = environ; *at; at++)
		words_add(env, "%s", *at);
	for (size_t i = 0; i < of_room->n; i++)
		words_add(env, VARIABLE "%zu=%s", i, strchr(of_room->list[i], '=') + 1);
	return !env->failed;
}

static void enter_streams(const void *fds)
{
	const int *three = fds;
	for (int i = 0; i < 3; i++)
		if (dup2(three[i], i) < 0)
			_exit(1);
}

static bool start(struct keeper *k, const int theirs[3], int control)
{
	struct words argv = {0}, env = {0};
	const char *name = add_program(&k->spec, &argv);
	bool ok = add_arguments(k, &argv) && add_variables(&k->spec.env, &env);
	struct launch l = {.name = name,
			   .argv = argv.list,
			   .envp = env.list,
			   .fds = &control,
			   .n_fds = 1,
			   .in_child = enter_streams,
			   .arg = theirs};
	pid_t pid = ok ? launch(&l) : -1;
	words_free(&argv);
	words_wipe(&env);
	k->room.pid = pid > 0 ? pid : 0;
	return pid > 0;
}

static bool set_nonblocking(int fd)
{
	return fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

/* Frames in both directions. A container may be given no more than its stdin to speak by, so that it is a socket there. */
static bool open_link(const struct keeper *k, int in[2], int out[2])
{
	int both[2];
	if (k->spec.pod.n == 0)
		return pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0)
		return false;
	in[1] = both[0];
	in[0] = both[1];
	out[0] = fcntl(both[0], F_DUPFD_CLOEXEC, 3);
	out[1] = fcntl(both[1], F_DUPFD_CLOEXEC, 3);
	return out[0] >= 0 && out[1] >= 0;
}

bool room_start(struct keeper *k)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, control[2] = {-1, -1};
	int said = open("said", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool ok = said >= 0 && open_link(k, in, out) &&
		  socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0 && set_nonblocking(in[1]) &&
		  set_nonblocking(out[0]) && set_nonblocking(control[0]);
	if (!ok)
		say("the room could not be begun: %s", strerror(errno));
	const int theirs[3] = {in[0], out[1], said};
	ok = ok && start(k, theirs, control[1]);
	fd_close(&said);
	fd_close(&in[0]);
	fd_close(&out[1]);
	fd_close(&control[1]);
	wire_open(&k->wire, in[1], out[0]);
	k->room.control = control[0];
	return ok;
}

/* ---- messages ---- */

static bool tell(struct room *r, const char *word)
{
	return r->control >= 0 && send(r->control, word, strlen(word), MSG_NOSIGNAL) >= 0;
}

/* Only what can be one of cage run's is ever removed. */
static void take_rundir(struct room *r, struct slice path)
{
	int fd = open("rundir", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && write(fd, path.ptr, path.len) != (ssize_t)path.len)
		say("rundir: %s", strerror(errno));
	fd_close(&fd);
	struct slice rest = slice_from(path, strlen(RUNDIR_BEGINS));
	if (!slice_starts(path, SLICE(RUNDIR_BEGINS)) || path.len >= sizeof(r->rundir) ||
	    slice_find(rest, '/') < rest.len || slice_find(rest, '\0') < rest.len)
		return;
	memcpy(r->rundir, path.ptr, path.len);
	r->rundir[path.len] = '\0';
}

/* "cpu_us=1 memory_peak=2 oom=0", and what is paid for. What a keeper knows itself is not for others to say. */
static void take_usage(struct result *r, struct slice words)
{
	static const struct slice known[] = {WORD("cpu_us"),         WORD("memory_peak"), WORD("oom"),
					     WORD("memory_average"), WORD("received"),    WORD("sent"),
					     WORD("metered_s"),      WORD("billed_s"),    WORD("vcpu_us"),
					     WORD("gb_us"),          WORD("marks")};
	while (words.len > 0) {
		struct slice value = slice_cut(&words, ' '), name = slice_cut(&value, '=');
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (slice_eq(name, known[i]))
				result_take_number(r, name, value);
	}
}

static void take_reloaded(struct keeper *k, struct slice answer)
{
	struct room *r = &k->room;
	if (r->n_reloads == 0)
		return;
	uint16_t of = r->reloads[0];
	memmove(r->reloads, r->reloads + 1, --r->n_reloads * sizeof(r->reloads[0]));
	client_answer(k, of, answer);
	if (r->n_reloads > 0)
		tell(r, "reload");
}

static void take_packet(struct keeper *k, struct slice packet)
{
	struct slice word = slice_cut(&packet, ' ');
	if (slice_eq(word, SLICE("dir")))
		take_rundir(&k->room, packet);
	else if (slice_eq(word, SLICE("usage")))
		take_usage(&k->result, packet);
	else if (slice_eq(word, SLICE("began")))
		keeper_has_begun(k);
	else if (slice_eq(word, SLICE("reloaded")))
		take_reloaded(k, SLICE("exit 0"));
	else if (slice_eq(word, SLICE("refused")))
		take_reloaded(k, SLICE("exit 1"));
}

static void take_packets(struct keeper *k, void *arg, int fd, short events)
{
	struct room *r = arg;
	char packet[PACKET];
	ssize_t n = 0;
	(void)events;
	for (int i = 0; i < LIMIT_KEEPER_READS && r->control == fd; i++) {
		n = recv(fd, packet, sizeof(packet), 0);
		if (n < 0 && errno == ECONNRESET)
			continue; /* it has ended without hearing what it was told: what it has said is still there */
		if (n <= 0)
			break;
		take_packet(k, slice_of(packet, (size_t)n));
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		fd_close(&r->control);
}

void room_watch(struct keeper *k)
{
	polls_add(&k->polls, k->room.control, POLLIN, take_packets, &k->room);
}

/* One after the other, so that it is known which one an answer is to. */
void room_reload(struct keeper *k, uint16_t of)
{
	struct room *r = &k->room;
	if (r->n_reloads == LIMIT_KEEPER_RELOADS)
		client_refuse(k, of, EBUSY);
	else if (r->n_reloads == 0 && !tell(r, "reload"))
		client_refuse(k, of, EPIPE);
	else
		r->reloads[r->n_reloads++] = of;
}

void room_forget(struct room *r)
{
	memset(r->reloads, 0, sizeof(r->reloads));
}

/* ---- the end ---- */

void room_end(struct room *r)
{
	if (r->pid > 0 && !tell(r, "end"))
		kill(r->pid, SIGTERM);
}

void room_kill(struct room *r)
{
	if (r->pid > 0)
		kill(r->pid, SIGKILL);
}

/* Until a child may have ended, or so long. */
static void await_signal(int signals, int ms)
{
	struct signalfd_siginfo info;
	struct pollfd p = {.fd = signals, .events = POLLIN};
	poll(&p, 1, ms);
	while (read(signals, &info, sizeof(info)) > 0)
		;
}

/* A cage run that was killed has left us its children: the gate, which ends the room and removes its cgroup, and the helpers,
 * which end their logs. All of them do so by themselves. */
static void await_orphans(int signals)
{
	const uint64_t until_us = clock_mono_us() + LIMIT_GATE_END_MS * 1000ull;
	for (uint64_t now = clock_mono_us(); now < until_us; now = clock_mono_us()) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0)
			return; /* there are none left */
		if (pid > 0)
			continue;
		await_signal(signals, (int)((until_us - now) / 1000) + 1);
	}
}

/* Within a bound of its own, whoever else is still there. */
static void await_removal(pid_t pid, int signals)
{
	const uint64_t until_us = clock_mono_us() + LIMIT_POD_REMOVE_MS * 1000ull;
	for (uint64_t now = clock_mono_us(); waitpid(pid, NULL, WNOHANG) == 0; now = clock_mono_us()) {
		if (now >= until_us) {
			say("what the sandbox has made could not be removed in time");
			return;
		}
		await_signal(signals, LIMIT_KEEPER_SAMPLE_MS);
	}
}

/* Containers do not end with a cage-pod or cage-aci that was killed. */
static void remove_containers(const struct keeper *k)
{
	struct words argv = {0};
	if (k->spec.pod.n + k->spec.aci.n == 0 || (WIFEXITED(k->room.status) && WEXITSTATUS(k->room.status) == 0))
		return;
	const char *name = add_program(&k->spec, &argv);
	words_add(&argv, "remove");
	words_add(&argv, "%s", k->spec.id);
	struct launch l = {.name = name, .argv = argv.list, .envp = environ, .death_signal = SIGKILL};
	pid_t pid = argv.failed ? -1 : launch(&l);
	if (pid > 0)
		await_removal(pid, k->signals);
	words_free(&argv);
}

static void clean_up(struct keeper *k)
{
	remove_containers(k);
	await_orphans(k->signals);
	if (!sweep_end(NULL, 0))
		say("processes of the sandbox are left, and can't be ended");
	if (k->room.rundir[0] && access(k->room.rundir, F_OK) == 0)
		tree_remove(k->room.rundir);
	unlink("rundir");
	unlink("tools");
	unlink("proxy");
}

void room_ended(struct keeper *k, int status)
{
	k->room.pid = 0;
	k->room.status = status;
	take_packets(k, &k->room, k->room.control, POLLIN);
	wire_drain(k);
	fetch_kill_all(k);
	clean_up(k);
	keeper_room_ended(k);
}
