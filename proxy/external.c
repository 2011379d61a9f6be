/* Processes, sockets and timers of the external inspector; what is said is the business of inspectors/external.c.
 *
 *	DOWN -> UP -> DOWN ... -> CLOSED        up from the start, unless it can't be started
 *
 * One timer: in DOWN it is the pause before the next try, in UP the time limit of the answers. */
#include "proxy/external.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/text.h"
#include "core/net/stream.h"
#include "core/proc/process.h"

#define FIRST_PAUSE_MS 10
#define REAP_MS 20 /* between two looks at a process that is to end */

_Static_assert(LIMIT_EXTERNAL_SOCKET < sizeof(((struct sockaddr_un *)0)->sun_path), "the path fits");
_Static_assert(LIMIT_EXTERNAL_LINE < LIMIT_STREAM_IN, "an answer fits");

enum link_state { LINK_DOWN, LINK_UP, LINK_CLOSED };

struct program;

struct external_link {
	struct loop *loop;
	const struct external_conf *conf;
	struct external *talk;
	enum link_state state;
	struct stream *stream;   /* in LINK_UP */
	struct program *program; /* that was started; NULL: none */
	struct event *timer;
	unsigned pause_ms; /* before the next try */
	struct deferred free;
};

/* ---- the end of a process ---- */

/* A process, with all that its end takes, so that nobody ever has to wait for it in the loop. */
struct program {
	pid_t pid;
	struct event *timer;  /* goes once it is to end */
	unsigned waited_ms;   /* since then */
	struct program *next; /* of those whose timer does not go */
};

static struct program *untimed;

static struct program *program_new(struct loop *l, event_callback_fn on_look)
{
	struct program *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->timer = event_new(loop_base(l), -1, EV_PERSIST, on_look, p);
	if (p->timer)
		return p;
	free(p);
	return NULL;
}

static void program_free(struct program *p)
{
	event_free(p->timer);
	free(p);
}

/* Is it over? Then there is nothing left of it. */
static bool reap(struct program *p)
{
	if (waitpid(p->pid, NULL, WNOHANG) == 0)
		return false;
	program_free(p);
	return true;
}

static void reap_untimed(void)
{
	for (struct program **at = &untimed; *at;) {
		struct program *next = (*at)->next;
		if (reap(*at))
			*at = next;
		else
			at = &(*at)->next;
	}
}

/* The program leads a session of its own, with what it may have started, but not before it has come so far. */
static void signal_program(pid_t pid, int number)
{
	if (kill(-pid, number) != 0)
		kill(pid, number);
}

static void on_reap(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct program *p = arg;
	pid_t pid = p->pid;
	p->waited_ms += REAP_MS;
	bool is_late = p->waited_ms >= LIMIT_EXTERNAL_STOP_MS;
	if (!reap(p) && is_late)
		signal_program(pid, SIGKILL);
}

/* Asks it to end, and makes it end after a while. Without a timer it has no time, and is looked after when the next one
 * is started. */
static void end_program(struct external_link *k)
{
	struct program *p = k->program;
	struct timeval each = loop_ms(REAP_MS);
	k->program = NULL;
	if (event_add(p->timer, &each) == 0) {
		signal_program(p->pid, SIGTERM);
		return;
	}
	signal_program(p->pid, SIGKILL);
	p->next = untimed;
	untimed = p;
}

/* ---- the beginning of one ---- */

/* In the child: nothing of ours but its end of the socket, and stderr. */
_Noreturn static void become_program(const struct external_conf *conf, int end, pid_t parent)
{
	static char *const environment[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
					    "LANG=C.UTF-8", NULL};
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE, SIGXFSZ};
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], SIG_DFL);
	process_die_with(parent);
	int high = fcntl(end, F_DUPFD, 3);
	if (setsid() < 0 || high < 0 || dup2(high, STDIN_FILENO) < 0 || dup2(high, STDOUT_FILENO) < 0)
		_exit(127);
	process_keep_fds(&high, 0);
	if (chdir(conf->directory) == 0)
		execve(conf->command[0], conf->command, environment);
	say("the external inspector can't be run: %s: %s", conf->command[0], strerror(errno));
	_exit(127);
}

/* Our end of a socket whose other end is the program's stdin and stdout; -1: it can't be started. */
static int start_program(struct external_link *k)
{
	int ends[2];
	pid_t worker = getpid();
	struct program *p = program_new(k->loop, on_reap);
	reap_untimed();
	if (!p)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
		program_free(p);
		return -1;
	}
	p->pid = fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 ? fork() : -1;
	if (p->pid == 0)
		become_program(k->conf, ends[1], worker);
	close(ends[1]);
	if (p->pid > 0) {
		k->program = p;
		return ends[0];
	}
	program_free(p);
	close(ends[0]);
	return -1;
}

static int connect_socket(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	memcpy(to.sun_path, path, strlen(path));
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* ---- down ---- */

static void wait_and_retry(struct external_link *k, const char *what)
{
	struct timeval pause = loop_ms(k->pause_ms);
	say("the external inspector: %s; next try in %u ms", what, k->pause_ms);
	k->pause_ms = k->pause_ms * 2 < LIMIT_EXTERNAL_PAUSE_MS ? k->pause_ms * 2 : LIMIT_EXTERNAL_PAUSE_MS;
	k->state = LINK_DOWN;
	event_add(k->timer, &pause);
}

static void hang_up(struct external_link *k)
{
	stream_close(&k->stream);
	if (k->program)
		end_program(k);
}

static void drop(struct external_link *k)
{
	hang_up(k);
	wait_and_retry(k, external_why(k->talk));
	external_lost(k->talk);
}

/* ---- up ---- */

static void on_data(struct stream *s, void *arg)
{
	struct external_link *k = arg;
	enum cage_status st = CAGE_OK;
	while (st == CAGE_OK) {
		size_t used = 0;
		st = external_receive(k->talk, stream_input(s), &used);
		if (k->state == LINK_CLOSED)
			return; /* by a request that the answer has ended */
		stream_consume(s, used);
		if (st == CAGE_OK)
			k->pause_ms = FIRST_PAUSE_MS;
	}
	if (st != CAGE_AGAIN)
		drop(k);
}

static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s, (void)why;
	drop(arg);
}

static void on_other(struct stream *s, void *arg)
{
	(void)s, (void)arg; /* no TLS here; what waits to be sent is bounded where it is queued */
}

static const struct stream_cb link_cb = {
	.on_ready = on_other, .on_data = on_data, .on_drained = on_other, .on_end = on_end};

static void start(struct external_link *k)
{
	int fd = k->conf->command ? start_program(k) : connect_socket(k->conf->socket);
	if (fd >= 0)
		k->stream = stream_new(k->loop, fd, &link_cb, k);
	if (!k->stream) {
		hang_up(k);
		wait_and_retry(k, "it can't be reached");
		return;
	}
	k->state = LINK_UP;
	external_open(k->talk);
}

static void time_answers(struct external_link *k)
{
	uint64_t now = loop_now_us(k->loop), deadline = external_deadline_us(k->talk);
	if (deadline == 0)
		return;
	uint64_t wait = deadline > now ? deadline - now : 1;
	struct timeval tv = {.tv_sec = (time_t)(wait / 1000000u), .tv_usec = (suseconds_t)(wait % 1000000u)};
	event_add(k->timer, &tv);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct external_link *k = arg;
	switch (k->state) {
	case LINK_DOWN:
		start(k);
		return;
	case LINK_UP:
		if (!external_expire(k->talk))
			drop(k);
		else if (k->state == LINK_UP)
			time_answers(k);
		return;
	case LINK_CLOSED:
		return;
	}
}

/* ---- what the conversation asks for ---- */

static bool port_send(void *arg, struct slice line)
{
	struct external_link *k = arg;
	if (k->state != LINK_UP || stream_unsent(k->stream) + line.len > LIMIT_EXTERNAL_QUEUE)
		return false;
	stream_write(k->stream, line);
	struct timeval limit = {.tv_sec = (time_t)(k->conf->timeout_us / 1000000u),
				.tv_usec = (suseconds_t)(k->conf->timeout_us % 1000000u)};
	if (!event_pending(k->timer, EV_TIMEOUT, NULL))
		event_add(k->timer, &limit);
	return true;
}

static uint64_t port_now(void *arg)
{
	struct external_link *k = arg;
	return loop_now_us(k->loop);
}

/* Its id is the transaction's, and is made of plain characters. */
static void port_note(void *arg, struct slice id, struct slice note)
{
	(void)arg;
	char room[6 * LIMIT_EXTERNAL_NOTE];
	struct text plain = text_in(room, sizeof(room));
	text_put_json(&plain, note);
	say("the external inspector on %.*s: %.*s", SLICE_FMT(id), (int)plain.len, room);
}

/* ---- life ---- */

static void link_free(struct external_link *k)
{
	if (k->timer)
		event_free(k->timer);
	external_free(&k->talk);
	free(k);
}

static void on_free(struct deferred *d)
{
	link_free((struct external_link *)(void *)((char *)d - offsetof(struct external_link, free)));
}

struct external_link *external_link_new(struct loop *l, const struct external_conf *conf)
{
	struct external_link *k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	struct external_port port = {.send = port_send, .now_us = port_now, .note = port_note, .arg = k};
	k->loop = l;
	k->conf = conf;
	k->pause_ms = FIRST_PAUSE_MS;
	k->free.run = on_free;
	k->talk = external_new(conf->timeout_us, &port);
	k->timer = evtimer_new(loop_base(l), on_timer, k);
	if (!k->talk || !k->timer) {
		link_free(k);
		return NULL;
	}
	start(k);
	return k;
}

struct external *external_link_talk(struct external_link *k)
{
	return k->talk;
}

void external_link_close(struct external_link **kp)
{
	struct external_link *k = *kp;
	if (!k)
		return;
	*kp = NULL;
	k->state = LINK_CLOSED;
	hang_up(k);
	event_del(k->timer);
	external_lost(k->talk);
	loop_defer(k->loop, &k->free);
}
