/* fork, exec, a pipe to listen at, and a clock. */
#include "orchestrator/service/child.h"

#include <errno.h>
#include <event2/buffer.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/launch.h"
#include "orchestrator/words.h"

enum child_state {
	CHILD_WAITING,
	CHILD_UNSTARTED, /* it could not be; whoever asked for it is told from the loop, never from within child_run() */
	CHILD_RUNNING,
	CHILD_ENDED
};

struct child {
	struct child *next, *before;
	struct children *all;
	enum child_state state;
	struct child_spec spec;
	struct words argv, envp;
	char *input, *text;
	pid_t pid;
	int status, said; /* said: the pipe; -1: it has ended */
	struct event *hears, *clock;
	struct evbuffer *out;
};

struct children {
	struct event_base *base;
	struct event *reaper, *burier; /* burier: of those that could not be started */
	struct child *first;
	size_t n_waiting, n_running;
};

static void start_waiting(struct children *c);

/* ---- the end of one ---- */

static void take_out(struct children *c, struct child *k)
{
	if (c->first == k)
		c->first = k->next;
	else
		k->before->next = k->next;
	if (k->next)
		k->next->before = k->before;
}

static void child_free(struct child *k)
{
	if (k->hears)
		event_free(k->hears);
	if (k->clock)
		event_free(k->clock);
	if (k->out)
		evbuffer_free(k->out);
	if (k->said >= 0)
		close(k->said);
	words_free(&k->argv);
	words_wipe(&k->envp); /* it may have had values of secrets */
	free(k->input);
	free(k->text);
	free(k);
}

/* Both its pipe and the process have ended. */
static void finish(struct children *c, struct child *k)
{
	size_t n = evbuffer_get_length(k->out);
	take_out(c, k);
	c->n_running--;
	if (k->spec.done)
		k->spec.done(k->spec.arg, k->status, slice_of(n ? evbuffer_pullup(k->out, -1) : NULL, n));
	child_free(k);
	start_waiting(c);
}

/* As read() has it. */
static ssize_t hear_some(struct child *k)
{
	char bytes[4096];
	const ssize_t n = read(k->said, bytes, sizeof(bytes));
	const size_t room = k->spec.most_said - evbuffer_get_length(k->out);
	if (n > 0)
		evbuffer_add(k->out, bytes, (size_t)n < room ? (size_t)n : room);
	return n;
}

static void hear(evutil_socket_t fd, short what, void *arg)
{
	struct child *k = arg;
	const ssize_t n = hear_some(k);
	(void)fd, (void)what;
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	event_del(k->hears);
	close(k->said);
	k->said = -1;
	if (k->state == CHILD_ENDED)
		finish(k->all, k);
}

/* One that has ended may have left its pipe to somebody: what is in it now is all that it has said. */
static void is_late(evutil_socket_t fd, short what, void *arg)
{
	struct child *k = arg;
	(void)fd, (void)what;
	if (k->state == CHILD_RUNNING)
		kill(k->pid, SIGKILL);
	if (k->state != CHILD_ENDED)
		return;
	while (evbuffer_get_length(k->out) < k->spec.most_said && hear_some(k) > 0)
		;
	finish(k->all, k);
}

static void ended(struct children *c, struct child *k, int status)
{
	const struct timeval last = loop_ms(LIMIT_SERVE_TICK_MS);
	k->state = CHILD_ENDED;
	k->status = status;
	if (k->said < 0)
		finish(c, k);
	else
		evtimer_add(k->clock, &last);
}

static struct child *find(const struct children *c, pid_t pid)
{
	for (struct child *k = c->first; k; k = k->next)
		if (k->state == CHILD_RUNNING && k->pid == pid)
			return k;
	return NULL;
}

/* Keepers are our children too, as long as we live; nothing is to be learned from their status. */
static void reap(evutil_socket_t fd, short what, void *arg)
{
	struct children *c = arg;
	int status;
	pid_t pid;
	(void)fd, (void)what;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct child *k = find(c, pid);
		if (k)
			ended(c, k, status);
	}
}

/* ---- the beginning ---- */

static int input_of(struct slice bytes)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	if (fd >= 0 && (write(fd, bytes.ptr, bytes.len) != (ssize_t)bytes.len || lseek(fd, 0, SEEK_SET) != 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool bound_computing(unsigned seconds)
{
	const struct rlimit most = {.rlim_cur = seconds, .rlim_max = seconds + 1};
	return seconds == 0 || setrlimit(RLIMIT_CPU, &most) == 0;
}

static _Noreturn void become(const struct child *k, const char *path, int out)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	int in = k->input ? input_of(slice_of(k->input, k->spec.input.len)) : open("/dev/null", O_RDONLY | O_CLOEXEC);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (in < 0 || null < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(k->spec.hears_errors ? out : null, 2) < 0)
		_exit(CHILD_UNPREPARED);
	if (close_range(3, ~0u, 0) != 0 || !bound_computing(k->spec.most_cpu_s))
		_exit(CHILD_UNPREPARED);
	if (k->spec.function)
		_exit(k->spec.function(k->text, k->spec.with));
	char *nothing[] = {NULL};
	if (k->argv.list)
		execve(path, k->argv.list, k->envp.list ? k->envp.list : nothing);
	_exit(CHILD_UNFOUND);
}

/* Before there is a process: one that nobody hears would never be done. */
static bool watch(struct child *k)
{
	const struct timeval time = loop_ms(k->spec.most_ms ? k->spec.most_ms : LIMIT_SERVE_CHILD_MS);
	evutil_make_socket_nonblocking(k->said);
	k->hears = event_new(k->all->base, k->said, EV_READ | EV_PERSIST, hear, k);
	k->clock = evtimer_new(k->all->base, is_late, k);
	return k->hears && k->clock && event_add(k->hears, NULL) == 0 && event_add(k->clock, &time) == 0;
}

static bool start(struct child *k)
{
	char path[LIMIT_SERVE_DIR] = "";
	int ends[2];
	if (k->spec.program && !launch_path(k->spec.program, path, sizeof(path)))
		return false;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	k->said = ends[0];
	if (!watch(k)) {
		close(ends[1]);
		return false;
	}
	k->pid = fork();
	if (k->pid == 0)
		become(k, path, ends[1]);
	close(ends[1]);
	if (k->pid < 0)
		return false;
	k->state = CHILD_RUNNING;
	return true;
}

/* One that can't be started has ended as one that was not found. Its place is not free before that is told. */
static void start_waiting(struct children *c)
{
	for (struct child *k = c->first; k && c->n_running < LIMIT_SERVE_CHILDREN; k = k->next) {
		if (k->state != CHILD_WAITING)
			continue;
		c->n_waiting--;
		c->n_running++;
		if (start(k))
			continue;
		say("a helper can't be started: %s", strerror(errno));
		k->state = CHILD_UNSTARTED;
		k->status = W_EXITCODE(CHILD_UNFOUND, 0);
		event_active(c->burier, EV_TIMEOUT, 0);
	}
}

static struct child *find_unstarted(const struct children *c)
{
	for (struct child *k = c->first; k; k = k->next)
		if (k->state == CHILD_UNSTARTED)
			return k;
	return NULL;
}

/* As many as there can be at once: those that take their places, and can't be started either, have their turn later. */
static void bury(evutil_socket_t fd, short what, void *arg)
{
	struct children *c = arg;
	struct child *k;
	(void)fd, (void)what;
	for (size_t i = 0; i < LIMIT_SERVE_CHILDREN && (k = find_unstarted(c)); i++)
		finish(c, k);
}

static void append(struct children *c, struct child *k)
{
	struct child **last = &c->first;
	for (; *last; last = &(*last)->next)
		k->before = *last;
	*last = k;
}

static bool copy_words(struct words *to, char *const *from)
{
	for (size_t i = 0; from && from[i]; i++)
		words_add(to, "%s", from[i]);
	return !to->failed;
}

bool child_run(struct children *c, const struct child_spec *spec)
{
	struct child *k = calloc(1, sizeof(*k));
	if (!k || c->n_waiting >= LIMIT_SERVE_CHILDREN_WAITING) {
		free(k);
		return false;
	}
	*k = (struct child){.all = c, .spec = *spec, .said = -1, .out = evbuffer_new()};
	k->spec.most_said = spec->most_said ? spec->most_said : LIMIT_SERVE_CHILD_OUT;
	k->input = spec->input.ptr ? malloc(spec->input.len + 1) : NULL;
	k->text = spec->text ? strdup(spec->text) : NULL;
	if (!k->out || !copy_words(&k->argv, spec->argv) || !copy_words(&k->envp, spec->envp) ||
	    (spec->input.ptr && !k->input) || (spec->text && !k->text)) {
		child_free(k);
		return false;
	}
	if (k->input && spec->input.ptr)
		memcpy(k->input, spec->input.ptr, spec->input.len);
	append(c, k);
	c->n_waiting++;
	start_waiting(c);
	return true;
}

const char *child_failure(int status)
{
	if (!WIFEXITED(status))
		return "it took too long";
	const int code = WEXITSTATUS(status);
	if (code == CHILD_UNPREPARED || code == CHILD_UNFOUND)
		return "the helper could not be started";
	return code ? strerror(code) : NULL;
}

void child_forget(struct children *c, const void *arg)
{
	for (struct child *k = c->first; k; k = k->next)
		if (k->spec.arg == arg)
			k->spec.done = NULL;
}

struct children *children_new(struct event_base *base)
{
	struct children *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->base = base;
	c->reaper = evsignal_new(base, SIGCHLD, reap, c);
	c->burier = evtimer_new(base, bury, c);
	if (c->reaper && c->burier && event_add(c->reaper, NULL) == 0)
		return c;
	children_free(&c);
	return NULL;
}

/* What still runs ends by itself. */
void children_free(struct children **c)
{
	if (!*c)
		return;
	while ((*c)->first) {
		struct child *k = (*c)->first;
		(*c)->first = k->next;
		child_free(k);
	}
	if ((*c)->reaper)
		event_free((*c)->reaper);
	if ((*c)->burier)
		event_free((*c)->burier);
	free(*c);
	*c = NULL;
}
