/* One group of a bench, from the PUT to its end. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/aci/bench.h"
#include "orchestrator/azure/when.h"

#define LOOKS_FOR_END 5 /* after its line is there */

static void enter(struct bench_run *r, enum bench_state next)
{
	r->state = next;
}

static void know(struct bench_run *r, enum bench_phase phase, uint64_t us)
{
	r->phases[phase] = us;
	r->knows[phase] = true;
}

/* Of Azure's clock, which may be a little behind ours. */
static void know_time(struct bench_run *r, enum bench_phase phase, uint64_t wall_us)
{
	if (wall_us > 0)
		know(r, phase, wall_us > r->meter.asked_us ? wall_us - r->meter.asked_us : 0);
}

/* ---- its end ---- */

static void remove_it(struct bench *b, struct bench_run *r)
{
	struct arm *arm = &b->aci.arm;
	arm_free(arm, &r->call);
	arm_free(arm, &r->log);
	operation_free(arm, &r->operation);
	enter(r, BENCH_REMOVES);
	r->removal_us = clock_mono_us();
	operation_begin(arm, &r->operation, "DELETE", r->path, NULL, ARM_REPEATS);
}

static void fail(struct bench *b, struct bench_run *r, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void fail(struct bench *b, struct bench_run *r, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(r->why, sizeof(r->why), format, args);
	va_end(args);
	remove_it(b, r);
}

/* A PUT that is under way is waited for: what overtakes it would remove nothing. */
void bench_stop(struct bench *b, struct bench_run *r)
{
	if (r->state == BENCH_WATCHES)
		fail(b, r, "it was stopped");
	else if (r->state == BENCH_ASKS)
		snprintf(r->why, sizeof(r->why), "it was stopped");
}

void bench_free(struct bench *b, struct bench_run *r)
{
	arm_free(&b->aci.arm, &r->call);
	arm_free(&b->aci.arm, &r->log);
	operation_free(&b->aci.arm, &r->operation);
	json_decref(r->body);
	r->body = NULL;
}

static void look_at_removal(struct bench *b, struct bench_run *r)
{
	bool is_told;
	const uint64_t now = clock_wall_us();
	operation_look(&b->aci.arm, &r->operation);
	if (r->operation.state != OPERATION_DONE)
		return;
	r->is_left = r->operation.end != OPERATION_GOOD;
	if (r->is_left)
		say("the group cage-%s can't be removed: %s", r->id, r->operation.message);
	else
		know(r, PHASE_GONE, clock_mono_us() - r->removal_us);
	r->billed_s = meter_billed_s(meter_from(&r->meter, now, &is_told), now);
	operation_free(&b->aci.arm, &r->operation);
	enter(r, BENCH_DONE);
}

/* ---- its beginning ---- */

void bench_begin(struct bench *b, struct bench_run *r)
{
	enter(r, BENCH_ASKS);
	r->meter.asked_us = clock_wall_us();
	r->asked_us = clock_mono_us();
	r->until_us = r->asked_us + LIMIT_BENCH_RUN_S * 1000000ull;
	instance_share(r->body, &r->meter.share);
	operation_begin(&b->aci.arm, &r->operation, "PUT", r->path, r->body, ARM_ONCE);
	r->body = NULL;
}

/* From the answer on, the group itself says how far it is. */
static void look_at_answer(struct bench *b, struct bench_run *r)
{
	operation_look(&b->aci.arm, &r->operation);
	const bool is_sent = r->operation.state == OPERATION_ASKS && r->operation.call.state == ARM_SENDS;
	if (r->why[0] && !is_sent)
		remove_it(b, r);
	if (r->state != BENCH_ASKS || r->operation.state == OPERATION_ASKS)
		return;
	if (r->operation.state == OPERATION_DONE && r->operation.end != OPERATION_GOOD) {
		fail(b, r, "%.60s: %.120s", r->operation.code, r->operation.message);
		return;
	}
	know(r, PHASE_ACCEPTED, clock_mono_us() - r->asked_us);
	operation_free(&b->aci.arm, &r->operation);
	enter(r, BENCH_WATCHES);
}

/* ---- while it comes ---- */

static void take_line(struct bench_run *r)
{
	const json_t *content = json_object_get(r->log.answer, "content");
	struct slice text = slice_of(json_string_value(content), json_string_length(content));
	uint64_t at;
	if (r->knows[PHASE_LINE] || !arm_is_good(&r->log) || !json_is_string(content) ||
	    slice_find(text, '\n') == text.len)
		return;
	if (when_parse(slice_cut(&text, ' '), &at))
		know_time(r, PHASE_LINE, at);
	else
		know(r, PHASE_LINE, clock_mono_us() - r->asked_us); /* when it was seen */
}

static void ask_for_line(struct bench *b, struct bench_run *r)
{
	char path[LIMIT_ARM_URL];
	aci_group_path(&b->aci.arm, r->id, "/containers/agent/logs", path);
	strncat(path, "&timestamps=true", sizeof(path) - strlen(path) - 1);
	arm_begin(&b->aci.arm, &r->log, "GET", path, NULL, ARM_REPEATS);
}

/* The line may be why it could not begin: so its end is waited for as well, for a while. */
static void judge(struct bench *b, struct bench_run *r, const json_t *state, bool has_log)
{
	const char *word = json_string_value(json_object_get(state, "state"));
	const bool has_ended = word && strcasecmp(word, "Terminated") == 0;
	const int code = instance_exit_code(state);
	const bool is_due = (r->knows[PHASE_LINE] || (has_ended && has_log)) && ++r->looks > LOOKS_FOR_END;
	if (has_ended && code == INSTANCE_CODE_UNKNOWN)
		fail(b, r, "Azure tells no exit code of its command");
	else if (has_ended && code != 0)
		fail(b, r, "its command has ended with %d", code);
	else if (aci_group_has_failed(r->call.answer))
		fail(b, r, "the group has failed");
	else if (is_due && !r->knows[PHASE_LINE])
		fail(b, r, "its command has printed nothing");
	else if (r->knows[PHASE_LINE] && (has_ended || is_due))
		remove_it(b, r);
}

static void take_group(struct bench *b, struct bench_run *r, bool has_log)
{
	struct instance_times *t = &r->meter.times;
	instance_times(r->call.answer, aci_containers[ACI_AGENT], t);
	know_time(r, PHASE_PULLING, t->pulling);
	know_time(r, PHASE_PULLED, t->pulled);
	know_time(r, PHASE_STARTED, t->started);
	judge(b, r, instance_state(r->call.answer, aci_containers[ACI_AGENT]), has_log);
}

static void take_look(struct bench *b, struct bench_run *r)
{
	const bool has_log = arm_is_good(&r->log), is_good = arm_is_good(&r->call);
	take_line(r);
	if (is_good)
		take_group(b, r, has_log);
	else if (r->call.status != 404 || ++r->absent > LIMIT_ARM_ABSENT)
		fail(b, r, "the group can't be seen: %.150s", r->call.message);
	arm_free(&b->aci.arm, &r->call);
	arm_free(&b->aci.arm, &r->log);
	r->look_us = clock_mono_us() + LIMIT_BENCH_LOOK_MS * 1000ull;
}

/* Is it still under way? One that would be asked for again later is asked for anew with the next look. */
static bool is_asked(const struct arm_call *c)
{
	return c->state == ARM_TOKEN || c->state == ARM_SENDS;
}

/* Both are asked for at the same time; a container that has not begun has no log, which is no failure. */
static void watch(struct bench *b, struct bench_run *r)
{
	struct arm *arm = &b->aci.arm;
	if (r->call.state == ARM_NONE) {
		if (clock_mono_us() < r->look_us)
			return;
		arm_begin(arm, &r->call, "GET", r->path, NULL, ARM_REPEATS);
		if (!r->knows[PHASE_LINE])
			ask_for_line(b, r);
	}
	arm_look(arm, &r->call);
	if (r->log.state != ARM_NONE)
		arm_look(arm, &r->log);
	if (r->call.state == ARM_DONE && !is_asked(&r->log))
		take_look(b, r);
}

void bench_look(struct bench *b, struct bench_run *r)
{
	if ((r->state == BENCH_ASKS || r->state == BENCH_WATCHES) && clock_mono_us() >= r->until_us)
		fail(b, r, "it was not there in time");
	switch (r->state) {
	case BENCH_ASKS:
		look_at_answer(b, r);
		return;
	case BENCH_WATCHES:
		watch(b, r);
		return;
	case BENCH_REMOVES:
		look_at_removal(b, r);
		return;
	case BENCH_WAITS:
	case BENCH_DONE:
		return;
	}
}
