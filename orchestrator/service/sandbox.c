/* The life of a sandbox from the queue to the end of its keeper. */
#include "orchestrator/service/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/keeper/result.h"
#include "orchestrator/service/seal.h"

#define UNKNOWN_KEEPER_US 2000000 /* that a keeper whose start we have not seen has to show itself */

static void try_to_link(struct sandbox *b);

static struct sandbox *of_place(const struct queued *q)
{
	return (struct sandbox *)((char *)q - offsetof(struct sandbox, place));
}

static const char *label_of(const struct queued *q, const char *name)
{
	return json_string_value(json_object_get(json_object_get(of_place(q)->row.spec, "labels"), name));
}

/* ---- phases ---- */

static void set_clock(struct sandbox *b, unsigned ms)
{
	const struct timeval time = loop_ms(ms);
	evtimer_add(b->clock, &time);
}

static void take_out(struct sandbox *b)
{
	struct sandbox **at = &b->service->sandboxes;
	while (*at && *at != b)
		at = &(*at)->next;
	if (*at)
		*at = b->next;
}

static void free_now(struct sandbox *b)
{
	sandbox_drop_reload(b);
	child_forget(b->service->children, b);
	if (b->clock)
		event_free(b->clock);
	link_close(&b->link);
	row_free(&b->row);
	free(b->result);
	free(b);
}

/* Not within a callback of its link: by its clock. */
static void free_later(struct sandbox *b)
{
	struct service *s = b->service;
	take_out(b);
	free_now(b);
	sandboxes_pump(s);
	cleanup_look(s);
}

void sandbox_enter(struct sandbox *b, enum phase next)
{
	b->phase = next;
	b->since_us = clock_mono_us();
	if (next != PHASE_OVER)
		return;
	queue_remove(&b->service->queue, &b->place);
	set_clock(b, 0);
}

static enum store_result store_state(struct sandbox *b, enum state state, const char *reason)
{
	const struct row before = b->row;
	b->row.state = state;
	snprintf(b->row.reason, sizeof(b->row.reason), "%s", reason);
	enum store_result result = store_enter(b->service->store, &b->row);
	if (result == STORE_OK)
		return result;
	if (result == STORE_REFUSED || result == STORE_NONE)
		say("%s: %s can't follow %s", b->row.id, state_name(state), state_name(before.state));
	b->row.state = before.state;
	memcpy(b->row.reason, before.reason, sizeof(before.reason));
	return result;
}

bool sandbox_store(struct sandbox *b, enum state state, const char *reason)
{
	return store_state(b, state, reason) == STORE_OK;
}

/* ---- the link ---- */

static void on_ready(void *arg)
{
	struct sandbox *b = arg;
	if (b->phase != PHASE_LINKED)
		return;
	sandbox_enter(b, PHASE_READY);
	sandbox_settle_policy(b);
	if (b->stop_us)
		set_clock(b, LIMIT_SERVE_STOP_MS + 1);
	if (b->row.state != CREATING)
		return;
	b->row.started_us = (int64_t)clock_wall_us();
	sandbox_store(b, RUNNING, "started"); /* if not, the next tick tries again */
}

/* What it ended with is in its result. */
static void on_ended(void *arg, struct job_end end)
{
	(void)arg, (void)end;
}

/* Another try will tell whether the keeper is gone, or only this connection. */
static void on_closed(void *arg)
{
	struct sandbox *b = arg;
	sandbox_enter(b, PHASE_STARTING);
	set_clock(b, 0);
}

static void ask_to_end(struct sandbox *b)
{
	if (b->link)
		link_send(b->link, FRAME_STOP, slice_str(b->row.ending));
}

static const struct link_events events = {on_ready, on_ended, on_closed};

/* The keeper holds this lock as long as it lives. It is asked for and never taken, so that no keeper finds it taken by us. */
static bool keeper_is_there(const struct sandbox *b)
{
	char path[BACKEND_PATH + 8];
	snprintf(path, sizeof(path), "%s/lock", b->dir);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct flock of = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	bool is_there = fd >= 0 && fcntl(fd, F_OFD_GETLK, &of) == 0 && of.l_type != F_UNLCK;
	if (fd >= 0)
		close(fd);
	return is_there;
}

static bool may_still_come(const struct sandbox *b)
{
	const uint64_t since = clock_mono_us() - b->since_us;
	if (keeper_is_there(b))
		return since < (uint64_t)LIMIT_SERVE_CREATING_MS * 1000;
	if (b->keeper > 0)
		return kill(b->keeper, 0) == 0 && since < (uint64_t)LIMIT_SERVE_CREATING_MS * 1000;
	return since < UNKNOWN_KEEPER_US;
}

static bool has_result(const struct sandbox *b)
{
	char path[BACKEND_PATH + 8];
	snprintf(path, sizeof(path), "%s/result", b->dir);
	return access(path, F_OK) == 0;
}

/* One that does not obey, or whose room does not come, is killed; its room ends with it. */
static void kill_keeper(struct sandbox *b)
{
	say("%s: its keeper does not answer, and is killed", b->row.id);
	if (b->keeper > 1)
		kill(b->keeper, SIGKILL);
}

/* One that lives and does not answer would go on without anybody who knows of it. */
static void give_up(struct sandbox *b)
{
	if (keeper_is_there(b) && b->keeper > 1) {
		kill_keeper(b);
		b->keeper = 0; /* once */
		set_clock(b, LIMIT_SERVE_TICK_MS);
		return;
	}
	sandbox_finish(b);
}

static void try_to_link(struct sandbox *b)
{
	char path[BACKEND_PATH + 8];
	snprintf(path, sizeof(path), "%s/socket", b->dir);
	link_close(&b->link);
	b->link = link_open(b->service->base, path, &events, b);
	if (b->link) {
		b->keeper = link_keeper(b->link);
		sandbox_enter(b, PHASE_LINKED);
		if (b->stop_us)
			ask_to_end(b);
		set_clock(b, LIMIT_SERVE_CREATING_MS);
	} else if (has_result(b) && !keeper_is_there(b)) {
		sandbox_finish(b);
	} else if (!may_still_come(b)) {
		give_up(b);
	} else {
		set_clock(b, LIMIT_SERVE_CONNECT_MS);
	}
}

/* ---- the clock ---- */

static bool stop_is_late(const struct sandbox *b)
{
	return b->stop_us && clock_mono_us() - b->stop_us > (uint64_t)LIMIT_SERVE_STOP_MS * 1000;
}

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox *b = arg;
	(void)fd, (void)what;
	if (b->phase == PHASE_OVER)
		free_later(b);
	else if (b->phase == PHASE_STARTING)
		try_to_link(b);
	else if (b->phase == PHASE_LINKED || stop_is_late(b))
		kill_keeper(b);
	else if (b->phase == PHASE_COUNTING)
		sandbox_finish(b);
}

/* ---- starting ---- */

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

static pid_t start_keeper(struct sandbox *b)
{
	struct words env = {0};
	const int64_t left_us = b->row.deadline_us - (int64_t)clock_wall_us();
	struct backend_start start = {.id = b->row.id,
				      .state = b->service->config.state,
				      .dir = b->dir,
				      .mode = b->service->config.mode,
				      .spec = b->row.spec,
				      .life_s = left_us > 0 ? (uint64_t)left_us / 1000000 + 1 : 1,
				      .env = &env};
	pid_t pid = read_secrets(b, &env) ? b->service->backend->start(&start) : -1;
	words_wipe(&env);
	return pid;
}

static void start(struct sandbox *b)
{
	pid_t pid = start_keeper(b);
	b->keeper = pid > 0 ? pid : 0;
	sandbox_enter(b, PHASE_STARTING);
	if (pid > 0)
		set_clock(b, LIMIT_SERVE_CONNECT_MS);
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
	while (!s->stopping && (next = queue_next(&s->queue, clock_mono_us(), &wait_us))) {
		struct sandbox *b = of_place(next);
		if (sandbox_store(b, CREATING, "placed")) {
			start(b);
			continue;
		}
		queue_remove(&s->queue, next); /* the disk is full: it goes on waiting, as the last */
		queue_add(&s->queue, next);
		wait_us = LIMIT_SERVE_TICK_MS * 1000;
		break;
	}
	if (wait_us)
		pump_in(s, wait_us);
}

/* ---- ends ---- */

static enum store_result end_waiting(struct sandbox *b, const char *reason)
{
	bool is_late = strcmp(reason, "time.lifetime") == 0;
	b->row.ended_us = (int64_t)clock_wall_us();
	enum store_result result = store_state(b, is_late ? TIMED_OUT : KILLED, reason);
	if (result == STORE_OK)
		sandbox_enter(b, PHASE_OVER);
	else
		b->row.ended_us = 0;
	return result;
}

enum store_result sandbox_end(struct sandbox *b, const char *reason)
{
	if (b->phase == PHASE_WAITING)
		return end_waiting(b, reason);
	if (b->stop_us || b->phase == PHASE_COUNTING || b->phase == PHASE_OVER)
		return STORE_OK;
	enum store_result result = store_set_ending(b->service->store, b->row.id, reason);
	if (result != STORE_OK)
		return result;
	snprintf(b->row.ending, sizeof(b->row.ending), "%s", reason);
	b->stop_us = clock_mono_us();
	ask_to_end(b);
	if (b->phase == PHASE_READY)
		set_clock(b, LIMIT_SERVE_STOP_MS + 1);
	return STORE_OK;
}

/* If it can't be stored, the next tick tries again. */

static void tick(struct sandbox *b, int64_t now_us)
{
	if (b->phase == PHASE_READY && b->row.state == CREATING)
		sandbox_store(b, RUNNING, "started");
	if (b->stop_us)
		return;
	if (b->row.deleting)
		sandbox_end(b, "deleted");
	else if (now_us >= b->row.deadline_us)
		sandbox_end(b, "time.lifetime");
}

void sandboxes_tick(struct service *s)
{
	const int64_t now_us = (int64_t)clock_wall_us();
	for (struct sandbox *b = s->sandboxes; b; b = b->next)
		if (b->phase != PHASE_OVER && b->phase != PHASE_COUNTING)
			tick(b, now_us);
}

/* ---- the list ---- */

static struct sandbox *make(struct service *s, struct row *row)
{
	struct sandbox *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->clock = evtimer_new(s->base, on_clock, b);
	if (!b->clock) {
		free(b);
		return NULL;
	}
	b->service = s;
	b->place.label = label_of;
	b->row = *row;
	*row = (struct row){0};
	service_dir(s, b->row.id, b->dir);
	b->next = s->sandboxes;
	s->sandboxes = b;
	return b;
}

struct sandbox *sandbox_add(struct service *s, struct row *row)
{
	struct sandbox *b = make(s, row);
	if (!b)
		return NULL;
	sandbox_enter(b, PHASE_WAITING);
	queue_add(&s->queue, &b->place);
	return b;
}

/* A lock that was never made: its keeper was not started. */
static bool was_started(const struct sandbox *b)
{
	char path[BACKEND_PATH + 8];
	snprintf(path, sizeof(path), "%s/lock", b->dir);
	return access(path, F_OK) == 0;
}

struct sandbox *sandbox_resume(struct service *s, struct row *row)
{
	if (row->state == QUEUED)
		return sandbox_add(s, row);
	struct sandbox *b = make(s, row);
	if (!b)
		return NULL;
	queue_place(&s->queue, &b->place);
	b->stop_us = b->row.ending[0] ? clock_mono_us() : 0;
	if (b->row.state == CREATING && !was_started(b)) {
		start(b);
		return b;
	}
	sandbox_enter(b, PHASE_STARTING);
	set_clock(b, 0);
	return b;
}

struct sandbox *sandbox_find(const struct service *s, const char *id)
{
	for (struct sandbox *b = s->sandboxes; b; b = b->next)
		if (b->phase != PHASE_OVER && strcmp(b->row.id, id) == 0)
			return b;
	return NULL;
}

void sandboxes_free(struct service *s)
{
	while (s->sandboxes) {
		struct sandbox *b = s->sandboxes;
		s->sandboxes = b->next;
		free_now(b);
	}
	if (s->pump)
		event_free(s->pump);
	s->pump = NULL;
}
