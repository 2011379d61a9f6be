/* cage-pod, as a whole (pod.h). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/option_table.h"
#include "core/base/say.h"
#include "core/proc/process.h"
#include "orchestrator/pod/pod.h"

void pod_enter(struct pod *p, enum pod_state next)
{
	if (next != POD_ENDED && next != p->state + 1)
		abort();
	p->state = next;
}

/* One after the other; the first two are gVisor's. */
void container_enter(struct container *c, enum container_state next)
{
	const bool is_first = c->state == CONTAINER_NONE && (next == CONTAINER_CREATING || next == CONTAINER_STARTING);
	if (!is_first && (c->state == CONTAINER_NONE || next != c->state + 1) && next != CONTAINER_ENDED)
		abort();
	c->state = next;
}

/* The first end counts. */
void pod_end(struct pod *p, int code)
{
	if (p->state != POD_ENDED)
		p->code = code;
	pod_enter(p, POD_ENDED);
}

/* ---- run ---- */

static bool open_signals(struct pod *p)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	p->signals = sigprocmask(SIG_BLOCK, &set, NULL) == 0 ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
	return p->signals >= 0;
}

static bool prepare(struct pod *p)
{
	const uint64_t now = clock_mono_us();
	if (geteuid() != 0) {
		say("containers of sandboxes are made by root");
		return false;
	}
	if (!p->options->run.control || !control_open(&p->control, p->options->run.control)) {
		say("--control: expected fd:N, a socket of kind SOCK_SEQPACKET");
		p->code = EXIT_WRONG;
		p->control.fd = -1;
		return false;
	}
	p->start_until_us = now + LIMIT_POD_START_MS * 1000ull;
	if (!open_signals(p) || !files_make(p) || !admit_begin(p))
		return false;
	p->until_us = now + p->limits.seconds * 1000000ull;
	return true;
}

static int run(const struct pod_options *o)
{
	static struct pod p;
	p = (struct pod){.options = o, .code = EXIT_FAILED, .signals = -1};
	p.control.fd = p.network.out = p.network.err = p.inspect.out = p.inspect.err = -1;
	p.admission.out = p.admission.err = -1;
	for (enum role role = ROLE_PROXY; role < ROLES; role++) {
		struct container *c = &p.containers[role];
		c->pod = &p;
		c->pidfd = c->words = c->helper.said = c->helper.reloads = c->call.out = c->call.err = -1;
	}
	if (prepare(&p))
		pod_loop(&p);
	pod_close(&p);
	if (p.has_begun)
		control_say_usage(&p.control, &p.usage);
	rundir_remove(&p.dir);
	words_wipe(&p.proxy_env);
	words_free(&p.dns_env);
	words_free(&p.agent_env);
	own_files_free(&p.own);
	control_close(&p.control);
	return p.code;
}

/* ---- other words ---- */

static bool has_image(const struct pod_options *o, const char *name)
{
	static struct call c;
	struct words argv = {0};
	if (name[0] == '/') {
		if (access(name, R_OK | X_OK) == 0)
			return true;
		say("%s: %s", name, strerror(errno));
		return false;
	}
	call_words(o, &argv);
	words_add(&argv, "image");
	words_add(&argv, "exists");
	words_add(&argv, "%s", name);
	if (call_begin(&c, o, &argv, NULL, 0))
		call_await(&c);
	if (c.state == CALL_FAILED && c.n_said > 0)
		call_tell(&c, "image exists");
	else if (c.state == CALL_FAILED)
		say("there is no image %s: build it (images/build) or podman pull it", name);
	return c.state == CALL_GOOD;
}

/* Podman asks it for its version. */
static bool has_runtime(const struct pod_options *o)
{
	static struct call c;
	struct words argv = {0};
	if (!o->runtime)
		return true;
	call_words(o, &argv);
	words_add(&argv, "info");
	words_add(&argv, "--format={{.Host.OCIRuntime.Version}}");
	if (call_begin(&c, o, &argv, NULL, 0))
		call_await(&c);
	if (c.state == CALL_GOOD)
		return true;
	call_tell(&c, "info");
	say("the runtime %s can't be used: install it (of Debian: apt-get install runsc, or runc), or say where it is",
	    o->runtime);
	return false;
}

/* Is there all that a sandbox needs? */
static int check(const struct pod_options *o)
{
	const char *const images[] = {o->image, o->proxy_image, o->dns_image};
	if (geteuid() != 0) {
		say("containers of sandboxes are made by root");
		return EXIT_FAILED;
	}
	if (access(o->podman, X_OK) != 0) {
		say("%s: %s", o->podman, strerror(errno));
		return EXIT_FAILED;
	}
	if (!has_runtime(o))
		return EXIT_FAILED;
	bool are_there = true;
	for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++)
		are_there = has_image(o, images[i]) && are_there;
	return are_there ? 0 : EXIT_FAILED;
}

static int obey(const struct pod_options *o, const char *what, int argc, char **argv)
{
	if (strcmp(what, "run") == 0)
		return run(o);
	if (strcmp(what, "list") == 0)
		return pod_list(o);
	if (strcmp(what, "check") == 0)
		return check(o);
	if (strcmp(what, "remove") == 0 && optind + 1 < argc)
		return pod_remove(o, argv[optind + 1], MAKERS_UNKNOWN);
	say("%s: expected run, remove ID, list or check", what);
	return EXIT_WRONG;
}

int main(int argc, char **argv)
{
	struct pod_options options;
	const char *what = NULL;
	say_as("cage-pod");
	process_harden();
	int code = pod_options_parse(argc, argv, &options, &what);
	if (code == OPTIONS_GO_ON)
		code = obey(&options, what, argc, argv);
	pod_options_free(&options);
	return code;
}
