/* From the answer to the end. */
#include "orchestrator/azure/operation.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/clock.h"

/* ---- its end ---- */

static void finish(struct operation *o, enum operation_end end, const char *code, const char *message)
{
	o->state = OPERATION_DONE;
	o->end = end;
	arm_put_text(o->code, sizeof(o->code), code);
	arm_put_text(o->message, sizeof(o->message), message);
}

/* A server that has stumbled may have obeyed. */
static void finish_by_call(struct operation *o)
{
	const long status = o->call.status;
	finish(o, status == 0 || status == 408 || status >= 500 ? OPERATION_UNKNOWN : OPERATION_BAD, o->call.code,
	       o->call.message);
}

/* A status of an operation or a resource. True: it has ended. */
static bool has_ended(struct operation *o, const char *status, const json_t *error)
{
	const char *code = json_string_value(json_object_get(error, "code"));
	const char *message = json_string_value(json_object_get(error, "message"));
	if (!status)
		return false;
	if (strcasecmp(status, "Succeeded") == 0) {
		finish(o, OPERATION_GOOD, "", "");
	} else if (strcasecmp(status, "Failed") == 0 || strcasecmp(status, "Canceled") == 0) {
		finish(o, OPERATION_BAD, code ? code : status,
		       message ? message : "it has failed, and nobody says why");
	}
	return o->state == OPERATION_DONE;
}

/* ---- looking ---- */

static void rest(struct operation *o)
{
	uint64_t ms = 0;
	if (!attempt_asked_ms(o->call.attempt.exchange.retry_after, &ms) || ms == 0)
		ms = LIMIT_ARM_POLL_MS;
	o->at_us = clock_mono_us() + ms * 1000;
	o->state = OPERATION_RESTS;
	if (o->at_us >= o->until_us)
		finish(o, OPERATION_UNKNOWN, "", "it has not come to an end in time");
}

static const char *provisioning(const struct operation *o)
{
	return json_string_value(json_object_get(json_object_get(o->call.answer, "properties"), "provisioningState"));
}

/* Where its first answer says that one has to look. */
static void follow(struct operation *o, const char *path)
{
	const struct exchange *x = &o->call.attempt.exchange;
	const char *where = x->operation[0] ? x->operation : x->location[0] ? x->location : path;
	o->poll = x->operation[0] ? POLL_STATUS : x->location[0] ? POLL_LOCATION : POLL_RESOURCE;
	snprintf(o->where, sizeof(o->where), "%s", where);
	rest(o);
}

/* Does its first answer say all? A resource that is to go has gone when it is not there any more. */
static bool is_at_once(struct operation *o)
{
	const bool leads_on =
		o->call.status == 202 || o->call.attempt.exchange.operation[0] || o->call.attempt.exchange.location[0];
	if (o->call.status != 204 && (leads_on || o->wants_absence))
		return false;
	if (o->call.status == 204 || !provisioning(o))
		finish(o, OPERATION_GOOD, "", "");
	return o->state == OPERATION_DONE || has_ended(o, provisioning(o), NULL);
}

/* What is to go is not there: that is its end. */
static bool is_absent(struct operation *o)
{
	if (!o->wants_absence || o->call.status != 404)
		return false;
	finish(o, OPERATION_GOOD, "", "");
	return true;
}

static void take_first(struct operation *o)
{
	char path[LIMIT_ARM_URL];
	memcpy(path, o->where, sizeof(path));
	if (is_absent(o))
		return;
	if (!arm_is_good(&o->call))
		finish_by_call(o);
	else if (!is_at_once(o))
		follow(o, path);
}

static void take_status(struct operation *o)
{
	const json_t *answer = o->call.answer;
	if (!arm_is_good(&o->call))
		finish_by_call(o);
	else if (!has_ended(o, json_string_value(json_object_get(answer, "status")), json_object_get(answer, "error")))
		rest(o);
}

/* 202: it goes on. What else there is may be the resource, whose state counts. */
static void take_location(struct operation *o)
{
	if (is_absent(o))
		return;
	if (!arm_is_good(&o->call))
		finish_by_call(o);
	else if (o->call.status == 202 || (provisioning(o) && !has_ended(o, provisioning(o), NULL)))
		rest(o);
	else if (o->state != OPERATION_DONE)
		finish(o, OPERATION_GOOD, "", "");
}

/* One that was just made may not be seen everywhere yet. */
static void take_resource(struct operation *o)
{
	const bool is_unseen = o->call.status == 404 && !o->wants_absence && ++o->absent < LIMIT_ARM_ABSENT;
	if (is_absent(o))
		return;
	if (!arm_is_good(&o->call) && !is_unseen)
		finish_by_call(o);
	else if (is_unseen || o->wants_absence || !has_ended(o, provisioning(o), NULL))
		rest(o);
}

static void take_poll(struct operation *o)
{
	switch (o->poll) {
	case POLL_STATUS:
		take_status(o);
		return;
	case POLL_LOCATION:
		take_location(o);
		return;
	case POLL_RESOURCE:
		take_resource(o);
		return;
	}
}

static void poll_again(struct arm *a, struct operation *o)
{
	arm_free(a, &o->call);
	o->state = OPERATION_POLLS;
	arm_begin(a, &o->call, "GET", o->where, NULL, ARM_REPEATS);
}

void operation_look(struct arm *a, struct operation *o)
{
	if (o->state == OPERATION_RESTS && clock_mono_us() >= o->at_us)
		poll_again(a, o);
	if (o->state != OPERATION_ASKS && o->state != OPERATION_POLLS)
		return;
	arm_look(a, &o->call);
	if (o->call.state != ARM_DONE)
		return;
	arm_clean(a, &o->call); /* one that has failed says so in a good answer */
	if (o->state == OPERATION_ASKS)
		take_first(o);
	else
		take_poll(o);
}

/* ---- from outside ---- */

void operation_begin(struct arm *a, struct operation *o, const char *method, const char *path, json_t *body,
		     enum arm_repeat repeat)
{
	*o = (struct operation){.state = OPERATION_ASKS, .wants_absence = strcmp(method, "DELETE") == 0};
	snprintf(o->where, sizeof(o->where), "%s", path);
	o->until_us = clock_mono_us() + LIMIT_ARM_OPERATION_MS * 1000ull;
	arm_begin(a, &o->call, method, path, body, repeat);
}

int operation_pause(const struct operation *o, int most_ms)
{
	return o->state == OPERATION_RESTS ? attempt_ms_until(o->at_us, most_ms) : arm_pause(&o->call, most_ms);
}

void operation_await(struct arm *a, struct operation *o)
{
	while (o->state != OPERATION_DONE) {
		web_wait(&a->web, NULL, 0, operation_pause(o, LIMIT_ARM_LOOK_MS));
		operation_look(a, o);
	}
}

void operation_free(struct arm *a, struct operation *o)
{
	arm_free(a, &o->call);
	*o = (struct operation){.state = OPERATION_NONE};
}
