/* Watching, starting again and ending of the child processes.
 *
 *	DOWN -> STARTING -> READY -> (died) DOWN -> ...       log writer, helper
 *	READY -> (died) CLOSING -> DOWN -> STARTING ...       worker: first its open log lines are closed
 *
 * A child that dies is started again at once, and if it keeps dying, after a pause that grows to a second. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/proc/children_private.h"

#define SOON_US 1000000u
#define RESTART_MAX_MS 1000

/* Where the workers begin in the list. */
static size_t first_worker(const struct children *c)
{
	return c->program->helper ? 2 : 1;
}

struct child *children_helper(struct children *c)
{
	return c->program->helper ? &c->list[1] : NULL;
}

void child_tell(struct child *ch, const struct control *msg, int fd)
{
	/* One that does not listen is dead or about to be: its successor gets everything anew. */
	if (child_is_running(ch) && control_send(ch->control, msg, fd) != CAGE_OK)
		kill(ch->pid, SIGKILL);
}

/* ---- starting ---- */

static void on_child_readable(evutil_socket_t fd, short what, void *arg);
static void child_start(struct child *ch);

static void start_later(struct child *ch)
{
	unsigned ms = ch->failures == 0 ? 0 : 50u << (ch->failures < 5 ? ch->failures : 5);
	if (ms > RESTART_MAX_MS)
		ms = RESTART_MAX_MS;
	struct timeval tv = loop_ms(ms);
	event_add(ch->restart, &tv);
}

static void on_restart(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct child *ch = arg;
	if (ch->state == CHILD_DOWN && ch->all->phase != CHILDREN_STOPPING)
		child_start(ch);
}

/* After fork, in the master. */
static void child_forked(struct child *ch, pid_t pid, int control)
{
	ch->pid = pid;
	ch->control = control;
	ch->state = CHILD_STARTING;
	ch->started_us = clock_mono_us();
	ch->readable = event_new(loop_base(ch->all->loop), control, EV_READ | EV_PERSIST, on_child_readable, ch);
	if (!ch->readable || event_add(ch->readable, NULL) != 0)
		kill(pid, SIGKILL);
}

static void child_start(struct child *ch)
{
	int ends[2];
	if (!control_pair(ends)) {
		ch->failures++;
		start_later(ch);
		return;
	}
	pid_t pid = child_fork(ch, ends[1]);
	close(ends[1]);
	if (pid > 0) {
		child_forked(ch, pid, ends[0]);
		return;
	}
	say("can't start the %s: %s", ch->name, strerror(errno));
	close(ends[0]);
	ch->failures++;
	start_later(ch);
}

/* Log writer and helper side by side, and once they are ready the workers, who need them. */
static void start_next(struct children *c)
{
	bool may_work = true;
	if (c->phase == CHILDREN_STOPPING)
		return;
	for (size_t i = 0; i < c->n; i++) {
		struct child *ch = &c->list[i];
		if (ch->kind == CHILD_WORKER && !may_work)
			return;
		if (ch->state == CHILD_DOWN && !event_pending(ch->restart, EV_TIMEOUT, NULL))
			child_start(ch);
		if (ch->kind != CHILD_WORKER)
			may_work = may_work && ch->state == CHILD_READY;
	}
	if (c->phase == CHILDREN_STARTING && children_are_ready(c)) {
		c->phase = CHILDREN_RUNNING;
		c->on_ready(c);
	}
}

/* It took too long: the log can't be written, or a child does not listen. */
static void on_stop_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct children *c = arg;
	say("stopping takes too long; what is left is killed");
	c->had_crash = true;
	for (size_t i = 0; i < c->n; i++)
		if (child_is_running(&c->list[i]))
			kill(c->list[i].pid, SIGKILL);
	loop_stop(c->loop);
}

void children_start(struct children *c)
{
	c->stop_timer = evtimer_new(loop_base(c->loop), on_stop_timer, c);
	if (!c->stop_timer)
		abort();
	for (size_t i = 0; i < c->n; i++) {
		c->list[i].all = c;
		c->list[i].control = -1;
		c->list[i].restart = evtimer_new(loop_base(c->loop), on_restart, &c->list[i]);
		if (!c->list[i].restart)
			abort();
	}
	start_next(c);
}

bool children_are_ready(const struct children *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->list[i].state != CHILD_READY && c->list[i].state != CHILD_RELOADING)
			return false;
	return true;
}

size_t children_behind(const struct children *c)
{
	size_t n = 0;
	for (size_t i = first_worker(c); i < c->n; i++)
		n += c->list[i].state != CHILD_READY || c->list[i].gen != c->gen;
	return n;
}

/* ---- watching ---- */

/* The first change that it does not have yet; there is one. */
static void send_change(struct child *ch)
{
	struct children *c = ch->all;
	struct control msg = {.type = CONTROL_SEAT, .gen = UINT64_MAX};
	for (size_t i = 0; i < c->n_seats; i++)
		if (c->seats[i].gen > ch->gen && c->seats[i].gen < msg.gen) {
			msg.gen = c->seats[i].gen;
			msg.index = (uint32_t)i;
		}
	msg.seat = c->seats[msg.index];
	child_tell(ch, &msg, c->policies[msg.index]);
}

static void close_open_lines(struct child *worker)
{
	struct control msg = {.type = CONTROL_WORKER_DIED, .index = child_ring(worker)};
	child_tell(children_logger(worker->all), &msg, -1);
}

static void child_ready(struct child *ch, const struct control *msg)
{
	struct children *c = ch->all;
	ch->gen = msg->gen;
	if (ch->kind == CHILD_WORKER && ch->gen != c->gen) {
		send_change(ch); /* one of several, or of while it was being started */
		return;
	}
	ch->state = CHILD_READY;
	if (ch->kind == CHILD_LOGGER)
		for (size_t i = first_worker(c); i < c->n; i++)
			if (c->list[i].state == CHILD_CLOSING)
				close_open_lines(&c->list[i]);
	start_next(c);
}

static void stop_step(struct children *c);

static void lines_closed(struct children *c, unsigned ring)
{
	for (size_t i = first_worker(c); i < c->n; i++) {
		struct child *ch = &c->list[i];
		if (child_ring(ch) != ring || ch->state != CHILD_CLOSING)
			continue;
		if (c->phase == CHILDREN_STOPPING) {
			ch->state = CHILD_ENDED;
			stop_step(c);
			return;
		}
		ch->state = CHILD_DOWN;
		start_later(ch);
	}
}

static void kill_worker_of(struct children *c, unsigned ring)
{
	for (size_t i = first_worker(c); i < c->n; i++)
		if (child_ring(&c->list[i]) == ring && child_is_running(&c->list[i]))
			kill(c->list[i].pid, SIGKILL);
}

static void on_child_readable(evutil_socket_t sock, short what, void *arg)
{
	(void)what;
	struct child *ch = arg;
	struct control msg;
	int fd;
	enum cage_status st = control_receive(sock, &msg, &fd);
	if (fd >= 0)
		close(fd); /* no child has any to give */
	if (st == CAGE_AGAIN)
		return;
	if (st != CAGE_OK)
		event_del(ch->readable); /* it is about to end; SIGCHLD tells */
	else if (msg.type == CONTROL_READY)
		child_ready(ch, &msg);
	else if (msg.type == CONTROL_CLOSED && ch->kind == CHILD_LOGGER)
		lines_closed(ch->all, msg.index);
	else if (msg.type == CONTROL_BROKEN && ch->kind == CHILD_LOGGER)
		kill_worker_of(ch->all, msg.index);
}

static void mark_log_unavailable(struct children *c)
{
	for (size_t i = 0; i < c->n_rings; i++)
		audit_ring_set_available(c->rings[i], false);
}

static void say_death(const struct child *ch, int status)
{
	if (WIFSIGNALED(status))
		say("the %s (pid %d) was killed by signal %d; starting it again", ch->name, (int)ch->pid,
		    WTERMSIG(status));
	else
		say("the %s (pid %d) ended with %d; starting it again", ch->name, (int)ch->pid, WEXITSTATUS(status));
}

static void forget_process(struct child *ch)
{
	if (ch->readable)
		event_free(ch->readable);
	ch->readable = NULL;
	close(ch->control);
	ch->control = -1;
}

/* While stopping: a worker's last lines are written before we say that we stop. Without a log writer nobody can. */
static void child_stopped(struct child *ch)
{
	struct children *c = ch->all;
	ch->state = CHILD_ENDED;
	if (ch->kind == CHILD_WORKER && child_is_running(children_logger(c))) {
		ch->state = CHILD_CLOSING;
		close_open_lines(ch);
		return;
	}
	for (size_t i = first_worker(c); i < c->n; i++)
		if (c->list[i].state == CHILD_CLOSING && !child_is_running(children_logger(c)))
			c->list[i].state = CHILD_ENDED;
	stop_step(c);
}

static void child_died(struct child *ch, int status)
{
	struct children *c = ch->all;
	bool never_ready = ch->state == CHILD_STARTING;
	bool soon = clock_mono_us() - ch->started_us < SOON_US;
	forget_process(ch);
	if (ch->kind == CHILD_LOGGER)
		mark_log_unavailable(c);
	if (c->phase == CHILDREN_STOPPING && WIFSIGNALED(status))
		c->had_crash = true;
	if (c->phase == CHILDREN_STOPPING) {
		child_stopped(ch);
		return;
	}
	if (c->phase == CHILDREN_STARTING && never_ready) {
		ch->state = CHILD_ENDED;
		c->on_failed(c);
		return;
	}
	say_death(ch, status);
	ch->failures = soon ? ch->failures + 1 : 0;
	if (ch->kind == CHILD_WORKER) {
		ch->state = CHILD_CLOSING;
		close_open_lines(ch);
	} else {
		ch->state = CHILD_DOWN;
		start_later(ch);
	}
}

void children_reap(struct children *c)
{
	pid_t pid;
	int status;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < c->n; i++)
			if (c->list[i].pid == pid && child_is_running(&c->list[i]))
				child_died(&c->list[i], status);
}

/* ---- telling ---- */

void children_send_changes(struct children *c)
{
	for (size_t i = first_worker(c); i < c->n; i++)
		if (c->list[i].state == CHILD_READY && c->list[i].gen != c->gen) {
			c->list[i].state = CHILD_RELOADING;
			send_change(&c->list[i]);
		}
}

void children_reopen_log(struct children *c)
{
	struct control msg = {.type = CONTROL_REOPEN};
	child_tell(children_logger(c), &msg, -1);
}

/* ---- ending ---- */

static bool workers_ended(const struct children *c)
{
	for (size_t i = first_worker(c); i < c->n; i++)
		if (child_is_running(&c->list[i]) || c->list[i].state == CHILD_CLOSING)
			return false;
	return true;
}

/* Workers first, since they need the others; the log writer last, since it writes down that we stop. */
static void stop_step(struct children *c)
{
	struct control stop = {.type = CONTROL_STOP};
	struct child *helper = children_helper(c), *logger = children_logger(c);
	if (!workers_ended(c))
		return;
	if (helper && child_is_running(helper)) {
		child_tell(helper, &stop, -1);
		return;
	}
	if (child_is_running(logger)) {
		c->on_stopped(c);
		child_tell(logger, &stop, -1);
		return;
	}
	loop_stop(c->loop);
}

void children_stop(struct children *c)
{
	struct control drain = {.type = CONTROL_DRAIN};
	if (c->phase == CHILDREN_STOPPING)
		return;
	c->phase = CHILDREN_STOPPING;
	for (size_t i = 0; i < c->n; i++)
		event_del(c->list[i].restart);
	c->program->close_listeners(c->owner);
	struct timeval limit = loop_ms(LIMIT_STOP_MS);
	event_add(c->stop_timer, &limit);
	for (size_t i = first_worker(c); i < c->n; i++)
		child_tell(&c->list[i], &drain, -1);
	stop_step(c);
}

void children_close(struct children *c)
{
	for (size_t i = 0; i < c->n; i++)
		event_free(c->list[i].restart);
	event_free(c->stop_timer);
}
