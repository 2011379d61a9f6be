/* podman commands: started with words and never by a shell, bounded in time and in what they say. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/pod/pod.h"

static void add_option(struct words *argv, const char *option, const char *value)
{
	if (!value)
		return;
	words_add(argv, "%s", option);
	words_add(argv, "%s", value);
}

void call_words(const struct pod_options *o, struct words *argv)
{
	call_words_with(o, o->runtime, argv);
}

void call_words_with(const struct pod_options *o, const char *runtime, struct words *argv)
{
	words_add(argv, "podman");
	add_option(argv, "--runtime", runtime);
	add_option(argv, "--cgroup-manager", o->cgroup_manager);
	add_option(argv, "--storage-driver", o->storage_driver);
	add_option(argv, "--root", o->root);
	add_option(argv, "--runroot", o->runroot);
	add_option(argv, "--tmpdir", o->tmpdir);
	add_option(argv, "--network-config-dir", o->network_config);
	add_option(argv, "--events-backend", "none"); /* else each one is waited for */
}

/* Nothing of ours that it does not need: values of secrets are in our environment, and conmon would keep them. */
static void add_env(struct words *env)
{
	static const char *const names[] = {"PATH", "HOME", "LANG", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]))
			words_add(env, "%s=%s", names[i], getenv(names[i]));
}

/* Stdin, stdout and stderr; -1: nothing as stdin, ours as stdout. */
static void use_streams(const void *arg)
{
	const int *three = arg;
	int in = three[0] >= 0 ? three[0] : open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (in < 0 || dup2(in, 0) < 0 || (three[1] >= 0 && dup2(three[1], 1) < 0) || dup2(three[2], 2) < 0)
		_exit(1);
}

static bool open_pipe(int *ours, int *theirs)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	*ours = ends[0];
	*theirs = ends[1];
	return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

static bool run(struct call *c, const struct pod_options *o, struct words *argv, const int *fds, size_t n_fds,
		const int streams[3], int death_signal)
{
	struct words env = {0};
	add_env(&env);
	struct launch l = {.name = o->podman,
			   .argv = argv->list,
			   .envp = env.list,
			   .fds = fds,
			   .n_fds = n_fds,
			   .in_child = use_streams,
			   .arg = streams,
			   .death_signal = death_signal};
	c->pid = !argv->failed && !env.failed ? launch(&l) : -1;
	words_free(&env);
	words_free(argv);
	if (c->pid <= 0)
		return false;
	c->state = CALL_RUNS;
	c->until_us = clock_mono_us() + LIMIT_POD_COMMAND_MS * 1000ull;
	return true;
}

enum prints { PRINTS_TO_US, PRINTS_OUT };

/* What makes or removes something goes on when we die: if it was killed between a container's first process and the note of it, nobody
 * would know of that process, nor of its network. Who removes what is left waits for it (monitors.c). */
static bool begin(struct call *c, const struct pod_options *o, struct words *argv, const int *fds, size_t n_fds,
		  enum prints prints)
{
	int streams[3] = {-1, -1, -1};
	*c = (struct call){.out = -1, .err = -1, .state = CALL_FAILED};
	bool ok = (prints == PRINTS_OUT || open_pipe(&c->out, &streams[1])) && open_pipe(&c->err, &streams[2]) &&
		  run(c, o, argv, fds, n_fds, streams, prints == PRINTS_OUT ? SIGKILL : 0);
	for (int i = 1; i < 3; i++)
		if (streams[i] >= 0)
			close(streams[i]);
	words_free(argv);
	return ok;
}

bool call_begin(struct call *c, const struct pod_options *o, struct words *argv, const int *fds, size_t n_fds)
{
	return begin(c, o, argv, fds, n_fds, PRINTS_TO_US);
}

bool call_begin_list(struct call *c, const struct pod_options *o, struct words *argv)
{
	return begin(c, o, argv, NULL, 0, PRINTS_OUT);
}

bool call_begin_with(struct call *c, const struct pod_options *o, struct words *argv, const int streams[3])
{
	*c = (struct call){.out = -1, .err = -1, .state = CALL_FAILED};
	return run(c, o, argv, NULL, 0, streams, 0);
}

/* What does not fit is read all the same, so that nobody waits for us. */
static void listen_at(int *fd, char *to, size_t *n)
{
	char rest[512];
	ssize_t got = 1;
	while (*fd >= 0 && got > 0) {
		bool fits = *n < LIMIT_POD_SAID - 1;
		got = fits ? read(*fd, to + *n, LIMIT_POD_SAID - 1 - *n) : read(*fd, rest, sizeof(rest));
		if (got > 0 && fits)
			*n += (size_t)got;
	}
	to[*n] = '\0';
	if (*fd < 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	close(*fd);
	*fd = -1;
}

void call_listen(struct call *c)
{
	listen_at(&c->out, c->printed, &c->n_printed);
	listen_at(&c->err, c->said, &c->n_said);
}

/* conmon has copies of its pipes for a while: what was said until now is all. */
void call_ended(struct call *c, int status)
{
	call_listen(c);
	for (int *fd = &c->out; fd; fd = fd == &c->out ? &c->err : NULL) {
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
	}
	c->state = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? CALL_GOOD
		   : c->until_us == UINT64_MAX                   ? CALL_LATE
								 : CALL_FAILED;
}

void call_look(struct call *c)
{
	if (c->state != CALL_RUNS || clock_mono_us() < c->until_us)
		return;
	say("podman did not end in %d s, and is killed", LIMIT_POD_COMMAND_MS / 1000);
	kill(c->pid, SIGKILL);
	c->until_us = UINT64_MAX;
}

void call_stop(struct call *c)
{
	if (c->state == CALL_RUNS)
		kill(c->pid, SIGKILL);
	call_await(c);
}

void call_await(struct call *c)
{
	int status = 0;
	while (c->state == CALL_RUNS) {
		struct pollfd p[2] = {{.fd = c->out, .events = POLLIN}, {.fd = c->err, .events = POLLIN}};
		poll(p, 2, 10);
		call_listen(c);
		call_look(c);
		if (waitpid(c->pid, &status, WNOHANG) == c->pid)
			call_ended(c, status);
	}
}

/* Its last line is the reason. */
void call_tell(const struct call *c, const char *what)
{
	size_t n = c->n_said;
	while (n > 0 && c->said[n - 1] == '\n')
		n--;
	size_t from = n;
	while (from > 0 && c->said[from - 1] != '\n')
		from--;
	say("podman %s: %.*s", what, n > from ? (int)(n - from) : 6, n > from ? c->said + from : "failed");
}

void call_wait_for(pid_t pid)
{
	const struct timespec moment = {.tv_nsec = 10000000};
	const uint64_t until_us = clock_mono_us() + LIMIT_POD_COMMAND_MS * 1000ull;
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (clock_mono_us() >= until_us)
			kill(pid, SIGKILL);
		nanosleep(&moment, NULL);
	}
}
