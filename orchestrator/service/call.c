/* Calls: the log, the job, the time of each. */
#include "orchestrator/service/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/net/loop.h"
#include "orchestrator/service/create.h"

/* ---- ends ---- */

static void call_free(struct call *c)
{
	struct call **at = &c->service->calls;
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	if (c->job)
		job_forget(c->job);
	if (c->clock)
		event_free(c->clock);
	json_decref(c->errors);
	key_drop(&c->key);
	c->kind->free(c);
}

struct request *call_leave(struct call *c)
{
	struct request *r = c->request;
	if (r)
		r->gone = NULL;
	call_free(c);
	return r;
}

void calls_free(struct service *s)
{
	while (s->calls)
		call_leave(s->calls);
}

static void on_gone(void *work)
{
	struct call *c = work;
	c->request = NULL;
	if (!c->key && c->state != CALL_REFUSING)
		call_free(c);
}

/* What was not made has no answer that is worth keeping: it may be made when it is asked for again. */
void call_answer(struct call *c, int status, json_t *answer)
{
	bool was_made = c->state == CALL_MAKING || c->state == CALL_CANCELLED;
	enum store_result kept = answer && was_made ? idempotency_keep(c->key, status, answer, NULL) : STORE_OK;
	if (c->is_marked && !was_made)
		idempotency_unmark(c->key);
	struct request *r = call_leave(c);
	if (r && kept == STORE_OK) {
		answer_json(r, status, answer);
		return;
	}
	json_decref(answer);
	if (r)
		answer_problem(r, 507, "the call was made, and its answer can't be kept for its Idempotency-Key");
}

void call_fail(struct call *c, const struct problem *p)
{
	json_t *answer = problem_json(p, c->instance);
	if (answer && c->errors && p->status == 422)
		json_object_set(answer, "errors", c->errors);
	call_answer(c, p->status, answer);
}

/* ---- denied ---- */

static void on_denial_logged(void *arg, struct job_end end)
{
	struct call *c = arg;
	struct problem denial = tool_denial(c->tool, c->reason);
	c->job = NULL;
	if (end.how == JOB_EXIT && end.number == 0)
		call_fail(c, &denial);
	else if (end.how == JOB_ERROR && end.number == EPIPE)
		call_fail_errno(c, EPIPE);
	else
		call_fail(c, &(struct problem){503, NULL, "log.unavailable",
					       "the call is denied, and that can't be logged"});
}

static struct link *link_of(const struct call *c)
{
	const struct sandbox *b = sandbox_find(c->service, c->sandbox);
	return b && b->phase == PHASE_READY ? b->link : NULL;
}

static bool log_decision(struct call *c, const char *decision, const char *reason, const struct job_events *events)
{
	char payload[LIMIT_SERVE_DETAIL + 256];
	struct link *link = link_of(c);
	int n = snprintf(payload, sizeof(payload), "%s%c%s%c%s%c%s", decision, 0, reason, 0, c->name, 0, c->detail);
	c->job = link ? link_begin(link, FRAME_TOOL, slice_of(payload, (size_t)n), events, c) : NULL;
	return c->job;
}

static void deny(struct call *c, const char *reason)
{
	static const struct job_events events = {.done = on_denial_logged};
	c->reason = reason;
	c->state = CALL_REFUSING;
	if (!log_decision(c, "block", reason, &events))
		on_denial_logged(c, (struct job_end){JOB_ERROR, EBUSY});
}

void call_fail_errno(struct call *c, int error)
{
	struct problem p = errno_problem(error);
	if (errno_is_escape(error) && c->state != CALL_REFUSING)
		deny(c, "tool.path");
	else
		call_fail(c, &p);
}

/* ---- made ---- */

static void on_data(void *arg, enum frame_kind kind, struct slice bytes)
{
	struct call *c = arg;
	call_touch(c);
	if (c->kind->data)
		c->kind->data(c, kind, bytes);
}

static void on_drained(void *arg)
{
	struct call *c = arg;
	if (c->kind->drained)
		c->kind->drained(c);
}

static const struct problem too_late = {504, NULL, "limit.tool", "the call took too long"};

/* A program that was ended has a result still: what it wrote until then. */
static void on_done(void *arg, struct job_end end)
{
	struct call *c = arg;
	c->job = NULL;
	if (c->state == CALL_CANCELLED && (c->tool != TOOL_SHELL || end.how == JOB_ERROR))
		call_fail(c, &too_late);
	else if (end.how == JOB_ERROR)
		call_fail_errno(c, end.number);
	else
		c->kind->succeed(c, end);
}

bool call_job(struct call *c, struct link *link, enum frame_kind kind, struct slice payload)
{
	static const struct job_events events = {.data = on_data, .done = on_done, .drained = on_drained};
	c->job = link_begin(link, kind, payload, &events, c);
	if (!c->job) {
		call_fail_errno(c, EBUSY);
		return false;
	}
	c->state = CALL_MAKING;
	call_touch(c);
	return true;
}

/* What has a key is stored as begun before it is. */
static void begin(struct call *c, struct link *link)
{
	enum store_result result = idempotency_mark(c->key, c->instance);
	c->is_marked = result == STORE_OK;
	if (c->is_marked)
		c->kind->make(c, link);
	else if (result == STORE_FULL)
		call_fail(c, &(struct problem){507, NULL, "disk.full",
					       "the disk of the service is full, so that the call is not made"});
	else
		call_fail(c, &(struct problem){503, NULL, NULL,
					       "the Idempotency-Key can't be stored, so that the call is not made"});
}

static void on_allow_logged(void *arg, struct job_end end)
{
	struct call *c = arg;
	struct link *link = link_of(c);
	bool is_logged = end.how == JOB_EXIT && end.number == 0;
	c->job = NULL;
	if (is_logged && link)
		begin(c, link);
	else if (is_logged || (end.how == JOB_ERROR && end.number == EPIPE))
		call_fail_errno(c, EPIPE);
	else
		call_fail(c, &(struct problem){503, NULL, "log.unavailable",
					       "the call can't be logged, so it is not made"});
}

/* ---- time ---- */

static void on_clock(evutil_socket_t fd, short what, void *arg)
{
	struct call *c = arg;
	const struct timeval last = loop_ms(LIMIT_SERVE_TOOL_END_MS);
	(void)fd, (void)what;
	if (c->state != CALL_MAKING) {
		call_fail(c, &too_late);
		return;
	}
	c->state = CALL_CANCELLED;
	job_send(c->job, FRAME_CANCEL, SLICE_NONE);
	evtimer_add(c->clock, &last);
}

void call_touch(struct call *c)
{
	uint64_t now = clock_mono_us(), left_ms = c->until_us > now ? (c->until_us - now) / 1000 : 0;
	if (c->state == CALL_CANCELLED)
		return;
	if (c->stall_ms && c->stall_ms < left_ms)
		left_ms = c->stall_ms;
	const struct timeval time = loop_ms((unsigned)left_ms);
	evtimer_add(c->clock, &time);
}

/* ---- the beginning ---- */

bool call_init(struct call *c, const struct call_kind *kind, struct request *r, enum tool t)
{
	struct event *clock = evtimer_new(r->service->base, on_clock, c);
	if (!clock)
		return false;
	*c = (struct call){.kind = kind, .service = r->service, .request = r, .key = r->key, .tool = t, .clock = clock};
	snprintf(c->sandbox, sizeof(c->sandbox), "%s", r->sandbox);
	snprintf(c->instance, sizeof(c->instance), "%s", r->id);
	snprintf(c->name, sizeof(c->name), "%s", t == TOOL_NONE ? "unknown" : tool_names[t]);
	c->next = r->service->calls;
	r->service->calls = c;
	r->key = NULL;
	r->gone = on_gone;
	r->work = c;
	return true;
}

void call_decide(struct call *c, const char *reason, unsigned time_ms)
{
	static const struct job_events events = {.done = on_allow_logged};
	c->until_us = clock_mono_us() + (uint64_t)time_ms * 1000;
	call_touch(c);
	if (reason)
		deny(c, reason);
	else if (!log_decision(c, "allow", "", &events))
		call_fail_errno(c, EBUSY);
}
