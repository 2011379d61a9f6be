/* fork, exec, and what the programs say meanwhile. */
#include "orchestrator/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/slice.h"

#define PATH_ROOM 4096
#define HIGH_FD 64 /* above all numbers that are given out */

bool launch_path(const char *name, char *out, size_t room)
{
	ssize_t n = readlink("/proc/self/exe", out, room - 1);
	if (n <= 0 || (size_t)n >= room - 1)
		return false;
	out[n] = '\0';
	char *slash = strrchr(out, '/');
	size_t left = room - (size_t)(slash + 1 - out);
	return snprintf(slash + 1, left, "%s", name) < (int)left;
}

/* ---- in the child ---- */

/* First all of them out of the way, since a number that is wanted may be that of another. */
static bool place_fds(const int *fds, size_t n)
{
	int high[LIMIT_LAUNCH_FDS];
	for (size_t i = 0; i < n; i++) {
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
		if (high[i] < 0)
			return false;
	}
	for (size_t i = 0; i < n; i++)
		if (dup2(high[i], LAUNCH_FIRST_FD + (int)i) < 0)
			return false;
	return close_range(LAUNCH_FIRST_FD + (unsigned)n, ~0u, 0) == 0;
}

/* Handlers of ours would take what is meant for the program: they are gone before anything can come. */
static void drop_handlers(void)
{
	struct sigaction act;
	for (int number = 1; number < NSIG; number++)
		if (sigaction(number, NULL, &act) == 0 && act.sa_handler != SIG_IGN)
			signal(number, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
}

static _Noreturn void become(const struct launch *l, const char *path, pid_t parent)
{
	sigset_t none;
	sigemptyset(&none);
	prctl(PR_SET_PDEATHSIG, l->death_signal);
	if (getppid() != parent)
		_exit(1);
	setsid();
	if (l->in_child)
		l->in_child(l->arg);
	drop_handlers();
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (place_fds(l->fds, l->n_fds))
		execve(path, l->argv, l->envp);
	say("%s: %s", path, strerror(errno));
	_exit(1);
}

/* ---- here ---- */

static bool find(const char *name, char *out, size_t room)
{
	return name[0] == '/' ? snprintf(out, room, "%s", name) < (int)room : launch_path(name, out, room);
}

pid_t launch(const struct launch *l)
{
	char path[PATH_ROOM];
	if (l->n_fds > LIMIT_LAUNCH_FDS || !find(l->name, path, sizeof(path))) {
		say("%s: can't be found beside this program", l->name);
		return -1;
	}
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0)
		become(l, path, parent);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		say("fork: %s", strerror(errno));
	return pid;
}

static void use_pipe(const void *arg)
{
	const int *said = arg;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(*said, 2) < 0)
		_exit(1);
}

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

bool helper_start(struct helper *h, const struct launch *l, int reloads)
{
	int ends[2];
	*h = (struct helper){.name = l->name, .said = -1, .reloads = reloads};
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
		say("pipe: %s", strerror(errno));
		shut(&h->reloads);
		return false;
	}
	fcntl(ends[1], F_SETFL, 0); /* it would not expect anything else */
	struct launch with_pipe = *l;
	with_pipe.in_child = use_pipe;
	with_pipe.arg = &ends[1];
	with_pipe.death_signal = SIGTERM; /* it has a log to end */
	h->pid = launch(&with_pipe);
	h->said = ends[0];
	close(ends[1]);
	if (h->pid >= 0) {
		h->state = HELPER_STARTING;
		return true;
	}
	shut(&h->said);
	shut(&h->reloads);
	return false;
}

static bool is_ready_line(const struct helper *h, struct slice line)
{
	struct slice name = slice_str(h->name);
	return slice_starts(line, name) && slice_starts(slice_from(line, name.len), SLICE(": ready"));
}

/* Where it listens is nothing new to us. */
static bool is_of_interest(struct slice line)
{
	static const struct slice known[] = {WORD(": listening on "), WORD(": captured connections on "),
					     WORD(": bindings on "), WORD(": SOCKS5 on "), WORD(": tool calls on ")};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (memmem(line.ptr, line.len, known[i].ptr, known[i].len))
			return false;
	return line.len > 0;
}

static void take_line(struct helper *h, void (*heard)(void *arg, const char *line), void *arg)
{
	h->line[h->len] = '\0';
	if (h->state == HELPER_STARTING && is_ready_line(h, slice_of(h->line, h->len)))
		h->state = HELPER_READY;
	else if (is_of_interest(slice_of(h->line, h->len)))
		heard(arg, h->line);
	h->len = 0;
}

enum helper_heard helper_listen(struct helper *h, void (*heard)(void *arg, const char *line), void *arg)
{
	char buf[1024];
	ssize_t n = read(h->said, buf, sizeof(buf));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return HEARD_NOTHING;
	for (ssize_t i = 0; i < n; i++) {
		if (buf[i] == '\n' || h->len == sizeof(h->line) - 1)
			take_line(h, heard, arg);
		if (buf[i] != '\n')
			h->line[h->len++] = buf[i];
	}
	if (n > 0)
		return HEARD_SOME;
	take_line(h, heard, arg);
	shut(&h->said);
	return HEARD_END;
}

char helper_reloaded(struct helper *h)
{
	char how = 0;
	ssize_t n = h->reloads >= 0 ? read(h->reloads, &how, 1) : -1;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		shut(&h->reloads);
	return n == 1 ? how : 0;
}

void helper_ended(struct helper *h, int status)
{
	h->state = HELPER_ENDED;
	h->status = status;
}

/* Its pipe is closed when it and all its children are gone. */
static bool waits_for_end(struct helper *h, int ms)
{
	char buf[1024];
	struct pollfd p = {.fd = h->said, .events = POLLIN};
	while (h->said >= 0) {
		if (poll(&p, 1, ms) <= 0)
			return false;
		ssize_t n = read(h->said, buf, sizeof(buf));
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			break;
	}
	return true;
}

void helper_stop(struct helper *h)
{
	if (h->state == HELPER_STARTING || h->state == HELPER_READY) {
		int status = 0;
		kill(h->pid, SIGTERM);
		if (!waits_for_end(h, LIMIT_STOP_MS))
			kill(h->pid, SIGKILL);
		while (waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
			;
		helper_ended(h, status);
	}
	shut(&h->said);
	shut(&h->reloads);
}

void status_describe(int status, char *out, size_t room)
{
	if (WIFSIGNALED(status))
		snprintf(out, room, "was killed by signal %d", WTERMSIG(status));
	else
		snprintf(out, room, "ended with %d", WEXITSTATUS(status));
}
