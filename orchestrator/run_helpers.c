/* The helpers of a run, cage-proxy and cage-dns: their arguments, their start, and what becomes of a reload. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/run_private.h"

/* ---- their start ---- */

/* What both of them are told. */
static void add_common(const struct run *r, struct words *argv, const char *name, const char *log)
{
	words_add(argv, "%s", name);
	words_add(argv, "--policy");
	words_add(argv, "%s", r->policy);
	words_add(argv, "--admin");
	words_add(argv, "off");
	words_add(argv, "--ca-dir");
	words_add(argv, "%s", r->ca_dir);
	words_add(argv, "--log");
	words_add(argv, "%s", log);
	if (r->options->log_max) {
		words_add(argv, "--log-max");
		words_add(argv, "%s", r->options->log_max);
	}
	words_add(argv, "--sandbox");
	words_add(argv, "%s", r->options->sandbox);
	words_add(argv, "--bindings");
	words_add(argv, "unix:%s/bindings", r->dir.hidden);
}

static void add_socket(struct words *argv, int fds[], size_t *n, const char *option, int fd)
{
	words_add(argv, "%s", option);
	words_add(argv, "fd:%d", LAUNCH_FIRST_FD + (int)*n);
	fds[(*n)++] = fd;
}

static const char *proxy_option(enum handoff_kind kind)
{
	switch (kind) {
	case HANDOFF_PROXY:
		return "--listen";
	case HANDOFF_CAPTURED:
		return "--transparent";
	case HANDOFF_WATCH:
		return "--watch";
	case HANDOFF_DNS_UDP:
	case HANDOFF_DNS_TCP:
	case HANDOFF_END:
	case HANDOFF_BEGINS:
	case HANDOFF_STOPPED:
	case HANDOFF_USAGE:
		break;
	}
	return NULL;
}

/* With a pipe on which it tells what became of each reload. */
static bool start_helper(struct helper *h, const char *name, struct words *argv, const struct words *env, int *fds,
			 size_t n)
{
	char *const no_env[] = {NULL};
	int reloads[2];
	if (n == LIMIT_LAUNCH_FDS || pipe2(reloads, O_CLOEXEC | O_NONBLOCK) != 0) {
		say("pipe: %s", strerror(errno));
		words_free(argv);
		return false;
	}
	add_socket(argv, fds, &n, "--reloads", reloads[1]);
	struct launch l = {
		.name = name, .argv = argv->list, .envp = env->list ? env->list : no_env, .fds = fds, .n_fds = n};
	bool ok = !argv->failed && helper_start(h, &l, reloads[0]);
	if (argv->failed)
		close(reloads[0]);
	close(reloads[1]);
	words_free(argv);
	return ok;
}

static bool start_proxy(struct run *r)
{
	struct words argv = {0};
	int fds[LIMIT_LAUNCH_FDS];
	size_t n = 0;
	add_common(r, &argv, "cage-proxy", r->log);
	words_add(&argv, "--kit");
	words_add(&argv, "%s", r->dir.kit);
	for (size_t i = 0; i < r->options->proxy.n; i++)
		words_add(&argv, "%s", r->options->proxy.list[i]);
	for (size_t i = 0; i < r->sockets.n; i++) {
		const char *option = proxy_option(r->sockets.all[i].kind);
		if (option)
			add_socket(&argv, fds, &n, option, r->sockets.all[i].fd);
	}
	return start_helper(&r->proxy, "cage-proxy", &argv, &r->proxy_env, fds, n);
}

static bool start_dns(struct run *r)
{
	struct words argv = {0};
	int fds[LIMIT_LAUNCH_FDS];
	size_t n = 0;
	add_common(r, &argv, "cage-dns", r->dns_log);
	for (size_t i = 0; i < r->sockets.n; i++)
		if (r->sockets.all[i].kind == HANDOFF_DNS_UDP || r->sockets.all[i].kind == HANDOFF_DNS_TCP)
			add_socket(&argv, fds, &n, "--listen", r->sockets.all[i].fd);
	if (n > 0)
		return start_helper(&r->dns, "cage-dns", &argv, &r->dns_env, fds, n);
	words_free(&argv);
	return true;
}

bool run_start_helpers(struct run *r)
{
	return start_proxy(r) && start_dns(r);
}

/* ---- reloads ---- */

static unsigned bit_of(const struct run *r, const struct helper *h)
{
	return h == &r->proxy ? 1 : 2;
}

static unsigned ask_to_reload(const struct run *r, const struct helper *h)
{
	return h->state == HELPER_READY && kill(h->pid, SIGHUP) == 0 ? bit_of(r, h) : 0;
}

/* Both or none: where one has ended, the other keeps what it has. */
void run_reload(struct run *r)
{
	unsigned asked = 0;
	if (r->proxy.state != HELPER_ENDED && r->dns.state != HELPER_ENDED)
		asked = ask_to_reload(r, &r->proxy) | ask_to_reload(r, &r->dns);
	control_begin_reload(&r->control, asked);
}

void run_take_reloaded(struct run *r, struct helper *h)
{
	for (char how = helper_reloaded(h); how; how = helper_reloaded(h))
		control_hear(&r->control, bit_of(r, h), how == 'y');
}

void run_miss_reloaded(struct run *r, struct helper *h)
{
	run_take_reloaded(r, h);
	control_hear(&r->control, bit_of(r, h), false);
}
