/* Starting sandboxes, when the queue says whose turn it is. */
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/seal.h"

static bool add_secret(const struct service *s, const char *name, size_t i, struct words *env)
{
	struct seal_value value;
	bool found = seal_read(s->config.state, name, &value) == SEAL_FOUND;
	if (found)
		words_add(env, "CAGE_SECRET_%zu=%.*s", i, (int)value.len, value.bytes);
	seal_value_wipe(&value);
	return found && !env->failed;
}

static bool read_secrets(const struct service *s, const json_t *spec, struct words *env)
{
	size_t i;
	json_t *id;
	json_array_foreach(json_object_get(spec, "secrets"), i, id)
	{
		if (!add_secret(s, json_string_value(id), i, env))
			return false;
	}
	return true;
}

/* ---- keepers ---- */

static struct backend_start start_of(const struct service *s, const struct keeper_wish *w, const struct words *env)
{
	const char *root = json_string_value(json_object_get(w->spec, "rootfs"));
	return (struct backend_start){.id = w->id,
				      .state = s->config.state,
				      .dir = w->dir,
				      .mode = s->config.mode,
				      .rootfs =
					      root ? json_string_value(json_object_get(s->config.rootfs, root)) : NULL,
				      .spec = w->spec,
				      .life_s = w->life_s,
				      .log_max = s->config.log_max,
				      .stand_ms = w->stand_ms,
				      .signatures = s->config.signatures,
				      .env = env};
}

pid_t keeper_start(struct service *s, const struct keeper_wish *w, const char **why)
{
	struct words env = {0};
	const struct backend *backend = backend_of(w->spec);
	const struct backend_start start = start_of(s, w, &env);
	pid_t pid = -1;
	*why = NULL;
	if (!backend)
		*why = "this build does not have its backend";
	else if (json_object_get(w->spec, "rootfs") && !start.rootfs)
		*why = "the configuration has no root of that name any more";
	else if (read_secrets(s, w->spec, &env))
		pid = backend->start(backend, &start);
	words_wipe(&env);
	return pid;
}

static struct keeper_wish wish_of(const struct sandbox *b)
{
	const int64_t left_us = b->row.deadline_us - (int64_t)clock_wall_us();
	return (struct keeper_wish){.id = b->row.id,
				    .dir = b->dir,
				    .spec = b->row.spec,
				    .life_s = left_us > 0 ? (uint64_t)left_us / 1000000 + 1 : 1};
}

bool sandbox_write_begin(const struct sandbox *b)
{
	const struct words none = {0};
	const struct keeper_wish wish = wish_of(b);
	const struct backend *backend = backend_of(b->row.spec);
	const struct backend_start start = start_of(b->service, &wish, &none);
	return backend && backend->begin && backend->begin(backend, &start);
}

/* ---- sandboxes ---- */

/* Nothing was started: what is stored says why. */
static void fail(struct sandbox *b, const char *why)
{
	say("%s: %s", b->row.id, why);
	if (!b->row.message)
		b->row.message = strdup(why);
}

static void start_cold(struct sandbox *b)
{
	const char *why;
	const struct keeper_wish wish = wish_of(b);
	pid_t pid = keeper_start(b->service, &wish, &why);
	if (why)
		fail(b, why);
	b->keeper = pid > 0 ? pid : 0;
	sandbox_enter(b, PHASE_STARTING);
	if (pid > 0)
		sandbox_set_clock(b, LIMIT_SERVE_CONNECT_MS);
	else
		sandbox_finish(b);
}

/* One that stands already waits to be told: once somebody listens to it. */
void sandbox_start(struct sandbox *b)
{
	if (!sandbox_can_fall_back(b)) {
		start_cold(b);
		return;
	}
	sandbox_enter(b, PHASE_STARTING);
	sandbox_set_clock(b, 0);
}

/* ---- turns ---- */

static void on_pump(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	sandboxes_pump(arg);
}

static void pump_in(struct service *s, uint64_t us)
{
	struct timeval time = {.tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000)};
	if (!s->pump)
		s->pump = evtimer_new(s->base, on_pump, s);
	if (s->pump)
		evtimer_add(s->pump, &time);
}

void sandboxes_pump(struct service *s)
{
	uint64_t wait_us = 0;
	struct queued *next;
	if (s->queue.n_waiting > 0 && !reserve_has_room(&s->reserve)) {
		pump_in(s, LIMIT_SERVE_TICK_MS * 1000);
		return;
	}
	while (!s->stopping && (next = queue_next(&s->queue, clock_mono_us(), &wait_us))) {
		struct sandbox *b = sandbox_of_place(next);
		if (sandbox_store(b, CREATING,
				  json_is_true(json_object_get(b->row.spec, "warm")) ? "warm" : "placed")) {
			sandbox_start(b);
			continue;
		}
		queue_return(&s->queue, next); /* the disk is full */
		wait_us = LIMIT_SERVE_TICK_MS * 1000;
		break;
	}
	if (wait_us)
		pump_in(s, wait_us);
}
