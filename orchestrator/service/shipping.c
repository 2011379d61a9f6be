/* One process that is started, watched, and started again. */
#include "orchestrator/service/shipping.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/launch.h"
#include "orchestrator/service/alerts.h"

struct shipping {
	struct service *service;
	char kept[BACKEND_PATH];
	pid_t pid; /* 0: it does not run */
	int ended; /* a pidfd; -1: none */
	struct event *end, *again, *trim;
	uint64_t since_us; /* monotonic: of its start */
	unsigned wait_ms;  /* before the next one */
};

/* ---- the process ---- */

static void start(struct shipping *h);

static void start_later(struct shipping *h)
{
	const uint64_t lived_us = clock_mono_us() - h->since_us;
	if (lived_us > LIMIT_SERVE_SHIP_RETRY_MAX_MS * 1000ull || h->wait_ms == 0)
		h->wait_ms = LIMIT_SERVE_SHIP_RETRY_MS;
	const struct timeval later = loop_ms(h->wait_ms);
	say("cage-ship has ended: it is started again in %u ms; logs wait for it", h->wait_ms);
	h->wait_ms = h->wait_ms < LIMIT_SERVE_SHIP_RETRY_MAX_MS / 2 ? 2 * h->wait_ms : LIMIT_SERVE_SHIP_RETRY_MAX_MS;
	evtimer_add(h->again, &later);
}

static void forget_process(struct shipping *h)
{
	if (h->end)
		event_free(h->end);
	if (h->ended >= 0)
		close(h->ended);
	h->end = NULL;
	h->ended = -1;
	h->pid = 0;
}

static void on_end(evutil_socket_t fd, short what, void *arg)
{
	struct shipping *h = arg;
	(void)fd, (void)what;
	forget_process(h);
	if (!h->service->stopping)
		start_later(h);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	start(arg);
}

static void add_path(struct words *w, const char *option, const char *state, const char *name)
{
	words_add(w, "%s", option);
	words_add(w, "%s/%s", state, name);
}

/* Logs of sandboxes come before those that are kept: whoever moves one meanwhile has it in both for a moment. */
static struct words words_of(const struct config *c)
{
	struct words w = {0};
	words_add(&w, "cage-ship");
	for (size_t i = 0; i < c->ship.options.n; i++)
		words_add(&w, "%s", c->ship.options.list[i]);
	add_path(&w, "--logs", c->state, "sandboxes");
	add_path(&w, "--kept", c->state, "ship/kept");
	add_path(&w, "--state", c->state, "ship");
	add_path(&w, "--status", c->state, "ship/status");
	return w;
}

static void start(struct shipping *h)
{
	struct words argv = words_of(&h->service->config);
	const struct launch l = {.name = "cage-ship", .argv = argv.list, .envp = environ, .death_signal = SIGTERM};
	h->since_us = clock_mono_us();
	h->pid = argv.failed ? -1 : launch(&l);
	words_free(&argv);
	if (h->pid > 0)
		h->ended = (int)syscall(SYS_pidfd_open, h->pid, 0);
	if (h->ended >= 0)
		h->end = event_new(h->service->base, h->ended, EV_READ, on_end, h);
	if (h->end && event_add(h->end, NULL) == 0)
		return;
	if (h->pid > 0)
		kill(h->pid, SIGTERM);
	forget_process(h);
	start_later(h);
}

/* ---- what is kept ---- */

const char *shipping_keep(const struct service *s, const char *id, const char *dir)
{
	static const char *const names[] = {"log.jsonl", "log.jsonl.dns"};
	static char why[128];
	char from[BACKEND_PATH + 16], to[2 * BACKEND_PATH];
	for (size_t i = 0; s->shipping && i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(from, sizeof(from), "%s/%s", dir, names[i]);
		snprintf(to, sizeof(to), "%s/%s-%s", s->shipping->kept, id, names[i]);
		if (link(from, to) == 0 || errno == ENOENT || errno == EEXIST)
			continue;
		snprintf(why, sizeof(why), "its log can't be kept until it is shipped: %s", strerror(errno));
		return why;
	}
	return NULL;
}

static void on_trimmed(void *arg, int status, struct slice said)
{
	struct shipping *h = arg;
	uint64_t bytes = 0;
	const struct timeval later = loop_ms(LIMIT_SERVE_SHIP_TRIM_MS);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !slice_to_u64(slice_cut(&said, '\n'), INT64_MAX, &bytes))
		say("%s: can't be looked through", h->kept);
	if (bytes > 0)
		alerts_tell(h->service, "not_shipped", (json_int_t)bytes);
	evtimer_add(h->trim, &later);
}

static void on_trim(evutil_socket_t fd, short what, void *arg)
{
	struct shipping *h = arg;
	const struct child_spec spec = {
		.function = shipping_trim, .text = h->kept, .with = &h->service->config, .done = on_trimmed, .arg = h};
	const struct timeval later = loop_ms(LIMIT_SERVE_SHIP_TRIM_MS);
	(void)fd, (void)what;
	if (!child_run(h->service->children, &spec))
		evtimer_add(h->trim, &later);
}

/* ---- all of it ---- */

static bool make_dirs(struct shipping *h)
{
	char dir[BACKEND_PATH];
	const char *state = h->service->config.state;
	snprintf(dir, sizeof(dir), "%s/ship", state);
	snprintf(h->kept, sizeof(h->kept), "%s/ship/kept", state);
	if ((mkdir(dir, 0700) == 0 || errno == EEXIST) && (mkdir(h->kept, 0700) == 0 || errno == EEXIST))
		return true;
	say("%s: %s", h->kept, strerror(errno));
	return false;
}

bool shipping_start(struct service *s)
{
	if (s->config.ship.options.n == 0)
		return true;
	struct shipping *h = s->shipping = calloc(1, sizeof(*h));
	if (!h)
		return false;
	*h = (struct shipping){.service = s, .ended = -1};
	h->again = evtimer_new(s->base, on_again, h);
	h->trim = evtimer_new(s->base, on_trim, h);
	if (!h->again || !h->trim || !make_dirs(h))
		return false;
	start(h);
	on_trim(-1, 0, h);
	return true;
}

/* It ends by itself when it has the answer that it waits for. */
void shipping_free(struct service *s)
{
	struct shipping *h = s->shipping;
	if (!h)
		return;
	if (h->pid > 0)
		kill(h->pid, SIGTERM);
	forget_process(h);
	child_forget(s->children, h);
	if (h->again)
		event_free(h->again);
	if (h->trim)
		event_free(h->trim);
	free(h);
	s->shipping = NULL;
}
