/* The end of a sandbox, in the order that nobody is left who could go on: the agent first, then the helpers, which have logs to
 * end, then all that Podman has of it. The same removes what others have left. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/pod/pod.h"

static void add_filters(struct words *argv, const struct pod_options *o, const char *id)
{
	words_add(argv, "--filter=label=" POD_LABEL_STATE "=%s", o->state);
	if (id)
		words_add(argv, "--filter=label=" POD_LABEL_ID "=%s", id);
}

/* ---- what is there ---- */

static bool await_good(struct call *c, bool has_begun, const char *what)
{
	if (has_begun)
		call_await(c);
	if (c->state == CALL_GOOD)
		return true;
	call_tell(c, what);
	return false;
}

static bool run(struct call *c, const struct pod_options *o, struct words *argv, const char *what)
{
	return await_good(c, call_begin(c, o, argv, NULL, 0), what);
}

static void add_list_containers(struct words *argv, const struct pod_options *o, const char *id, const char *format)
{
	call_words(o, argv);
	words_add(argv, "ps");
	words_add(argv, "--all");
	add_filters(argv, o, id);
	words_add(argv, "--format=%s", format);
}

static void add_list_networks(struct words *argv, const struct pod_options *o, const char *id, const char *format)
{
	call_words(o, argv);
	words_add(argv, "network");
	words_add(argv, "ls");
	add_filters(argv, o, id);
	words_add(argv, "--format=%s", format);
}

/* ---- removing ---- */

static void add_remove(struct words *argv, const struct pod_options *o)
{
	call_words(o, argv);
	words_add(argv, "rm");
	words_add(argv, "--force");
	words_add(argv, "--time=0");
	words_add(argv, "--ignore");
}

/* By their names: one that was made in part may be known to the storage alone. */
static void remove_names(struct call *c, const struct pod_options *o, const char *id)
{
	struct words argv = {0};
	add_remove(&argv, o);
	for (enum role role = ROLE_PROXY; role < ROLES; role++)
		words_add(&argv, "cage-%s-%s", id, role_names[role]);
	run(c, o, &argv, "rm");
}

static void remove_containers(struct call *c, const struct pod_options *o, const char *id, enum pod_makers makers)
{
	struct words argv = {0};
	if (makers == MAKERS_UNKNOWN)
		monitors_await(o, id);
	add_remove(&argv, o);
	words_add(&argv, "--volumes");
	words_add(&argv, "--depend"); /* dns has the network of the proxy */
	words_add(&argv, "cage-%s-agent", id);
	words_add(&argv, "cage-%s-proxy", id);
	const bool is_good = run(c, o, &argv, "rm"), is_forgotten = monitors_end(o, id);
	if (c->state != CALL_LATE && (!is_good || is_forgotten))
		remove_names(c, o, id);
}

static void remove_network(struct call *c, const struct pod_options *o, const char *id)
{
	struct words argv = {0};
	call_words(o, &argv);
	words_add(&argv, "network");
	words_add(&argv, "rm");
	words_add(&argv, "--force");
	words_add(&argv, "cage-%s", id);
	if (call_begin(c, o, &argv, NULL, 0))
		call_await(c);
}

/* What a container has left that was never made whole is in the storage only, under its name. */
static bool is_gone(struct call *c, const struct pod_options *o, const char *id)
{
	struct words argv = {0};
	add_list_containers(&argv, o, id, "{{.Names}}");
	if (!run(c, o, &argv, "ps") || c->n_printed > 0)
		return false;
	add_list_networks(&argv, o, id, "{{.Name}}");
	return run(c, o, &argv, "network ls") && c->n_printed == 0 && leases_remove(o, id);
}

int pod_remove(const struct pod_options *o, const char *id, enum pod_makers makers)
{
	static struct call c;
	if (!sandbox_id_is_good(slice_str(id))) {
		say("%s: expected " SANDBOX_ID, id);
		return EXIT_WRONG;
	}
	remove_containers(&c, o, id, makers);
	if (c.state != CALL_LATE) /* a podman that hangs does so again */
		remove_network(&c, o, id);
	if (c.state != CALL_LATE && is_gone(&c, o, id))
		return 0;
	say("something of the sandbox %s is left", id);
	return EXIT_FAILED;
}

/* There may be many, so that they are not kept here. */
int pod_list(const struct pod_options *o)
{
	static struct call c;
	static const char format[] = "{{index .Labels \"" POD_LABEL_ID "\"}}";
	struct words argv = {0};
	add_list_containers(&argv, o, NULL, format);
	if (!await_good(&c, call_begin_list(&c, o, &argv), "ps"))
		return EXIT_FAILED;
	add_list_networks(&argv, o, NULL, format);
	return await_good(&c, call_begin_list(&c, o, &argv), "network ls") ? 0 : EXIT_FAILED;
}

/* ---- the end of one that runs ---- */

static void send_signal(const struct container *c, int number)
{
	if (c->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, c->pidfd, number, NULL, 0);
}

static void await(struct container *c, uint64_t until_us)
{
	struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
	const uint64_t now = clock_mono_us();
	if (c->pidfd >= 0)
		poll(&p, 1, now < until_us ? (int)((until_us - now) / 1000) : 0);
}

static void end_processes(struct pod *p)
{
	const uint64_t until_us = clock_mono_us() + LIMIT_POD_STOP_MS * 1000ull;
	struct container *agent = &p->containers[ROLE_AGENT];
	send_signal(agent, SIGKILL);
	await(agent, until_us);
	if (agent->pidfd >= 0)
		usage_take(p);
	send_signal(&p->containers[ROLE_PROXY], SIGTERM);
	send_signal(&p->containers[ROLE_DNS], SIGTERM);
	await(&p->containers[ROLE_PROXY], until_us);
	await(&p->containers[ROLE_DNS], until_us);
}

static void close_container(struct container *c)
{
	int *const fds[] = {&c->words, &c->helper.said, &c->helper.reloads, &c->pidfd};
	for (size_t i = 0; i < 4; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

/* A podman command that is under way makes something that has to be removed then: it is waited for. What tells of an image makes
 * nothing. */
void pod_close(struct pod *p)
{
	bool is_made = p->network.state != CALL_NONE;
	end_processes(p);
	call_stop(&p->admission);
	if (p->network.state == CALL_RUNS)
		call_await(&p->network);
	if (p->inspect.state == CALL_RUNS)
		call_await(&p->inspect);
	for (enum role role = ROLE_PROXY; role < ROLES; role++) {
		struct container *c = &p->containers[role];
		if (c->call.state == CALL_RUNS)
			call_await(&c->call);
		close_container(c);
	}
	if (is_made && pod_remove(p->options, p->options->run.sandbox, MAKERS_ENDED) != 0 && p->code == 0)
		p->code = EXIT_FAILED;
}
