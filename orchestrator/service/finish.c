/* The end of a sandbox: what its keeper has left is read, its logs are counted in a process of their own, and both are stored
 * with its last state. Until that is on the disk it keeps its place, and after a restart it is done again. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/net/loop.h"
#include "orchestrator/service/alerts.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/measure.h"
#include "orchestrator/service/sandbox.h"

/* ---- the result ---- */

static void no_result(const struct sandbox *b, struct result *out)
{
	const int64_t now = (int64_t)clock_wall_us();
	*out = (struct result){.state = RESULT_FAILED, .reason = "keeper.failed", .ended_us = (uint64_t)now};
	out->began_us = (uint64_t)(b->row.started_us ? b->row.started_us : now);
	snprintf(out->message, sizeof(out->message), "its keeper ended without a result");
}

static enum state state_of(enum result_state s)
{
	switch (s) {
	case RESULT_SUCCEEDED:
		return SUCCEEDED;
	case RESULT_TIMED_OUT:
		return TIMED_OUT;
	case RESULT_KILLED:
		return KILLED;
	case RESULT_FAILED:
	case RESULT_NONE:
		break;
	}
	return FAILED;
}

/* Why we have asked it to end says more than that we did. */
static void use_ending(const struct sandbox *b, enum state *state, const char **reason)
{
	if (!b->row.ending[0] || strcmp(b->result->reason, "asked") != 0)
		return;
	*reason = b->row.ending;
	if (strcmp(b->row.ending, "time.lifetime") == 0)
		*state = TIMED_OUT;
}

static void fill_row(struct sandbox *b)
{
	const struct result *r = b->result;
	b->row.ended_us = r->ended_us ? (int64_t)r->ended_us : (int64_t)clock_wall_us();
	if (r->began_us) /* by the same clock as its end */
		b->row.started_us = (int64_t)r->began_us;
	b->row.has_exit = r->has_exit || r->signal;
	b->row.exit_code = r->signal ? 128 + (int)r->signal : (int)r->exit;
	if (r->message[0] && !b->row.message)
		b->row.message = strdup(r->message);
}

/* ---- counted ---- */

/* Whatever else is said of it: what came last is not in its log, since nothing came any more. */
static void say_log_is_full(struct sandbox *b)
{
	static const char why[] =
		"its decision log has reached its bound (`limits.log` of the service's configuration): "
		"from then on nothing was let out";
	char *both = NULL;
	const char *before = b->row.message ? b->row.message : b->result->message;
	if (asprintf(&both, "%s%s%s", before, before[0] ? "; " : "", why) < 0)
		return;
	free(b->row.message);
	b->row.message = both;
}

static void store_end(struct sandbox *b)
{
	const struct timeval later = loop_ms(LIMIT_SERVE_TICK_MS);
	enum state state = state_of(b->result->state);
	const char *reason = b->result->reason[0] ? b->result->reason : "exit";
	use_ending(b, &state, &reason);
	fill_row(b);
	if (!sandbox_store(b, state, reason)) {
		evtimer_add(b->clock, &later);
		return;
	}
	alerts_look(b->service, &b->row);
	sandbox_enter(b, PHASE_OVER);
}

static void on_counted(void *arg, int status, struct slice said)
{
	struct sandbox *b = arg;
	bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (!ok)
		say("%s: its decision log could not be counted", b->row.id);
	json_decref(b->row.usage);
	b->row.usage = measure_usage(&b->service->config, b->row.spec, b->result, ok ? said : SLICE_NONE);
	if (ok && measure_log_is_full(said))
		say_log_is_full(b);
	store_end(b);
}

static void begin_count(struct sandbox *b)
{
	const struct child_spec spec = {.function = measure_count, .text = b->dir, .done = on_counted, .arg = b};
	if (!child_run(b->service->children, &spec))
		on_counted(b, W_EXITCODE(1, 0), SLICE_NONE);
}

static void count(struct sandbox *b)
{
	sandbox_enter(b, PHASE_COUNTING);
	b->result = calloc(1, sizeof(*b->result));
	if (!b->result) {
		say("%s: no memory", b->row.id);
		abort();
	}
	if (!result_read(b->dir, b->result))
		no_result(b, b->result);
	begin_count(b);
}

/* ---- by force ---- */

/* As long as anything of it may live it keeps its place, and is tried again. */
static void on_reaped(void *arg, int status, struct slice said)
{
	struct sandbox *b = arg;
	(void)said;
	const char *why = child_failure(status);
	if (!why) {
		if (sandbox_can_fall_back(b))
			sandbox_fall_back(b);
		else
			count(b);
		return;
	}
	say("%s: can't be ended: %s", b->row.id, why);
	sandbox_set_clock(b, LIMIT_SERVE_RETRY_S * 1000);
}

static void reap(struct sandbox *b)
{
	const struct backend *backend = backend_of(b->row.spec);
	if (b->phase != PHASE_REAPING)
		sandbox_enter(b, PHASE_REAPING);
	if (!backend)
		count(b);
	else if (!backend_run(b->service->children, backend, BACKEND_REAP, b->dir, on_reaped, b))
		sandbox_set_clock(b, LIMIT_SERVE_TICK_MS);
}

void sandbox_kill(struct sandbox *b)
{
	say("%s: its keeper does not answer, and is killed", b->row.id);
	reap(b);
}

/* One that has left a result has cleared what else there was, or the sweep finds it by its labels. */
void sandbox_finish(struct sandbox *b)
{
	if (b->phase == PHASE_COUNTING) /* it could not be stored */
		store_end(b);
	else if (b->phase != PHASE_REAPING && sandbox_has(b, "result") && !sandbox_can_fall_back(b))
		count(b);
	else
		reap(b);
}
