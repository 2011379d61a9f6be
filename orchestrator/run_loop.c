/* What happens while a run lasts: signals, the terminal, and the programs' words and ends. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/run_private.h"

static void heard(void *run, const char *line)
{
	run_note(run, line);
}

/* ---- ends ---- */

/* Connections are refused from now on, and not left waiting. */
static void close_sockets(struct run *r, const struct helper *h)
{
	if (h == &r->proxy) {
		sockets_refuse(&r->sockets, HANDOFF_PROXY);
		sockets_refuse(&r->sockets, HANDOFF_CAPTURED);
	} else {
		sockets_refuse(&r->sockets, HANDOFF_DNS_TCP);
	}
}

/* Is it a helper that CMD could still have used? Then it is dark in the room now. What it has said so far is told first; its
 * children may live on for a moment and have the pipe open, which the loop goes on to watch. */
static void helper_is_gone(struct run *r, struct helper *h, int status)
{
	char how[64], line[256];
	enum helper_state before = h->state;
	close_sockets(r, h);
	while (h->said >= 0 && helper_listen(h, heard, r) == HEARD_SOME)
		;
	run_miss_reloaded(r, h);
	helper_ended(h, status);
	status_describe(status, how, sizeof(how));
	if (before == HELPER_STARTING || r->state != RUN_CMD) {
		tty_leave_raw(&r->tty); /* all is over */
		run_tell_notes(r);
		say("%s %s", h->name, how);
		run_end(r, WIFEXITED(status) && WEXITSTATUS(status) == EXIT_WRONG ? EXIT_WRONG : EXIT_FAILED);
		return;
	}
	snprintf(line, sizeof(line), "cage: %s %s: %s", h->name, how,
		 h == &r->proxy ? "nothing gets out any more" : "no name is answered any more");
	run_note(r, line);
}

/* Before CMD ran it says with its code why there is no room for it; unless that is no reason at all. */
static void gate_never_went(struct run *r, int status)
{
	char how[64];
	bool has_said = WIFEXITED(status) && WEXITSTATUS(status) != 0;
	status_describe(status, how, sizeof(how));
	if (!has_said)
		say("cage-gate %s", how);
	run_end(r, has_said ? WEXITSTATUS(status) : EXIT_FAILED);
}

/* What it said last of all. */
static void take_usage(struct run *r)
{
	enum handoff_kind kind;
	int fd = -1;
	while (r->handoff >= 0 && handoff_receive_news(r->handoff, &kind, &fd, &r->usage) == 0)
		if (fd >= 0)
			close(fd);
}

/* Then it ends as CMD did. */
static void gate_is_gone(struct run *r, int status)
{
	char how[64], line[256];
	r->gate = 0;
	if (r->state != RUN_CMD) {
		gate_never_went(r, status);
		return;
	}
	take_usage(r);
	if (WIFEXITED(status)) {
		run_end(r, WEXITSTATUS(status));
		return;
	}
	status_describe(status, how, sizeof(how));
	snprintf(line, sizeof(line), "cage: cage-gate %s, and all in the room with it", how);
	run_note(r, line);
	run_end(r, 128 + WTERMSIG(status));
}

static void reap(struct run *r)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == r->gate)
			gate_is_gone(r, status);
		else if (pid == r->proxy.pid)
			helper_is_gone(r, &r->proxy, status);
		else if (pid == r->dns.pid)
			helper_is_gone(r, &r->dns, status);
	}
}

/* ---- signals ---- */

/* The second one ends all, the third one also a gate that does not obey. */
static void interrupt(struct run *r)
{
	uint64_t now = clock_mono_us(), before = r->interrupted_us;
	r->interrupted_us = now;
	bool again = before > 0 && now - before < LIMIT_INTERRUPT_MS * 1000ull;
	if (again || r->gate_end != GATE_GOES_ON)
		run_end_gate(r);
	else
		kill(r->gate, SIGINT);
}

static void go_on(struct run *r)
{
	r->asked_to_stop = false;
	tty_enter_raw(&r->tty);
	tty_resize(&r->tty);
	if (r->gate > 0)
		kill(r->gate, SIGCONT);
}

/* All of the job that we are part of, as a terminal would do it. Where nobody could continue us, the kernel stops nobody, and
 * CMD goes on too. */
static void stop(struct run *r)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	tty_leave_raw(&r->tty);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	kill(0, SIGTSTP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	go_on(r);
}

/* CMD is the first to stop, if it wants to: the gate says when it has. */
static void take_stop(struct run *r)
{
	r->asked_to_stop = r->state == RUN_CMD && kill(r->gate, SIGTSTP) == 0;
	if (!r->asked_to_stop)
		stop(r);
}

/* By Ctrl-Z, or by itself. Without a terminal that is no matter of ours, unless it is what was asked of us. */
static void cmd_has_stopped(struct run *r)
{
	if (r->asked_to_stop || r->tty.master >= 0)
		stop(r);
}

/* Before CMD runs there is nobody to pass it on to. */
static void take_signal(struct run *r, int number)
{
	if (number == SIGCHLD)
		reap(r);
	else if (number == SIGWINCH)
		tty_resize(&r->tty);
	else if (number == SIGTSTP)
		take_stop(r);
	else if (number == SIGCONT)
		go_on(r);
	else if (r->state != RUN_CMD)
		run_end(r, 128 + number);
	else if (number == SIGINT)
		interrupt(r);
	else
		kill(r->gate, number);
}

static void take_signals(struct run *r)
{
	struct signalfd_siginfo info;
	while (r->state != RUN_ENDED && read(r->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		take_signal(r, (int)info.ssi_signo);
}

/* ---- the start, step by step ---- */

static void close_handoff(struct run *r)
{
	close(r->handoff);
	r->handoff = -1;
}

/* What the gate says of CMD later. */
static void take_news(struct run *r)
{
	enum handoff_kind kind;
	const char go = HANDOFF_GO;
	int fd = -1;
	if (handoff_receive_news(r->handoff, &kind, &fd, &r->usage) != 0) {
		close_handoff(r); /* it ends, or does not speak as it should: CMD is as it was */
	} else if (kind == HANDOFF_BEGINS) {
		tty_has_begun(&r->tty);
		send(r->handoff, &go, 1, MSG_NOSIGNAL);
	} else if (kind == HANDOFF_STOPPED) {
		cmd_has_stopped(r);
	}
	if (fd >= 0)
		close(fd);
}

static void take_sockets(struct run *r)
{
	switch (sockets_take(&r->sockets, r->handoff)) {
	case SOCKETS_MORE:
		return;
	case SOCKETS_ALL:
		run_enter(r, RUN_HELPERS);
		if (!run_start_helpers(r))
			run_end(r, EXIT_FAILED);
		return;
	case SOCKETS_BROKEN:
		break;
	}
	close_handoff(r); /* its exit code says why */
}

static void take_handoff(struct run *r)
{
	if (r->state == RUN_SOCKETS)
		take_sockets(r);
	else
		take_news(r);
}

static void listen_to(struct run *r, struct helper *h)
{
	helper_listen(h, heard, r);
	bool ready = r->proxy.state == HELPER_READY && (r->dns.state == HELPER_READY || r->dns.state == HELPER_ABSENT);
	if (r->state != RUN_HELPERS || !ready)
		return;
	tty_leave_raw(&r->tty); /* CMD does not have it yet */
	run_tell_notes(r);
	tty_enter_raw(&r->tty);
	run_enter(r, RUN_CMD);
	if (!run_let_go(r))
		run_end(r, EXIT_FAILED);
}

/* ---- the launcher ---- */

static void end_orderly(struct run *r)
{
	if (r->state == RUN_CMD)
		run_end_gate(r);
	else
		run_end(r, EXIT_FAILED);
}

static void take_control(struct run *r)
{
	switch (control_take(&r->control)) {
	case CONTROL_NOTHING:
		return;
	case CONTROL_RELOAD:
		run_reload(r);
		return;
	case CONTROL_GONE:
		control_close(&r->control);
		end_orderly(r);
		return;
	case CONTROL_END:
		end_orderly(r);
		return;
	}
}

/* ---- the loop ---- */

enum {
	AT_SIGNALS,
	AT_HANDOFF,
	AT_CONTROL,
	AT_PROXY,
	AT_DNS,
	AT_PROXY_RELOADS,
	AT_DNS_RELOADS,
	AT_TYPED,
	AT_MASTER,
	AT_STREAMS,
	AT_SOCKETS = AT_STREAMS + 3,
	AT_END = AT_SOCKETS + LIMIT_LAUNCH_FDS
};

static void watch(struct pollfd *p, int fd, bool wanted)
{
	*p = (struct pollfd){.fd = wanted ? fd : -1, .events = POLLIN};
}

static void watch_all(const struct run *r, struct pollfd p[AT_END])
{
	bool dns_is_gone = r->dns.state == HELPER_ENDED;
	watch(&p[AT_SIGNALS], r->signals, true);
	watch(&p[AT_HANDOFF], r->handoff, r->state == RUN_SOCKETS || r->state == RUN_CMD);
	watch(&p[AT_CONTROL], r->control.fd, true);
	watch(&p[AT_PROXY], r->proxy.said, r->proxy.state != HELPER_ABSENT);
	watch(&p[AT_DNS], r->dns.said, r->dns.state != HELPER_ABSENT);
	watch(&p[AT_PROXY_RELOADS], r->proxy.reloads, true);
	watch(&p[AT_DNS_RELOADS], r->dns.reloads, true);
	watch(&p[AT_TYPED], 0, tty_wants_input(&r->tty));
	watch(&p[AT_MASTER], r->tty.master, true);
	if (r->tty.n_typed > 0 && r->tty.leader > 0)
		p[AT_MASTER].events |= POLLOUT;
	for (int fd = 0; fd < 3; fd++)
		p[AT_STREAMS + fd] = (struct pollfd){.fd = r->streams.ours[fd], .events = streams_events(fd)};
	for (size_t i = 0; i < LIMIT_LAUNCH_FDS; i++)
		watch(&p[AT_SOCKETS + i], r->sockets.all[i].fd,
		      dns_is_gone && i < r->sockets.n && r->sockets.all[i].kind == HANDOFF_DNS_UDP);
}

static void serve_tty(struct run *r, const struct pollfd *typed, const struct pollfd *master)
{
	if (master->revents & POLLOUT)
		tty_flush_input(&r->tty);
	if (master->revents & (POLLIN | POLLHUP) && !tty_copy_output(&r->tty)) {
		close(r->tty.master); /* nobody has the other end any more */
		r->tty.master = -1;
		return;
	}
	if (!typed->revents)
		return;
	switch (tty_take_input(&r->tty)) {
	case TTY_GOES_ON:
		return;
	case TTY_ENDED:
		r->tty.is_tty[0] = false;
		kill(r->gate, SIGHUP);
		return;
	case TTY_INTERRUPT:
		run_end(r, 128 + SIGINT);
		return;
	case TTY_KILL:
		run_end_gate(r);
		return;
	}
}

static void serve_all(struct run *r, const struct pollfd p[AT_END])
{
	if (p[AT_PROXY].revents)
		listen_to(r, &r->proxy);
	if (p[AT_DNS].revents)
		listen_to(r, &r->dns);
	if (p[AT_PROXY_RELOADS].revents)
		run_take_reloaded(r, &r->proxy);
	if (p[AT_DNS_RELOADS].revents)
		run_take_reloaded(r, &r->dns);
	if (p[AT_HANDOFF].revents)
		take_handoff(r);
	if (p[AT_CONTROL].revents)
		take_control(r);
	if (r->tty.master >= 0)
		serve_tty(r, &p[AT_TYPED], &p[AT_MASTER]);
	for (int fd = 0; fd < 3; fd++)
		if (p[AT_STREAMS + fd].revents)
			streams_pass(&r->streams, fd);
	for (size_t i = 0; i < r->sockets.n; i++)
		if (p[AT_SOCKETS + i].revents)
			sockets_refuse_question(r->sockets.all[i].fd);
	if (p[AT_SIGNALS].revents)
		take_signals(r);
}

/* Milliseconds; -1: until something happens. Nobody tells when a terminal is ours again. */
static int patience(const struct run *r, bool is_behind)
{
	const int of_gate = run_gate_patience(r);
	return is_behind && (of_gate < 0 || of_gate > LIMIT_FRONT_MS) ? LIMIT_FRONT_MS : of_gate;
}

void run_loop(struct run *r)
{
	struct pollfd p[AT_END];
	while (r->state != RUN_ENDED) {
		bool is_behind = tty_is_behind(&r->tty);
		if (!is_behind && !r->tty.raw)
			tty_enter_raw(&r->tty);
		watch_all(r, p);
		int n = poll(p, AT_END, patience(r, is_behind));
		if (n > 0) {
			serve_all(r, p);
		} else if (n < 0 && errno != EINTR) {
			say("poll: %s", strerror(errno));
			run_end(r, EXIT_FAILED);
		}
		run_look_at_gate(r);
	}
}
