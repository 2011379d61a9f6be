/* A process for each request. Where it goes is not the service's to say: the sandbox's own proxy, and its CA alone. */
#include "orchestrator/keeper/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/keeper/keeper.h"
#include "orchestrator/launch.h"

static bool may_enter(enum fetch_state from, enum fetch_state to)
{
	switch (to) {
	case FETCH_FREE:
		return true;
	case FETCH_ASKING:
		return from == FETCH_FREE;
	case FETCH_ASKED:
		return from == FETCH_ASKING;
	case FETCH_LEAVING:
		return from != FETCH_FREE;
	}
	return false;
}

static void fetch_enter(struct fetch *t, enum fetch_state next)
{
	if (!may_enter(t->state, next))
		abort();
	t->state = next;
	if (next == FETCH_LEAVING || next == FETCH_FREE) {
		fd_close(&t->in);
		fifo_clear(&t->to);
	}
	if (next == FETCH_FREE)
		fd_close(&t->out);
}

/* ---- the process ---- */

static void enter_streams(const void *fds)
{
	const int *both = fds;
	if (dup2(both[0], 0) < 0 || dup2(both[1], 1) < 0)
		_exit(1);
}

static pid_t launch_it(const struct keeper *k, const int theirs[2])
{
	struct words argv = {0}, env = {0};
	const char *ca = spec_option(&k->spec, "--ca-dir");
	words_add(&argv, "cage-fetch");
	words_add(&argv, "--proxy");
	words_add(&argv, "socks5h://localhost%s/proxy", k->path);
	words_add(&argv, "--ca-file");
	words_add(&argv, "%s/ca.pem", ca ? ca : "/nonexistent");
	words_add(&env, "PATH=/usr/bin:/bin"); /* values of secrets are in ours */
	struct launch l = {.name = "cage-fetch",
			   .argv = argv.list,
			   .envp = env.list,
			   .in_child = enter_streams,
			   .arg = theirs,
			   .death_signal = SIGKILL};
	pid_t pid = argv.failed || env.failed ? -1 : launch(&l);
	words_free(&argv);
	words_free(&env);
	return pid;
}

static bool start(const struct keeper *k, struct fetch *t)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	bool ok = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && fcntl(in[1], F_SETFL, O_NONBLOCK) == 0 &&
		  fcntl(out[0], F_SETFL, O_NONBLOCK) == 0;
	const int theirs[2] = {in[0], out[1]};
	t->pid = ok ? launch_it(k, theirs) : -1;
	fd_close(&in[0]);
	fd_close(&out[1]);
	t->in = in[1];
	t->out = out[0];
	return t->pid > 0;
}

static void stop(struct fetch *t)
{
	if (t->pid > 0)
		kill(t->pid, SIGKILL);
}

/* ---- what is asked for ---- */

struct fetch *fetch_find(struct keeper *k, uint16_t of)
{
	for (size_t i = 0; i < LIMIT_KEEPER_FETCHES; i++)
		if (k->fetches[i].state != FETCH_FREE && k->fetches[i].of == of)
			return &k->fetches[i];
	return NULL;
}

static struct fetch *find_free(struct keeper *k)
{
	for (size_t i = 0; i < LIMIT_KEEPER_FETCHES; i++)
		if (k->fetches[i].state == FETCH_FREE)
			return &k->fetches[i];
	return NULL;
}

static void ask(struct fetch *t, struct slice more)
{
	t->asked += more.len;
	if (t->asked > LIMIT_FETCH_INPUT || fifo_put(&t->to, more) != CAGE_OK)
		stop(t);
}

void fetch_begin(struct keeper *k, const struct frame *f)
{
	struct fetch *t = find_free(k);
	if (!t) {
		client_refuse(k, f->id, EBUSY);
		return;
	}
	*t = (struct fetch){.in = -1, .out = -1, .of = f->id};
	if (!start(k, t)) {
		client_refuse(k, f->id, EAGAIN);
		fd_close(&t->in);
		fd_close(&t->out);
		return;
	}
	fetch_enter(t, FETCH_ASKING);
	ask(t, f->payload);
	if (f->payload.len > 0)
		fetch_enter(t, FETCH_ASKED);
}

void fetch_go_on(struct keeper *k, const struct frame *f)
{
	struct fetch *t = fetch_find(k, f->id);
	if (!t)
		return;
	if (f->kind == FRAME_CANCEL)
		stop(t);
	else if (t->state == FETCH_ASKING && f->kind == FRAME_DATA)
		ask(t, f->payload);
	else if (t->state == FETCH_ASKING && f->kind == FRAME_END)
		fetch_enter(t, FETCH_ASKED);
}

static void write_some(struct keeper *k, void *arg, int fd, short events)
{
	struct fetch *t = arg;
	(void)k;
	(void)events;
	while (t->in == fd && t->to.len > 0) {
		struct slice front = fifo_front(&t->to);
		ssize_t n = write(fd, front.ptr, front.len);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			fd_close(&t->in);
			return;
		}
		fifo_drop(&t->to, (size_t)n);
	}
	if (t->state == FETCH_ASKED)
		fd_close(&t->in);
}

/* ---- what comes back ---- */

static void leave_if_told(struct keeper *k, struct fetch *t)
{
	char text[32];
	if (t->state != FETCH_LEAVING || t->out >= 0)
		return;
	bool is_killed = WIFSIGNALED(t->status);
	int n = snprintf(text, sizeof(text), "%s %d", is_killed ? "signal" : "exit",
			 is_killed ? WTERMSIG(t->status) : WEXITSTATUS(t->status));
	uint16_t of = t->of;
	fetch_enter(t, FETCH_FREE);
	client_answer(k, of, slice_of(text, (size_t)n));
}

static void read_some(struct keeper *k, void *arg, int fd, short events)
{
	struct fetch *t = arg;
	char bytes[LIMIT_INSIDE_FRAME];
	(void)events;
	if (t->out != fd)
		return;
	ssize_t n = read(fd, bytes, sizeof(bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		fd_close(&t->out);
	else if (t->of != 0)
		client_send(k, FRAME_OUT, t->of, slice_of(bytes, (size_t)n));
	leave_if_told(k, t);
}

void fetch_watch(struct keeper *k)
{
	const short more = client_is_clogged(&k->client) ? 0 : POLLIN;
	for (size_t i = 0; i < LIMIT_KEEPER_FETCHES; i++) {
		struct fetch *t = &k->fetches[i];
		if (t->state == FETCH_FREE)
			continue;
		const bool has_some = t->to.len > 0 || t->state == FETCH_ASKED;
		polls_add(&k->polls, t->in, has_some ? POLLOUT : 0, write_some, t);
		polls_add(&k->polls, t->out, more, read_some, t);
	}
}

bool fetch_ended(struct keeper *k, pid_t pid, int status)
{
	for (size_t i = 0; i < LIMIT_KEEPER_FETCHES; i++) {
		struct fetch *t = &k->fetches[i];
		if (t->state == FETCH_FREE || t->pid != pid)
			continue;
		t->pid = 0;
		t->status = status;
		fetch_enter(t, FETCH_LEAVING);
		leave_if_told(k, t);
		return true;
	}
	return false;
}

void fetch_kill_all(struct keeper *k)
{
	for (size_t i = 0; i < LIMIT_KEEPER_FETCHES; i++)
		if (k->fetches[i].state != FETCH_FREE) {
			k->fetches[i].of = 0;
			stop(&k->fetches[i]);
		}
}
