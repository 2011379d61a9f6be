/* What happens while a sandbox lasts: podman commands and containers that end, what they say, and what the keeper wants. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/pod/door/door.h"
#include "orchestrator/pod/pod.h"

/* ---- words of containers ---- */

/* What is passed on has a bound. */
static void heard(void *container, const char *line)
{
	struct container *c = container;
	const uint64_t before = c->heard;
	c->heard += strlen(line) + 1;
	if (c->heard <= LIMIT_POD_HEARD)
		fprintf(stderr, "%s\n", line);
	else if (before <= LIMIT_POD_HEARD)
		say("%s says more than is kept", c->helper.name);
}

static bool is_ready(const struct pod *p)
{
	if (!p->bridge[0])
		return false;
	for (enum role role = ROLE_PROXY; role < ROLES; role++)
		if (p->containers[role].state != CONTAINER_RUNS ||
		    (role != ROLE_AGENT && p->containers[role].helper.state != HELPER_READY))
			return false;
	return true;
}

static void look_whether_ready(struct pod *p)
{
	if (p->state == POD_CONTAINERS && is_ready(p)) {
		pod_enter(p, POD_DOOR);
		if (!start_agent(p))
			pod_end(p, EXIT_FAILED);
	} else if (p->state == POD_DOOR && p->containers[ROLE_AGENT].helper.state == HELPER_READY) {
		pod_enter(p, POD_RUNS);
		p->has_begun = true;
		control_say(&p->control, "began");
	}
}

static void listen_to(struct pod *p, struct container *c)
{
	helper_listen(&c->helper, heard, c);
	look_whether_ready(p);
}

static void take_reloaded(struct pod *p, enum role role)
{
	struct helper *h = &p->containers[role].helper;
	for (char how = helper_reloaded(h); how; how = helper_reloaded(h))
		control_hear(&p->control, 1u << role, how == 'y');
}

/* ---- ends of podman commands ---- */

static void network_ended(struct pod *p)
{
	if (p->network.state != CALL_GOOD) {
		if (!network_begin(p))
			pod_end(p, EXIT_FAILED);
		return;
	}
	pod_enter(p, POD_CONTAINERS);
	if (!files_own(p) || !network_ask_bridge(p) || !start_container(p, ROLE_PROXY) ||
	    !start_container(p, ROLE_AGENT))
		pod_end(p, EXIT_FAILED);
}

static void hear_rest(struct container *c)
{
	while (c->helper.said >= 0 && helper_listen(&c->helper, heard, c) == HEARD_SOME)
		;
}

/* Whatever that of the agent ended with: nobody has shown that it is locked in. */
static void ended_early(struct pod *p, enum role role)
{
	hear_rest(&p->containers[role]);
	if (role == ROLE_AGENT)
		say("the agent could not be locked in (%d): its container has ended before its command began",
		    DOOR_UNLOCKED);
	else
		say("the %s has ended before the agent's command began", role_names[role]);
	pod_end(p, role == ROLE_AGENT ? DOOR_UNLOCKED : EXIT_FAILED);
}

/* What podman said may have come by the container's own stderr, and is told by now. */
static void tell_failed(struct container *c, enum role role)
{
	char what[32];
	hear_rest(c);
	snprintf(what, sizeof(what), "run (%s)", role_names[role]);
	if (c->call.n_said > 0 || c->heard == 0)
		call_tell(&c->call, what);
	if (gvisor_runs(c->pod->options, role) && c->call.n_said > 0) /* the reason is what runsc has said before */
		say("runsc: %.*s", (int)strcspn(c->call.said, "\n"), c->call.said);
}

static void container_made(struct pod *p, enum role role)
{
	struct container *c = &p->containers[role];
	const bool is_whole = c->state == CONTAINER_STARTING;
	if (c->call.state != CALL_GOOD)
		tell_failed(c, role);
	if (c->call.state != CALL_GOOD || (!is_whole && !gvisor_go_on(p)))
		pod_end(p, EXIT_FAILED);
	else if (is_whole && !start_running(p, role))
		ended_early(p, role);
	else
		look_whether_ready(p);
}

static void reap(struct pod *p)
{
	int status;
	pid_t pid;
	while (p->state != POD_ENDED && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (p->admission.state == CALL_RUNS && pid == p->admission.pid) {
			call_ended(&p->admission, status);
			if (!admit_go_on(p))
				pod_end(p, EXIT_FAILED);
			continue;
		}
		if (p->network.state == CALL_RUNS && pid == p->network.pid) {
			call_ended(&p->network, status);
			network_ended(p);
		}
		if (p->inspect.state == CALL_RUNS && pid == p->inspect.pid) {
			call_ended(&p->inspect, status);
			if (network_take_bridge(p))
				look_whether_ready(p);
			else
				pod_end(p, EXIT_FAILED);
		}
		for (enum role role = ROLE_PROXY; role < ROLES && p->state != POD_ENDED; role++)
			if (p->containers[role].call.state == CALL_RUNS && pid == p->containers[role].call.pid) {
				call_ended(&p->containers[role].call, status);
				container_made(p, role);
			}
	}
}

/* ---- ends of containers ---- */

/* Without the proxy nothing gets out any more, which is no reason to end what runs; before that there is no sandbox. */
static void container_ended(struct pod *p, enum role role)
{
	struct container *c = &p->containers[role];
	if (role == ROLE_AGENT)
		usage_take(p); /* before Podman removes its cgroups */
	close(c->pidfd);
	c->pidfd = -1;
	container_enter(c, CONTAINER_ENDED);
	hear_rest(c);
	look_whether_ready(p); /* its door may have said so just before */
	if (!p->has_begun) {
		ended_early(p, role);
		return;
	}
	if (role == ROLE_AGENT) {
		pod_end(p, 0);
		return;
	}
	take_reloaded(p, role);
	control_hear(&p->control, 1u << role, false);
	say("the %s has ended: %s", role_names[role],
	    role == ROLE_PROXY ? "nothing gets out any more" : "no name is answered any more");
}

/* ---- the keeper ---- */

static bool can_reload(const struct pod *p, enum role role)
{
	const struct container *c = &p->containers[role];
	return c->state == CONTAINER_RUNS && c->helper.state == HELPER_READY;
}

static unsigned ask_to_reload(const struct pod *p, enum role role)
{
	return syscall(SYS_pidfd_send_signal, p->containers[role].pidfd, SIGHUP, NULL, 0) == 0 ? 1u << role : 0;
}

/* Both or none: where one has ended, the other keeps what it has. */
static void reload(struct pod *p)
{
	const unsigned both = 1u << ROLE_PROXY | 1u << ROLE_DNS;
	unsigned asked = 0;
	if (can_reload(p, ROLE_PROXY) && can_reload(p, ROLE_DNS) && files_copy_policy(p))
		asked = ask_to_reload(p, ROLE_PROXY) | ask_to_reload(p, ROLE_DNS);
	control_begin_reload(&p->control, asked == both ? both : 0);
}

static void take_control(struct pod *p)
{
	switch (control_take(&p->control)) {
	case CONTROL_NOTHING:
		return;
	case CONTROL_RELOAD:
		reload(p);
		return;
	case CONTROL_GONE:
	case CONTROL_END:
		pod_end(p, p->has_begun ? 0 : EXIT_FAILED);
		return;
	}
}

static void take_signals(struct pod *p)
{
	struct signalfd_siginfo info;
	while (p->state != POD_ENDED && read(p->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo == SIGCHLD)
			reap(p);
		else
			pod_end(p, 128 + (int)info.ssi_signo);
}

/* ---- the loop ---- */

enum {
	AT_SIGNALS,
	AT_CONTROL,
	AT_ADMISSION,
	AT_NETWORK = AT_ADMISSION + 2,
	AT_INSPECT = AT_NETWORK + 2,
	AT_CONTAINERS = AT_INSPECT + 2,
	OF_EACH = 5,
	AT_END = AT_CONTAINERS + ROLES * OF_EACH
};

static void watch(struct pollfd *at, int fd)
{
	*at = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void watch_call(struct pollfd at[2], const struct call *c)
{
	watch(&at[0], c->state == CALL_RUNS ? c->out : -1);
	watch(&at[1], c->state == CALL_RUNS ? c->err : -1);
}

static void watch_all(const struct pod *p, struct pollfd at[AT_END])
{
	watch(&at[AT_SIGNALS], p->signals);
	watch(&at[AT_CONTROL], p->control.fd);
	watch_call(&at[AT_ADMISSION], &p->admission);
	watch_call(&at[AT_NETWORK], &p->network);
	watch_call(&at[AT_INSPECT], &p->inspect);
	for (enum role role = ROLE_PROXY; role < ROLES; role++) {
		struct pollfd *of = &at[AT_CONTAINERS + (size_t)role * OF_EACH];
		const struct container *c = &p->containers[role];
		watch_call(of, &c->call);
		watch(&of[2], c->helper.said);
		watch(&of[3], c->pidfd);
		watch(&of[4], c->helper.reloads);
	}
}

static void serve_all(struct pod *p, const struct pollfd at[AT_END])
{
	if (at[AT_ADMISSION].revents || at[AT_ADMISSION + 1].revents)
		call_listen(&p->admission);
	if (at[AT_NETWORK].revents || at[AT_NETWORK + 1].revents)
		call_listen(&p->network);
	if (at[AT_INSPECT].revents || at[AT_INSPECT + 1].revents)
		call_listen(&p->inspect);
	for (enum role role = ROLE_PROXY; role < ROLES && p->state != POD_ENDED; role++) {
		const struct pollfd *of = &at[AT_CONTAINERS + (size_t)role * OF_EACH];
		struct container *c = &p->containers[role];
		if (of[0].revents || of[1].revents)
			call_listen(&c->call);
		if (of[2].revents && c->helper.said >= 0)
			listen_to(p, c);
		if (of[4].revents && c->helper.reloads >= 0)
			take_reloaded(p, role);
		if (of[3].revents && c->pidfd >= 0)
			container_ended(p, role);
	}
	if (at[AT_CONTROL].revents && p->state != POD_ENDED)
		take_control(p);
	if (at[AT_SIGNALS].revents)
		take_signals(p);
}

static void look_at_clock(struct pod *p)
{
	const uint64_t now = clock_mono_us();
	call_look(&p->admission);
	call_look(&p->network);
	call_look(&p->inspect);
	for (enum role role = ROLE_PROXY; role < ROLES; role++)
		call_look(&p->containers[role].call);
	if (p->has_begun && now >= p->sample_us) {
		usage_take(p);
		p->sample_us = now + LIMIT_POD_SAMPLE_MS * 1000ull;
	}
	if (!p->has_begun && now >= p->start_until_us) {
		say("the containers were not ready in time");
		pod_end(p, EXIT_FAILED);
	} else if (p->limits.seconds > 0 && now >= p->until_us) {
		say("the time of the sandbox is over");
		pod_end(p, 128 + SIGALRM);
	}
}

void pod_loop(struct pod *p)
{
	struct pollfd at[AT_END];
	while (p->state != POD_ENDED) {
		watch_all(p, at);
		int n = poll(at, AT_END, LIMIT_POD_SAMPLE_MS);
		if (n > 0)
			serve_all(p, at);
		if (p->state != POD_ENDED)
			look_at_clock(p);
	}
}
