/* The life of a sandbox from the queue to the end of its keeper. */
#include "orchestrator/service/sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/service/workflow.h"

/* ---- phases ---- */

void sandbox_set_clock(struct sandbox *b, unsigned ms)
{
	const struct timeval time = loop_ms(ms);
	evtimer_add(b->clock, &time);
}

#define TO(phase) (1u << (phase))

/* A link that closes is opened again; one that stood before it was asked for can be started anew. */
bool phase_may_follow(enum phase from, enum phase to)
{
	static const unsigned next[PHASES] = {
		[PHASE_WAITING] = TO(PHASE_WAITING) | TO(PHASE_STARTING) | TO(PHASE_OVER),
		[PHASE_STARTING] = TO(PHASE_LINKED) | TO(PHASE_REAPING) | TO(PHASE_COUNTING),
		[PHASE_LINKED] = TO(PHASE_READY) | TO(PHASE_STARTING) | TO(PHASE_REAPING),
		[PHASE_READY] = TO(PHASE_STARTING) | TO(PHASE_REAPING),
		[PHASE_REAPING] = TO(PHASE_COUNTING) | TO(PHASE_STARTING),
		[PHASE_COUNTING] = TO(PHASE_OVER),
		[PHASE_OVER] = 0,
	};
	return next[from] & TO(to);
}

void sandbox_enter(struct sandbox *b, enum phase next)
{
	if (!phase_may_follow(b->phase, next))
		abort();
	b->phase = next;
	b->since_us = clock_mono_us();
	if (next != PHASE_OVER)
		return;
	queue_remove(&b->service->queue, &b->place);
	workflow_sandbox_ended(b->service, &b->row);
	sandbox_set_clock(b, 0);
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

bool sandbox_has(const struct sandbox *b, const char *name)
{
	char path[BACKEND_PATH + 8];
	snprintf(path, sizeof(path), "%s/%s", b->dir, name);
	return access(path, F_OK) == 0;
}

/* ---- the link ---- */

static void get_ready(struct sandbox *b)
{
	sandbox_enter(b, PHASE_READY);
	sandbox_settle_policy(b);
	if (b->stop_us)
		sandbox_set_clock(b, LIMIT_SERVE_STOP_MS + 1);
}

/* A container group is made only when its keeper has all of it: until its command begins it is still being made. */
static void on_ready(void *arg, bool has_begun)
{
	struct sandbox *b = arg;
	if (b->phase == PHASE_LINKED)
		get_ready(b);
	if (b->phase != PHASE_READY || b->row.state != CREATING || b->row.started_us > 0 || !has_begun)
		return;
	b->row.started_us = (int64_t)clock_wall_us();
	sandbox_store(b, RUNNING, "started"); /* if not, the next tick tries again */
}

/* What it ended with is in its result. */
static void on_ended(void *arg, struct job_end end)
{
	(void)arg, (void)end;
}

/* Another try will tell whether the keeper is gone, or only this connection. One that takes each and closes it is tried with
 * rests. */
static void on_closed(void *arg)
{
	struct sandbox *b = arg;
	const bool was_short = clock_mono_us() - b->since_us < LIMIT_SERVE_CONNECT_MS * 1000ull;
	if (b->phase != PHASE_LINKED && b->phase != PHASE_READY)
		return;
	sandbox_enter(b, PHASE_STARTING);
	sandbox_set_clock(b, was_short ? LIMIT_SERVE_CONNECT_MS : 0);
}

static void ask_to_end(struct sandbox *b)
{
	if (b->link)
		link_send(b->link, FRAME_STOP, slice_str(b->row.ending));
}

/* It was made before it was asked for, and now it has its turn. Where it can't be told, it is tried again. */
static void on_stands(void *arg)
{
	struct sandbox *b = arg;
	if (b->phase != PHASE_LINKED || b->stop_us)
		return;
	if (sandbox_write_begin(b)) {
		link_send(b->link, FRAME_BEGIN, SLICE_NONE);
		return;
	}
	say("%s: what it shall do can't be written", b->row.id);
	sandbox_enter(b, PHASE_STARTING);
	sandbox_set_clock(b, LIMIT_SERVE_TICK_MS);
}

static const struct link_events events = {on_ready, on_ended, on_closed, on_stands};

/* The keeper holds this lock as long as it lives. It is asked for and never taken, so that no keeper finds it taken by us. */
bool sandbox_has_keeper(const struct sandbox *b)
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
	if (sandbox_has_keeper(b) || (b->keeper > 0 && kill(b->keeper, 0) == 0))
		return since < (uint64_t)LIMIT_SERVE_CREATING_MS * 1000;
	return b->keeper == 0 && since < (uint64_t)LIMIT_SERVE_UNKNOWN_MS * 1000;
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
		sandbox_set_clock(b, LIMIT_SERVE_CREATING_MS);
	} else if ((sandbox_has(b, "result") && !sandbox_has_keeper(b)) || !may_still_come(b)) {
		sandbox_finish(b);
	} else {
		sandbox_set_clock(b, LIMIT_SERVE_CONNECT_MS);
	}
}

/* ---- the clock ---- */

static bool stop_is_late(const struct sandbox *b)
{
	return b->stop_us && clock_mono_us() - b->stop_us > (uint64_t)LIMIT_SERVE_STOP_MS * 1000;
}

void sandbox_on_clock(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox *b = arg;
	(void)fd, (void)what;
	switch (b->phase) {
	case PHASE_OVER:
		sandbox_free_later(b);
		return;
	case PHASE_STARTING:
		try_to_link(b);
		return;
	case PHASE_LINKED:
		sandbox_kill(b);
		return;
	case PHASE_READY:
		if (stop_is_late(b))
			sandbox_kill(b);
		return;
	case PHASE_REAPING:
	case PHASE_COUNTING:
		sandbox_finish(b);
		return;
	case PHASE_WAITING:
	case PHASES:
		return;
	}
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

static bool has_ended(const struct sandbox *b)
{
	return b->phase == PHASE_REAPING || b->phase == PHASE_COUNTING || b->phase == PHASE_OVER;
}

enum store_result sandbox_end(struct sandbox *b, const char *reason)
{
	if (b->phase == PHASE_WAITING)
		return end_waiting(b, reason);
	if (b->stop_us || has_ended(b))
		return STORE_OK;
	enum store_result result = store_set_ending(b->service->store, b->row.id, reason);
	if (result != STORE_OK && result != STORE_FULL) /* a full disk keeps nobody from ending, which may make room */
		return result;
	snprintf(b->row.ending, sizeof(b->row.ending), "%s", reason);
	b->stop_us = clock_mono_us();
	ask_to_end(b);
	if (b->phase == PHASE_READY)
		sandbox_set_clock(b, LIMIT_SERVE_STOP_MS + 1);
	return STORE_OK;
}

/* If it can't be stored, the next tick tries again. */
static void tick(struct sandbox *b, int64_t now_us)
{
	if (b->phase == PHASE_READY && b->row.state == CREATING && b->row.started_us > 0)
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
		if (!has_ended(b))
			tick(b, now_us);
}
