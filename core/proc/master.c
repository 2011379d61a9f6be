/* The master process: sets everything up, then waits for signals, for its children and for the admin port. */
#include "core/proc/master.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/proc/sandbox_id.h"

/* ---- log ---- */

static struct audit_ring *own_ring(struct master *m)
{
	return m->children.rings[0];
}

/* The seat's policy, or that of the one before all others. */
static void note(struct master *m, size_t seat, struct audit_event *e)
{
	const struct seat *at = &m->children.seats[seat];
	const struct policy *p = at->policy ? at->policy : m->children.seats[0].policy;
	struct audit_policy policy;
	uint64_t one = 1;
	e->ts_us = clock_wall_us();
	e->sandbox = at->id_len > 0 ? seat_id(at) : slice_str(m->sandbox);
	if (p) {
		audit_policy_init(&policy, p->name, slice_str(p->sha), p->gen);
		e->policy = audit_policy_text(&policy);
	}
	if (audit_note(own_ring(m), e) != CAGE_OK || write(m->children.wake, &one, sizeof(one)) < 0)
		say("an event of the master did not reach the log");
	e->policy = SLICE_NONE;
}

void master_log(struct master *m, struct audit_event *e)
{
	note(m, 0, e);
}

static void log_event(struct master *m, size_t seat, enum audit_kind kind, enum audit_decision decision,
		      enum reason reason)
{
	struct audit_event e = {.kind = kind,
				.decision = decision,
				.reason = reason,
				.stage = kind == AUDIT_POLICY  ? STAGE_POLICY
					 : kind == AUDIT_ERROR ? STAGE_LOG
							       : STAGE_NONE};
	note(m, seat, &e);
}

void master_log_policy(struct master *m, size_t seat, bool is_loaded)
{
	if (is_loaded)
		log_event(m, seat, AUDIT_POLICY, DECISION_NONE, REASON_POLICY_LOADED);
	else
		log_event(m, seat, AUDIT_POLICY, DECISION_ERROR, REASON_POLICY_REJECTED);
}

/* ---- reloads ---- */

void master_refuse(struct master *m, struct slice id)
{
	if (id.len == 0 || id.len + 1 > m->refused.room - m->refused.len) {
		m->refused.overflow = true;
	} else if (sandbox_id_is_good(id)) {
		text_put_char(&m->refused, ' ');
		text_put(&m->refused, id);
	}
}

/* For a program; what is said is for people. */
static void tell_result(const struct master *m, bool is_loaded)
{
	static char room[LIMIT_RELOAD_LINE];
	struct text line = text_in(room, sizeof(room));
	text_put_char(&line, is_loaded ? 'y' : 'n');
	if (m->has_roster) {
		text_put(&line, text_slice(&m->refused));
		text_put(&line, m->refused.overflow ? SLICE(" ?\n") : SLICE("\n"));
	}
	if (m->reloads >= 0 && write(m->reloads, line.ptr, line.len) != (ssize_t)line.len)
		say("--reloads: %s", strerror(errno));
}

static bool reload_first(struct master *m)
{
	const struct seat nobody = {.id_len = 0};
	const enum master_load done = master_load_policy(m, 0, &nobody, m->policy_file);
	const unsigned long long gen = m->children.seats[0].policy_gen;
	if (done != MASTER_KEPT)
		master_log_policy(m, 0, done == MASTER_LOADED);
	switch (done) {
	case MASTER_LOADED:
		say("policy %s loaded, generation %llu", m->policy_file, gen);
		return true;
	case MASTER_KEPT:
		say("policy %s is unchanged; generation %llu stays in force", m->policy_file, gen);
		return true;
	case MASTER_REJECTED:
		break;
	}
	say("policy %s rejected; generation %llu stays in force", m->policy_file, gen);
	return false;
}

static void reload(struct master *m)
{
	static char room[LIMIT_RELOAD_LINE - 4]; /* the rest of a line is put round it */
	m->refused = text_in(room, sizeof(room));
	bool is_loaded = reload_first(m);
	if (m->program->reload && !m->program->reload(m->owner) && !m->has_roster)
		is_loaded = false;
	children_send_changes(&m->children);
	tell_result(m, is_loaded);
}

/* ---- listeners ---- */

void master_say_where(const char *what, struct listen_spec spec, int fd)
{
	char where[sizeof(spec.path) + ADDR_TEXT];
	if (spec.kind == LISTEN_TCP && !listen_address(fd, &spec.at))
		return;
	listen_spec_format(&spec, where, sizeof(where));
	say("%s %s", what, where);
}

int master_listen(struct master *m, const struct listen_spec *spec, const char *option, const char *what,
		  bool reuseport)
{
	int fd = listen_open(spec, reuseport);
	if (fd < 0) {
		int err = errno;
		char where[sizeof(spec->path) + ADDR_TEXT];
		listen_spec_format(spec, where, sizeof(where));
		say("can't listen on %s (%s): %s", where, option, strerror(err));
		return -1;
	}
	if (m->n_self < sizeof(m->self) / sizeof(m->self[0]) && listen_address(fd, &m->self[m->n_self]))
		m->n_self++;
	master_say_where(what, *spec, fd);
	return fd;
}

void master_never(struct master *m, const struct addr_port *at)
{
	if (m->n_self < sizeof(m->self) / sizeof(m->self[0]))
		m->self[m->n_self++] = *at;
}

bool master_listen_admin(struct master *m, const struct listen_spec *spec)
{
	m->admin_fd = -1;
	if (!spec)
		return true;
	m->admin_fd = master_listen(m, spec, "--admin", "admin on", false);
	return m->admin_fd >= 0;
}

static bool admin_is_ready(void *arg)
{
	struct master *m = arg;
	return children_are_ready(&m->children) && audit_is_available(own_ring(m)) &&
	       (!m->program->is_ready || m->program->is_ready(m->owner));
}

static void admin_metrics(void *arg, struct text *t)
{
	struct master *m = arg;
	m->program->metrics(m->owner, t, m->children.gen, audit_is_available(own_ring(m)));
}

static bool start_admin(struct master *m)
{
	if (m->admin_fd < 0)
		return true;
	m->admin_source = (struct admin_source){
		.is_ready = admin_is_ready, .metrics = admin_metrics, .ca_file = m->ca_file, .arg = m};
	m->admin = admin_new(m->loop, m->admin_fd, &m->admin_source);
	return m->admin != NULL;
}

/* ---- signals ---- */

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct master *m = arg;
	struct signalfd_siginfo info;
	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			children_reap(&m->children);
		else if (info.ssi_signo == SIGHUP && m->children.phase != CHILDREN_STOPPING)
			reload(m);
		else if (info.ssi_signo == SIGUSR1)
			children_reopen_log(&m->children);
		else if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			children_stop(&m->children);
	}
}

/* From here on signals arrive as events. */
static bool watch_signals(struct master *m)
{
	static const int watched[] = {SIGCHLD, SIGHUP, SIGUSR1, SIGTERM, SIGINT};
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
		sigaddset(&set, watched[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return false;
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	m->signals = fd >= 0 ? event_new(loop_base(m->loop), fd, EV_READ | EV_PERSIST, on_signal, m) : NULL;
	return m->signals && event_add(m->signals, NULL) == 0;
}

/* ---- children ---- */

static struct master *master_of(struct children *c)
{
	return (struct master *)(void *)((char *)c - offsetof(struct master, children));
}

/* A new log writer has something to write at once, which proves that it can, before any traffic is let out. */
static void on_log_start(struct children *c)
{
	struct master *m = master_of(c);
	if (c->phase != CHILDREN_STARTING) {
		log_event(m, 0, AUDIT_ERROR, DECISION_ERROR, REASON_WORKER_DIED); /* the one before it did */
		return;
	}
	log_event(m, 0, AUDIT_START, DECISION_NONE, REASON_NONE);
	for (size_t i = 0; i < c->n_seats; i++)
		if (c->seats[i].policy)
			master_log_policy(m, i, true);
}

static void on_ready(struct children *c)
{
	struct master *m = master_of(c);
	m->program->on_ready(m->owner);
}

void master_give_up(struct master *m)
{
	m->exit_code = 1;
	children_stop(&m->children);
}

static void on_failed(struct children *c)
{
	master_give_up(master_of(c));
}

static void on_stopped(struct children *c)
{
	log_event(master_of(c), 0, AUDIT_STOP, DECISION_NONE, REASON_NONE);
}

/* ---- life ---- */

static bool make_seats(struct master *m)
{
	struct children *c = &m->children;
	c->n_seats = m->n_seats;
	c->seats = calloc(m->n_seats, sizeof(*c->seats));
	c->policies = calloc(m->n_seats, sizeof(*c->policies));
	m->loads = calloc(m->n_seats, sizeof(*m->loads));
	for (size_t i = 0; c->policies && i < m->n_seats; i++)
		c->policies[i] = -1;
	if (!c->seats || !c->policies || !m->loads)
		return false;
	if (policy_store_reserve(m->n_seats * LIMIT_POLICY_SLOTS))
		return true;
	say("no address space for policies: %s; raise RLIMIT_AS (ulimit -v)", strerror(errno));
	return false;
}

bool master_open(struct master *m)
{
	struct children *c = &m->children;
	m->loop = c->loop = loop_new();
	c->program = &m->program->children;
	c->owner = m->owner;
	c->log = m->log;
	c->log_max = m->log_max;
	c->log_turns = m->log_turns;
	c->on_log_start = on_log_start;
	c->on_ready = on_ready;
	c->on_failed = on_failed;
	c->on_stopped = on_stopped;
	return m->loop && make_seats(m) && children_make(c, m->workers);
}

bool master_start(struct master *m)
{
	if (!watch_signals(m) || !start_admin(m))
		return false;
	children_start(&m->children);
	return true;
}

int master_wait(struct master *m)
{
	loop_run(m->loop);
	return m->children.had_crash ? 1 : m->exit_code;
}

void master_close(struct master *m)
{
	admin_free(&m->admin);
	children_close(&m->children);
	event_free(m->signals);
}
