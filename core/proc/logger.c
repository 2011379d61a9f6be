/* The log writer's loop: woken by the first event, it waits a moment for more, then writes all of them at once. */
#include "core/proc/logger.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "core/proc/control.h"

struct logger {
	const struct logger_config *config;
	struct loop *loop;
	struct audit_writer *writer;
	struct event *control, *wake, *living;
	struct event *flush_timer, *sync_timer;
	bool to_close[LIMIT_WORKERS + 1]; /* by ring: dead workers whose intents are still open */
};

static void arm_ms(struct event *ev, unsigned ms)
{
	struct timeval tv = loop_ms(ms);
	if (!event_pending(ev, EV_TIMEOUT, NULL))
		event_add(ev, &tv);
}

/* Closes what dead workers left open, and tells the master, which then starts their successors. */
static enum cage_status close_open(struct logger *g)
{
	for (uint32_t i = 0; i <= LIMIT_WORKERS; i++) {
		if (!g->to_close[i])
			continue;
		enum cage_status st = audit_writer_close_open(g->writer, i);
		if (st != CAGE_OK)
			return st;
		struct control done = {.type = CONTROL_CLOSED, .index = i};
		st = control_send(g->config->control, &done, -1);
		if (st != CAGE_OK)
			return st;
		g->to_close[i] = false;
	}
	return CAGE_OK;
}

/* A worker that writes broken records may be taken over: the master replaces it. */
static void report_broken(struct logger *g)
{
	for (uint32_t i = 1; i < g->config->n_rings; i++) {
		struct control broken = {.type = CONTROL_BROKEN, .index = i};
		if (audit_writer_distrusts(g->writer, i) && control_send(g->config->control, &broken, -1) != CAGE_OK)
			return; /* the next flush says it again */
	}
}

static void flush(struct logger *g)
{
	event_del(g->flush_timer); /* what comes from now on waits for more again */
	enum cage_status st = audit_writer_flush(g->writer);
	if (st == CAGE_OK)
		st = close_open(g);
	if (st != CAGE_OK) {
		arm_ms(g->flush_timer, LIMIT_LOG_RETRY_MS);
		return;
	}
	report_broken(g);
	arm_ms(g->sync_timer, LIMIT_LOG_SYNC_MS);
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	flush(arg);
}

static void on_sync(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct logger *g = arg;
	if (audit_writer_sync(g->writer) != CAGE_OK)
		arm_ms(g->flush_timer, LIMIT_LOG_RETRY_MS);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct logger *g = arg;
	uint64_t n;
	if (read(fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
		return;
	/* Woken again while waiting for more: a ring fills up. */
	if (event_pending(g->flush_timer, EV_TIMEOUT, NULL))
		flush(g);
	else
		arm_ms(g->flush_timer, LIMIT_LOG_FLUSH_MS);
}

static void reopen(struct logger *g)
{
	flush(g);
	if (audit_writer_reopen(g->writer) != CAGE_OK)
		say("log %s can't be opened anew; writing to the old file", g->config->path);
}

/* The workers are gone like the master, or do not go: what they have sent must still be in the log. */
static void on_last_words(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct logger *g = arg;
	for (size_t i = 0; i < g->config->n_rings; i++)
		if (audit_writer_close_open(g->writer, i) != CAGE_OK)
			say("the last lines of the log could not be written");
	loop_stop(g->loop);
}

/* The workers die with the master, but not in the same moment. Until then their rings are theirs. */
static void master_died(struct logger *g)
{
	struct timeval limit = loop_ms(LIMIT_LOG_LAST_MS);
	audit_writer_take_no_more(g->writer);
	event_del(g->control);
	event_add(g->living, &limit);
}

static void on_control(evutil_socket_t sock, short what, void *arg)
{
	(void)what;
	struct logger *g = arg;
	struct control msg;
	int fd;
	enum cage_status st = control_receive(sock, &msg, &fd);
	if (st == CAGE_AGAIN)
		return;
	if (st != CAGE_OK) {
		master_died(g);
	} else if (msg.type == CONTROL_STOP) {
		flush(g);
		loop_stop(g->loop);
	} else if (msg.type == CONTROL_REOPEN) {
		reopen(g);
	} else if (msg.type == CONTROL_WORKER_DIED && msg.index < g->config->n_rings) {
		g->to_close[msg.index] = true;
		flush(g);
	}
}

static bool logger_open(struct logger *g)
{
	const struct logger_config *config = g->config;
	g->writer = audit_writer_new(config->path, config->shared, config->rings, config->n_rings);
	if (g->writer)
		audit_writer_bound(g->writer, config->most, config->turns);
	g->loop = g->writer ? loop_new() : NULL;
	if (!g->loop)
		return false;
	struct event_base *base = loop_base(g->loop);
	g->flush_timer = evtimer_new(base, on_flush, g);
	g->sync_timer = evtimer_new(base, on_sync, g);
	g->control = event_new(base, config->control, EV_READ | EV_PERSIST, on_control, g);
	g->wake = event_new(base, config->wake, EV_READ | EV_PERSIST, on_wake, g);
	g->living = event_new(base, config->living, EV_READ, on_last_words, g);
	return g->flush_timer && g->sync_timer && g->control && g->wake && g->living &&
	       event_add(g->control, NULL) == 0 && event_add(g->wake, NULL) == 0;
}

static void logger_close(struct logger *g)
{
	audit_writer_free(&g->writer); /* and syncs */
	event_free(g->control);
	event_free(g->wake);
	event_free(g->living);
	event_free(g->flush_timer);
	event_free(g->sync_timer);
	loop_free(&g->loop);
}

_Noreturn void logger_run(const struct logger_config *config)
{
	struct logger g = {.config = config};
	struct control ready = {.type = CONTROL_READY};
	if (!logger_open(&g))
		exit(1);
	/* Ready is who has written a line; who can't is started anew until one can. */
	if (audit_writer_flush(g.writer) != CAGE_OK || control_send(config->control, &ready, -1) != CAGE_OK)
		exit(1);
	arm_ms(g.sync_timer, LIMIT_LOG_SYNC_MS);
	loop_run(g.loop);
	logger_close(&g);
	exit(0);
}
