/* Starting, watching and ending of the child processes.
 *
 *	DOWN -> STARTING -> READY -> (died) DOWN -> ...       log writer, signer
 *	READY -> (died) CLOSING -> DOWN -> STARTING ...       worker: first its open log lines are closed
 *
 * A child that dies is started again at once, and if it keeps dying, after a pause that grows to a second. */
#include "proxy/children.h"

#include <errno.h>
#include <openssl/x509.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "proxy/control.h"
#include "proxy/logger.h"
#include "proxy/process.h"
#include "proxy/signer.h"

#define SOON_US 1000000u
#define RESTART_MAX_MS 1000

static struct child *logger_of(struct children *c)
{
	return &c->list[0];
}

static struct child *signer_of(struct children *c)
{
	return &c->list[1];
}

/* The log's ring of a worker; the first one is the master's own. */
static unsigned ring_of(const struct child *worker)
{
	return worker->index + 1;
}

static bool is_running(const struct child *ch)
{
	return ch->state == CHILD_STARTING || ch->state == CHILD_READY || ch->state == CHILD_RELOADING;
}

static const char *name_of(const struct child *ch)
{
	switch (ch->kind) {
	case CHILD_LOGGER:
		return "log writer";
	case CHILD_SIGNER:
		return "signer";
	case CHILD_WORKER:
		return "worker";
	}
	return "child";
}

static void tell(struct child *ch, const struct control *msg, int fd)
{
	/* One that does not listen is dead or about to be: its successor gets everything anew. */
	if (is_running(ch) && control_send(ch->control, msg, fd) != CAGE_OK)
		kill(ch->pid, SIGKILL);
}

/* ---- the bodies of the children ---- */

/* What only workers need: tokens, ticket keys, and the leaves' private key. */
static void drop_secrets(struct children *c)
{
	auth_free(&c->auth);
	OPENSSL_cleanse(c->ticket_keys, sizeof(c->ticket_keys));
	EVP_PKEY_free(c->leaf_key);
	c->leaf_key = NULL;
}

/* The public half alone. */
static EVP_PKEY *public_half(EVP_PKEY *key)
{
	unsigned char *der = NULL;
	int len = i2d_PUBKEY(key, &der);
	const unsigned char *p = der;
	EVP_PKEY *half = len > 0 ? d2i_PUBKEY(NULL, &p, len) : NULL;
	OPENSSL_free(der);
	return half;
}

static _Noreturn void run_logger(struct children *c, int control)
{
	struct logger_config config = {.path = c->options->log,
				       .shared = c->log_shared,
				       .rings = c->rings,
				       .n_rings = c->n_rings,
				       .control = control,
				       .wake = c->wake,
				       .living = c->living[0]};
	int keep[] = {control, c->wake, c->living[0]};
	/* It does not die with the master: it first writes down what the others left. */
	process_become("cage-log");
	process_keep_fds(keep, sizeof(keep) / sizeof(keep[0]));
	drop_secrets(c);
	logger_run(&config);
}

/* A child sees its own ring of the log at most: what one writes can't be changed by another. -1: none at all. */
static void keep_ring(struct children *c, int own)
{
	for (size_t i = 0; i < c->n_rings; i++)
		if ((int)i != own)
			munmap(c->rings[i], audit_ring_size());
	munmap(c->log_shared, sizeof(*c->log_shared));
}

static _Noreturn void run_signer(struct children *c, pid_t parent, int control, const int *clients)
{
	int keep[LIMIT_WORKERS + 1];
	size_t n = 0;
	struct signer_config config = {.ca_dir = c->ca_dir,
				       .leaf_key = public_half(c->leaf_key),
				       .control = control,
				       .clients = clients,
				       .n_clients = c->options->workers};
	process_become("cage-signer");
	process_die_with(parent);
	drop_secrets(c);
	keep[n++] = control;
	for (size_t i = 0; i < c->options->workers; i++)
		if (clients[i] >= 0)
			keep[n++] = clients[i];
	process_keep_fds(keep, n);
	keep_ring(c, -1);
	signer_run(&config);
}

static _Noreturn void run_worker(struct children *c, pid_t parent, const struct child *ch, int control, int signer)
{
	int keep[LIMIT_LISTENERS + 4];
	size_t n = 0;
	struct worker_config config = {.index = ch->index,
				       .listeners = c->listeners[ch->index],
				       .n_listeners = c->n_listeners,
				       .control = control,
				       .signer = signer,
				       .wake = c->wake,
				       .ring = c->rings[ring_of(ch)],
				       .first_id = (uint64_t)c->log_shared->id_space[ring_of(ch)] << AUDIT_ID_BITS | 1,
				       .metrics = &c->metrics[ch->index],
				       .policy = c->policy,
				       .auth = c->auth,
				       .sandbox = slice_str(c->options->sandbox),
				       .self = c->self,
				       .n_self = c->n_self,
				       .leaf_key = c->leaf_key,
				       .ticket_keys = c->ticket_keys};
	process_become("cage-worker");
	process_die_with(parent);
	keep[n++] = control;
	keep[n++] = signer;
	keep[n++] = c->wake;
	keep[n++] = c->living[1];
	for (size_t i = 0; i < c->n_listeners; i++)
		keep[n++] = config.listeners[i];
	process_keep_fds(keep, n);
	keep_ring(c, (int)ring_of(ch));
	worker_run(&config);
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

/* The signer's ends of new sockets to all running workers; the workers get theirs. */
static void connect_workers(struct children *c, int clients[LIMIT_WORKERS])
{
	struct control msg = {.type = CONTROL_SIGNER};
	for (size_t i = 0; i < LIMIT_WORKERS; i++)
		clients[i] = -1;
	for (size_t i = 2; i < c->n; i++) {
		int ends[2];
		if (!is_running(&c->list[i]) || !control_pair(ends))
			continue;
		clients[c->list[i].index] = ends[0];
		tell(&c->list[i], &msg, ends[1]);
		close(ends[1]);
	}
}

static pid_t fork_signer(struct children *c, int control)
{
	int clients[LIMIT_WORKERS];
	pid_t parent = getpid();
	connect_workers(c, clients);
	pid_t pid = fork();
	if (pid == 0)
		run_signer(c, parent, control, clients);
	for (size_t i = 0; i < LIMIT_WORKERS; i++)
		if (clients[i] >= 0)
			close(clients[i]);
	return pid;
}

/* New random upper bits for the ids of this worker: unique over workers and restarts without asking anybody, and the log
 * writer takes no others from it. */
static void give_ids(struct child *worker)
{
	uint32_t r = 0;
	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		abort();
	worker->all->log_shared->id_space[ring_of(worker)] = r >> (AUDIT_ID_BITS - 32);
}

static pid_t fork_worker(struct child *ch, int control)
{
	struct children *c = ch->all;
	struct control msg = {.type = CONTROL_CLIENT, .index = ch->index};
	pid_t parent = getpid();
	int ends[2];
	if (!control_pair(ends))
		return -1;
	give_ids(ch);
	pid_t pid = fork();
	if (pid == 0)
		run_worker(c, parent, ch, control, ends[1]);
	if (pid > 0)
		tell(signer_of(c), &msg, ends[0]);
	close(ends[0]);
	close(ends[1]);
	return pid;
}

static pid_t fork_child(struct child *ch, int control)
{
	pid_t pid = -1;
	switch (ch->kind) {
	case CHILD_LOGGER:
		ch->all->on_log_start(ch->all);
		pid = fork();
		if (pid == 0)
			run_logger(ch->all, control);
		break;
	case CHILD_SIGNER:
		pid = fork_signer(ch->all, control);
		break;
	case CHILD_WORKER:
		pid = fork_worker(ch, control);
		break;
	}
	return pid;
}

static void child_start(struct child *ch)
{
	int ends[2];
	if (!control_pair(ends)) {
		ch->failures++;
		start_later(ch);
		return;
	}
	pid_t pid = fork_child(ch, ends[1]);
	close(ends[1]);
	if (pid > 0) {
		child_forked(ch, pid, ends[0]);
		return;
	}
	fprintf(stderr, "cage-proxy: can't start the %s: %s\n", name_of(ch), strerror(errno));
	close(ends[0]);
	ch->failures++;
	start_later(ch);
}

/* The next one in the order of starting. */
static void start_next(struct children *c)
{
	if (c->phase == CHILDREN_STOPPING)
		return;
	for (size_t i = 0; i < c->n; i++) {
		if (c->list[i].state == CHILD_DOWN && !event_pending(c->list[i].restart, EV_TIMEOUT, NULL))
			child_start(&c->list[i]);
		if (i < 2 && c->list[i].state != CHILD_READY)
			return;
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
	fputs("cage-proxy: stopping takes too long; what is left is killed\n", stderr);
	c->had_crash = true;
	for (size_t i = 0; i < c->n; i++)
		if (is_running(&c->list[i]))
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

/* ---- watching ---- */

static void send_policy(struct child *ch)
{
	struct children *c = ch->all;
	struct control msg = {
		.type = CONTROL_POLICY, .gen = c->policy->gen, .policy = c->policy, .size = c->policy_size};
	tell(ch, &msg, c->policy_fd);
}

static void close_open_lines(struct child *worker)
{
	struct control msg = {.type = CONTROL_WORKER_DIED, .index = ring_of(worker)};
	tell(logger_of(worker->all), &msg, -1);
}

static void child_ready(struct child *ch, const struct control *msg)
{
	struct children *c = ch->all;
	if (ch->kind == CHILD_WORKER && msg->gen != c->policy->gen) {
		send_policy(ch); /* the policy changed while it was being started */
		return;
	}
	ch->state = CHILD_READY;
	if (ch->kind == CHILD_LOGGER)
		for (size_t i = 2; i < c->n; i++)
			if (c->list[i].state == CHILD_CLOSING)
				close_open_lines(&c->list[i]);
	start_next(c);
}

static void stop_step(struct children *c);

static void lines_closed(struct children *c, unsigned ring)
{
	for (size_t i = 2; i < c->n; i++) {
		struct child *ch = &c->list[i];
		if (ring_of(ch) != ring || ch->state != CHILD_CLOSING)
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
	for (size_t i = 2; i < c->n; i++)
		if (ring_of(&c->list[i]) == ring && is_running(&c->list[i]))
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
		fprintf(stderr, "cage-proxy: the %s (pid %d) was killed by signal %d; starting it again\n", name_of(ch),
			(int)ch->pid, WTERMSIG(status));
	else
		fprintf(stderr, "cage-proxy: the %s (pid %d) ended with %d; starting it again\n", name_of(ch),
			(int)ch->pid, WEXITSTATUS(status));
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
	if (ch->kind == CHILD_WORKER && is_running(logger_of(c))) {
		ch->state = CHILD_CLOSING;
		close_open_lines(ch);
		return;
	}
	for (size_t i = 2; i < c->n; i++)
		if (c->list[i].state == CHILD_CLOSING && !is_running(logger_of(c)))
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
			if (c->list[i].pid == pid && is_running(&c->list[i]))
				child_died(&c->list[i], status);
}

/* ---- telling ---- */

void children_send_policy(struct children *c)
{
	for (size_t i = 2; i < c->n; i++)
		if (c->list[i].state == CHILD_READY) {
			c->list[i].state = CHILD_RELOADING;
			send_policy(&c->list[i]);
		}
}

void children_reopen_log(struct children *c)
{
	struct control msg = {.type = CONTROL_REOPEN};
	tell(logger_of(c), &msg, -1);
}

/* ---- ending ---- */

static bool workers_ended(const struct children *c)
{
	for (size_t i = 2; i < c->n; i++)
		if (is_running(&c->list[i]) || c->list[i].state == CHILD_CLOSING)
			return false;
	return true;
}

/* Workers first, since they need the others; the log writer last, since it writes down that we stop. */
static void stop_step(struct children *c)
{
	struct control stop = {.type = CONTROL_STOP};
	struct child *signer = signer_of(c), *logger = logger_of(c);
	if (!workers_ended(c))
		return;
	if (is_running(signer)) {
		tell(signer, &stop, -1);
		return;
	}
	if (is_running(logger)) {
		c->on_stopped(c);
		tell(logger, &stop, -1);
		return;
	}
	loop_stop(c->loop);
}

/* So that clients are refused at once. A socket that workers share stands in the row of each. */
static void close_listeners(struct children *c)
{
	for (size_t i = 0; i < c->n_listeners; i++) {
		close(c->listeners[0][i]);
		for (size_t w = 1; w < c->options->workers; w++)
			if (c->listeners[w][i] != c->listeners[0][i])
				close(c->listeners[w][i]);
	}
}

void children_stop(struct children *c)
{
	struct control drain = {.type = CONTROL_DRAIN};
	if (c->phase == CHILDREN_STOPPING)
		return;
	c->phase = CHILDREN_STOPPING;
	for (size_t i = 0; i < c->n; i++)
		event_del(c->list[i].restart);
	close_listeners(c);
	struct timeval limit = loop_ms(LIMIT_STOP_MS);
	event_add(c->stop_timer, &limit);
	for (size_t i = 2; i < c->n; i++)
		tell(&c->list[i], &drain, -1);
	stop_step(c);
}
