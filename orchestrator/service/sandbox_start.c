/* Starting sandboxes, when the queue says whose turn it is. */
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/seal.h"

static struct sandbox *of_place(const struct queued *q)
{
	return (struct sandbox *)((char *)q - offsetof(struct sandbox, place));
}

static bool add_secret(struct sandbox *b, const char *name, size_t i, struct words *env)
{
	struct seal_value value;
	bool found = seal_read(b->service->config.state, name, &value) == SEAL_FOUND;
	if (found)
		words_add(env, "CAGE_SECRET_%zu=%.*s", i, (int)value.len, value.bytes);
	seal_value_wipe(&value);
	return found && !env->failed;
}

static bool read_secrets(struct sandbox *b, struct words *env)
{
	size_t i;
	json_t *id;
	json_array_foreach(json_object_get(b->row.spec, "secrets"), i, id)
	{
		if (!add_secret(b, json_string_value(id), i, env))
			return false;
	}
	return true;
}

/* Nothing was started: what is stored says why. */
static void fail(struct sandbox *b, const char *why)
{
	say("%s: %s", b->row.id, why);
	if (!b->row.message)
		b->row.message = strdup(why);
}

static pid_t start_keeper(struct sandbox *b)
{
	struct words env = {0};
	const int64_t left_us = b->row.deadline_us - (int64_t)clock_wall_us();
	struct backend_start start = {.id = b->row.id,
				      .state = b->service->config.state,
				      .dir = b->dir,
				      .mode = b->service->config.mode,
				      .signatures = b->service->config.signatures,
				      .spec = b->row.spec,
				      .life_s = left_us > 0 ? (uint64_t)left_us / 1000000 + 1 : 1,
				      .env = &env};
	const struct backend *backend = backend_of(b->row.spec);
	const char *root = json_string_value(json_object_get(b->row.spec, "rootfs"));
	start.rootfs = root ? json_string_value(json_object_get(b->service->config.rootfs, root)) : NULL;
	pid_t pid = -1;
	if (!backend)
		fail(b, "this build does not have its backend");
	else if (root && !start.rootfs)
		fail(b, "the configuration has no root of that name any more");
	else if (read_secrets(b, &env))
		pid = backend->start(&start);
	words_wipe(&env);
	return pid;
}

void sandbox_start(struct sandbox *b)
{
	pid_t pid = start_keeper(b);
	b->keeper = pid > 0 ? pid : 0;
	sandbox_enter(b, PHASE_STARTING);
	if (pid > 0)
		sandbox_set_clock(b, LIMIT_SERVE_CONNECT_MS);
	else
		sandbox_finish(b);
}

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
		struct sandbox *b = of_place(next);
		if (sandbox_store(b, CREATING, "placed")) {
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
