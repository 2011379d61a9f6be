/* A group that runs: its state, and the logs of its containers, each laid over what was seen of it before. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/aci/aci.h"

/* ---- a look at a log ---- */

static bool take_line(void *arg, struct slice line)
{
	return keeper_output(arg, line);
}

struct kept {
	struct aci *aci;
	enum aci_container from;
};

/* Lines of our own programs only: what else is in there is no decision. */
static bool keep_line(void *arg, struct slice line)
{
	const struct kept *k = arg;
	return !slice_starts(line, SLICE("{\"schema\":")) || log_keep(k->aci, k->from, line);
}

static void ask_for_log(struct aci *a, enum aci_container c)
{
	char path[LIMIT_ARM_URL], below[64];
	snprintf(below, sizeof(below), "/containers/%s/logs", aci_containers[c]);
	aci_group_path(&a->arm, a->options->run.sandbox, below, path);
	strncat(path, "&timestamps=true", sizeof(path) - strlen(path) - 1);
	a->logs[c].is_last = a->state == ACI_TELLS;
	arm_begin(&a->arm, &a->logs[c].call, "GET", path, NULL, ARM_REPEATS);
}

/* What could not be written may be a moment later, and a part of Azure may not know the group; all else was tried often enough. */
static void end_log(struct aci_log *l, enum aci_container c, bool is_taken)
{
	const bool may_come = arm_is_good(&l->call) || l->call.status == 404;
	if (is_taken) {
		l->end = LOG_IS_WHOLE;
	} else if (!may_come || ++l->lasts >= LIMIT_ACI_LAST_LOOKS) {
		l->end = LOG_IS_CUT;
		say("the last lines of the log of %s are lost: %s", aci_containers[c],
		    arm_is_good(&l->call) ? "they can't be taken" : l->call.message);
	}
}

/* Lines that can't be taken are had again by the next look. */
static void take_log(struct aci *a, enum aci_container c)
{
	struct aci_log *l = &a->logs[c];
	struct kept kept = {a, c};
	const json_t *content = json_object_get(l->call.answer, "content");
	const uint64_t gaps = l->window.gaps;
	const struct slice text = slice_of(json_string_value(content), json_string_length(content));
	const bool is_taken = arm_is_good(&l->call) && content &&
			      log_window_take(&l->window, text, l->is_last, c == ACI_AGENT ? take_line : keep_line,
					      c == ACI_AGENT ? (void *)a : (void *)&kept);
	if (l->is_last)
		end_log(l, c, is_taken);
	if (l->window.gaps > gaps)
		say("lines of the log of %s are lost: more was written between two looks than Azure keeps",
		    aci_containers[c]);
	arm_free(&a->arm, &l->call);
	if (c == ACI_AGENT)
		keeper_flush(a);
}

static enum aci_container last_container(const struct aci *a)
{
	return aci_is_split(a->options) ? ACI_PROXY : ACI_CONTAINERS; /* its decisions are the gateway's to tell */
}

/* True: all have come. */
static bool look_at_logs(struct aci *a)
{
	bool are_all = true;
	for (enum aci_container c = ACI_AGENT; c < last_container(a); c++) {
		struct aci_log *l = &a->logs[c];
		arm_look(&a->arm, &l->call);
		if (l->call.state == ARM_DONE)
			take_log(a, c);
		are_all = are_all && l->call.state == ARM_NONE;
	}
	return are_all;
}

static void ask_for_logs(struct aci *a)
{
	for (enum aci_container c = ACI_AGENT; c < last_container(a); c++)
		if (a->logs[c].call.state == ARM_NONE && (c != ACI_AGENT || a->n_held == 0))
			ask_for_log(a, c);
}

/* ---- the state ---- */

static void begin_to_tell(struct aci *a)
{
	a->look_us = 0;
	aci_enter(a, ACI_TELLS);
}

static void take_state(struct aci *a)
{
	const json_t *now = instance_state(a->call.answer, aci_containers[ACI_AGENT]);
	const char *state = json_string_value(json_object_get(now, "state"));
	if (state && strcasecmp(state, "Running") == 0 && !a->has_started) {
		a->has_started = true;
		control_say(&a->control, "began");
	}
	if (!state || strcasecmp(state, "Terminated") != 0) {
		if (aci_group_has_failed(a->call.answer))
			aci_fail(a, "the group has failed before the agent ended");
		return;
	}
	a->exit_code = instance_exit_code(now);
	if (a->exit_code == INSTANCE_CODE_UNKNOWN && a->state == ACI_STOPS)
		a->exit_code = 128 + 15;
	a->has_ended = a->exit_code != INSTANCE_CODE_UNKNOWN;
	begin_to_tell(a);
}

/* A part of Azure may be behind the others: that there is none has to be found again and again. */
static void look_at_state(struct aci *a)
{
	arm_look(&a->arm, &a->call);
	if (a->call.state != ARM_DONE)
		return;
	if (a->call.status == 404 && --a->doubts == 0) {
		arm_free(&a->arm, &a->call);
		aci_fail(a, "the group is gone: somebody else has removed it");
		return;
	}
	a->look_us = clock_mono_us() + LIMIT_ACI_LOOK_MS * 1000ull;
	if (arm_is_good(&a->call)) {
		a->doubts = LIMIT_ARM_ABSENT;
		meter_see(a, a->call.answer);
		take_state(a);
	}
	arm_free(&a->arm, &a->call);
}

static void look_while_it_runs(struct aci *a)
{
	if (a->call.state == ARM_NONE && clock_mono_us() >= a->look_us) {
		arm_begin(&a->arm, &a->call, "GET", a->path, NULL, ARM_REPEATS);
		ask_for_logs(a);
	}
	look_at_logs(a);
	if (a->call.state != ARM_NONE)
		look_at_state(a);
}

/* ---- a stop ---- */

/* Its state and its logs are looked at meanwhile. */
void watch_stop(struct aci *a)
{
	char path[LIMIT_ARM_URL];
	aci_group_path(&a->arm, a->options->run.sandbox, "/stop", path);
	aci_enter(a, ACI_STOPS);
	a->stop_us = clock_mono_us() + LIMIT_ACI_STOP_MS * 1000ull;
	arm_begin(&a->arm, &a->stop, "POST", path, NULL, ARM_REPEATS);
}

static void look_at_stop(struct aci *a)
{
	arm_look(&a->arm, &a->stop);
	if (a->stop.state != ARM_DONE)
		return;
	if (!arm_is_good(&a->stop))
		say("the group can't be asked to stop: %s%s%s", a->stop.code, a->stop.code[0] ? ": " : "",
		    a->stop.message);
	arm_free(&a->arm, &a->stop);
}

void watch_close(struct aci *a)
{
	arm_free(&a->arm, &a->stop);
}

/* Who does not end in time is not waited for: its last words are as far as they have come. */
static void look_while_it_stops(struct aci *a)
{
	look_while_it_runs(a);
	look_at_stop(a);
	if (a->state != ACI_STOPS || clock_mono_us() < a->stop_us)
		return;
	arm_free(&a->arm, &a->call);
	a->exit_code = 128 + 15;
	a->has_ended = true;
	begin_to_tell(a);
}

/* ---- from outside ---- */

void watch_begin(struct aci *a)
{
	aci_enter(a, ACI_RUNS);
	a->doubts = LIMIT_ARM_ABSENT;
	a->look_us = 0;
}

/* Is one of them asked for, or will be? */
static bool ask_for_last(struct aci *a)
{
	bool is_any = false;
	const bool is_due = clock_mono_us() >= a->look_us;
	for (enum aci_container c = ACI_AGENT; c < last_container(a); c++)
		if (a->logs[c].end == LOG_GOES_ON) {
			is_any = true;
			if (is_due)
				ask_for_log(a, c);
		}
	if (is_due)
		a->look_us = clock_mono_us() + LIMIT_ACI_LOOK_MS * 1000ull;
	return is_any;
}

static bool is_one_cut(const struct aci *a)
{
	for (enum aci_container c = ACI_AGENT; c < last_container(a); c++)
		if (a->logs[c].end == LOG_IS_CUT)
			return true;
	return false;
}

/* What was under way was asked for before it had ended: once more, and that is all. */
static void tell(struct aci *a)
{
	if (!look_at_logs(a) || a->n_held > 0 || a->keeping != ACI_LOG_KEPT || ask_for_last(a))
		return;
	if (a->exit_code == INSTANCE_CODE_UNKNOWN) { /* which is no success */
		aci_fail(a, "Azure tells no exit code of the agent: how it has ended is not known");
		return;
	}
	keeper_done(a);
	if (is_one_cut(a))
		a->code = EXIT_FAILED;
	aci_end(a);
}

void watch_look(struct aci *a)
{
	if (a->keeping != ACI_LOG_KEPT)
		aci_fail(a, "without a log there is no traffic: the group is removed");
	else if (a->state == ACI_RUNS)
		look_while_it_runs(a);
	else if (a->state == ACI_STOPS)
		look_while_it_stops(a);
	else
		tell(a);
}
