/* cage-gateway: the parts are put together, and signals go where they belong. gateway.h says what it is. */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/option_table.h"
#include "core/base/say.h"
#include "core/base/wipe.h"
#include "core/net/stream.h"
#include "core/proc/process.h"
#include "orchestrator/gateway/boxes.h"
#include "orchestrator/gateway/change.h"
#include "orchestrator/gateway/intake.h"

void gateway_enter(struct gateway *g, enum gateway_state next)
{
	if (!gateway_may_follow(g->state, next))
		abort();
	g->state = next;
}

void gateway_fail(struct gateway *g, const char *format, ...)
{
	char text[600];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say("%s", text);
	g->code = 1;
	loop_stop(g->loop);
}

/* ---- signals ---- */

static void reload(struct gateway *g)
{
	struct change *c = change_new(g, CHANGE_RELOAD, SLICE_NONE);
	if (!c || !change_ask(c)) {
		say("a reload is left out: too many changes wait");
		if (c)
			change_free(c);
	}
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	struct gateway *g = arg;
	(void)what;
	if (number == SIGTERM || number == SIGINT) {
		gateway_enter(g, GATEWAY_STOPS);
		proxy_signal(g, SIGTERM);
	} else if (g->state == GATEWAY_STARTS) {
		say("the proxy is not there yet: the signal is left out"); /* it would be its end */
	} else if (number == SIGHUP) {
		reload(g);
	} else {
		proxy_signal(g, SIGUSR1);
	}
}

static bool open_signals(struct gateway *g)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		g->signals[i] = evsignal_new(loop_base(g->loop), numbers[i], on_signal, g);
		if (!g->signals[i] || event_add(g->signals[i], NULL) != 0)
			return false;
	}
	return true;
}

/* ---- the log ---- */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct gateway *g = arg;
	(void)fd, (void)what;
	if (g->state != GATEWAY_STARTS && log_look(&g->log)) /* a proxy that has just begun would end by the signal */
		proxy_signal(g, SIGUSR1);
}

static struct event *open_tick(struct gateway *g)
{
	const struct timeval each = loop_ms(LIMIT_GATEWAY_TICK_MS);
	struct event *tick = event_new(loop_base(g->loop), -1, EV_PERSIST, on_tick, g);
	if (tick && event_add(tick, &each) == 0)
		return tick;
	if (tick)
		event_free(tick);
	return NULL;
}

/* ---- all of it ---- */

static bool open_log(struct gateway *g)
{
	char dir[LIMIT_GATEWAY_DIR];
	const char *given = g->options->log_dir;
	snprintf(dir, sizeof(dir), "%s%s", given ? given : g->options->state, given ? "" : "/log");
	return log_open(&g->log, dir, g->options->log_bytes, (size_t)g->options->log_files);
}

static void close_all(struct gateway *g)
{
	intake_close(g);
	changes_close(g);
	children_free(&g->children);
	proxy_close(g);
	log_finish(&g->log);
	log_close(&g->log);
	for (size_t i = 0; i < sizeof(g->signals) / sizeof(g->signals[0]); i++)
		if (g->signals[i])
			event_free(g->signals[i]);
}

static int run(const struct gateway_options *o)
{
	static struct gateway g;
	g = (struct gateway){
		.options = o, .proxy = -1, .proxy_fd = -1, .reloads = -1, .log = {.live = -1, .place = -1}, .code = 1};
	g.loop = loop_new();
	g.children = g.loop ? children_new(loop_base(g.loop)) : NULL;
	struct event *tick = NULL;
	const bool ok = g.children && boxes_open(&g) && open_log(&g) && open_signals(&g) && intake_open(&g) &&
			own_open(&g) && proxy_start(&g) && changes_open(&g) && (tick = open_tick(&g));
	if (ok) {
		g.code = 0;
		loop_run(g.loop);
	}
	if (tick)
		event_free(tick);
	close_all(&g);
	loop_free(&g.loop);
	return g.code;
}

int main(int argc, char **argv)
{
	struct gateway_options options;
	say_as("cage-gateway");
	process_harden();
	json_set_alloc_funcs(malloc, wipe_free); /* there are tokens in it */
	const int code = gateway_options_parse(argc, argv, &options);
	return code == OPTIONS_GO_ON ? run(&options) : code;
}
