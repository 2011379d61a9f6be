/* cage-proxy as a child: started once, never again. It dies with us, and we with it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/gateway/change.h"
#include "orchestrator/gateway/gateway.h"
#include "orchestrator/launch.h"

#define OWN_LINES ".gateway" /* whose the lines are that are nobody's: no sandbox can have that id (boxes.h) */

static void add(struct words *w, const char *option, const char *value)
{
	if (!value)
		return;
	words_add(w, "%s", option);
	words_add(w, "%s", value);
}

void proxy_add_given(const struct gateway *g, struct words *w)
{
	for (char *const *more = g->options->proxy; *more; more++)
		words_add(w, "%s", *more);
	add(w, "--ca-dir", g->options->ca_dir);
	add(w, "--keys", g->options->keys);
	add(w, "--never", g->intake_at); /* no policy leads an agent to where they come from */
}

static struct words words_of(const struct gateway *g)
{
	struct words w = {0};
	char log[LIMIT_GATEWAY_PATH];
	log_path(&g->log, log);
	words_add(&w, "cage-proxy");
	proxy_add_given(g, &w);
	add(&w, "--policy", g->options->policy);
	words_add(&w, "--sandboxes");
	words_add(&w, "%s/sandboxes", g->options->state);
	words_add(&w, "--admin");
	words_add(&w, "unix:%s/admin.sock", g->options->state);
	add(&w, "--log", log);
	add(&w, "--sandbox", OWN_LINES);
	words_add(&w, "--reloads");
	words_add(&w, "fd:%d", LAUNCH_FIRST_FD);
	return w;
}

/* ---- its end ---- */

static void on_ended(evutil_socket_t fd, short what, void *arg)
{
	struct gateway *g = arg;
	(void)fd, (void)what;
	g->proxy = -1;
	if (g->state == GATEWAY_STOPS)
		loop_stop(g->loop);
	else
		gateway_fail(g, "cage-proxy has ended");
}

/* ---- its reloads ---- */

static void take_lines(struct gateway *g)
{
	struct slice rest = slice_of(g->said, g->n_said);
	while (slice_find(rest, '\n') < rest.len)
		change_reloaded(g, slice_cut(&rest, '\n'));
	g->n_said = rest.len;
	memmove(g->said, rest.ptr, rest.len);
}

static void on_reloaded(evutil_socket_t fd, short what, void *arg)
{
	struct gateway *g = arg;
	(void)what;
	const ssize_t n = read(fd, g->said + g->n_said, LIMIT_RELOAD_LINE - g->n_said);
	if (n > 0) {
		g->n_said += (size_t)n;
		take_lines(g);
	}
	if (n == 0 || g->n_said == LIMIT_RELOAD_LINE) /* what waits for it will say so */
		event_del(g->reloaded);
}

/* ---- its beginning ---- */

static bool watch(struct gateway *g)
{
	struct event_base *base = loop_base(g->loop);
	g->proxy_fd = (int)syscall(SYS_pidfd_open, g->proxy, 0);
	g->said = malloc(LIMIT_RELOAD_LINE);
	if (g->proxy_fd < 0 || !g->said)
		return false;
	g->proxy_ended = event_new(base, g->proxy_fd, EV_READ, on_ended, g);
	g->reloaded = event_new(base, g->reloads, EV_READ | EV_PERSIST, on_reloaded, g);
	return g->proxy_ended && g->reloaded && event_add(g->proxy_ended, NULL) == 0 &&
	       event_add(g->reloaded, NULL) == 0;
}

bool proxy_start(struct gateway *g)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
		say("pipe: %s", strerror(errno));
		return false;
	}
	if (fcntl(ends[1], F_SETPIPE_SZ, (int)LIMIT_RELOAD_PIPE) < 0)
		say("pipe: %s", strerror(errno)); /* a line that is too long for it is none, and ends us */
	struct words argv = words_of(g);
	const struct launch l = {.name = "cage-proxy",
				 .argv = argv.list,
				 .envp = environ,
				 .fds = &ends[1],
				 .n_fds = 1,
				 .death_signal = SIGTERM};
	g->reloads = ends[0];
	g->proxy = argv.failed ? -1 : launch(&l);
	close(ends[1]);
	words_free(&argv);
	return g->proxy > 0 && watch(g);
}

void proxy_signal(const struct gateway *g, int number)
{
	if (g->proxy > 0 && kill(g->proxy, number) != 0)
		say("cage-proxy: %s", strerror(errno));
}

void proxy_close(struct gateway *g)
{
	if (g->proxy_ended)
		event_free(g->proxy_ended);
	if (g->reloaded)
		event_free(g->reloaded);
	if (g->proxy_fd >= 0)
		close(g->proxy_fd);
	if (g->reloads >= 0)
		close(g->reloads);
	free(g->said);
	if (g->proxy > 0)
		proxy_signal(g, SIGTERM);
}
