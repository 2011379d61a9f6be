/* What happens while a sandbox lasts. */
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/aci/aci.h"

/* ---- states ---- */

static void drop_calls(struct aci *a)
{
	arm_free(&a->arm, &a->call);
	operation_free(&a->arm, &a->operation);
	for (enum aci_container c = ACI_AGENT; c < ACI_CONTAINERS; c++)
		arm_free(&a->arm, &a->logs[c].call);
}

void aci_enter(struct aci *a, enum aci_state next)
{
	if (!aci_may_follow(a->state, next))
		abort();
	a->state = next;
}

/* Nothing was asked for yet, the gateway alone was told, or there may be a group. */
static enum aci_state way_out(enum aci_state from)
{
	return from == ACI_WAITS ? ACI_ENDED : from == ACI_REGISTERS ? ACI_LEAVES : ACI_DELETES;
}

void aci_end(struct aci *a)
{
	if (a->state >= ACI_DELETES)
		return;
	drop_calls(a);
	if (aci_is_split(a->options))
		split_hold(a);
	aci_enter(a, way_out(a->state));
	if (a->state == ACI_LEAVES) {
		split_leave(a);
	} else if (a->state == ACI_DELETES) {
		operation_begin(&a->arm, &a->operation, "DELETE", a->path, NULL, ARM_REPEATS);
		meter_ask_last(a);
	}
}

void aci_leave(struct aci *a)
{
	drop_calls(a);
	aci_enter(a, aci_is_split(a->options) ? ACI_LEAVES : ACI_ENDED);
	if (a->state == ACI_LEAVES)
		split_leave(a);
}

void aci_fail(struct aci *a, const char *format, ...)
{
	char text[600];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say("%s", text);
	a->code = EXIT_FAILED;
	aci_end(a);
}

static void end(struct aci *a)
{
	if (a->state < ACI_DELETES) {
		a->code = a->has_ended ? 0 : EXIT_FAILED;
		aci_end(a);
	}
}

static void look_at_removal(struct aci *a)
{
	operation_look(&a->arm, &a->operation);
	if (a->operation.state != OPERATION_DONE)
		return;
	if (a->operation.end != OPERATION_GOOD) {
		say("the group cage-%s can't be removed: %s", a->options->run.sandbox, a->operation.message);
		a->code = EXIT_FAILED;
	}
	meter_say(a, a->operation.end == OPERATION_GOOD);
	aci_leave(a);
}

/* ---- the loop ---- */

static void take_control(struct aci *a)
{
	switch (control_take(&a->control)) {
	case CONTROL_NOTHING:
		return;
	case CONTROL_RELOAD:
		control_begin_reload(&a->control,
				     0); /* a policy is part of the group, which would have to be made anew */
		return;
	case CONTROL_END:
	case CONTROL_GONE:
		end(a);
		return;
	}
}

static void take_signals(struct aci *a)
{
	struct signalfd_siginfo info;
	while (read(a->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		end(a);
}

static void look(struct aci *a)
{
	switch (a->state) {
	case ACI_LOOKS:
	case ACI_QUOTA:
	case ACI_CREATES:
	case ACI_CLEARS:
		create_look(a);
		return;
	case ACI_RUNS:
	case ACI_STOPS:
	case ACI_TELLS:
		watch_look(a);
		return;
	case ACI_DELETES:
		look_at_removal(a);
		return;
	case ACI_WAITS:
	case ACI_REGISTERS:
	case ACI_LEAVES:
	case ACI_ENDED:
	case ACI_STATES:
		return;
	}
}

void aci_loop(struct aci *a)
{
	enum { AT_KEEPER, AT_CONTROL, AT_SIGNALS, AT_END };
	while (a->state != ACI_ENDED) {
		const bool hears = a->state < ACI_DELETES;
		struct pollfd at[AT_END] = {[AT_KEEPER] = {.fd = hears ? 0 : -1, .events = POLLIN},
					    [AT_CONTROL] = {.fd = hears ? a->control.fd : -1, .events = POLLIN},
					    [AT_SIGNALS] = {.fd = a->signals, .events = POLLIN}};
		web_wait(&a->arm.web, at, AT_END, LIMIT_ACI_PASS_MS);
		if (at[AT_SIGNALS].revents)
			take_signals(a);
		if (at[AT_CONTROL].revents && a->state < ACI_DELETES)
			take_control(a);
		if (at[AT_KEEPER].revents && a->state < ACI_DELETES && !keeper_take(a))
			end(a);
		meter_look(a);
		if (aci_is_split(a->options) && a->state != ACI_WAITS)
			split_look(a);
		look(a);
	}
	meter_drop(a);
}
