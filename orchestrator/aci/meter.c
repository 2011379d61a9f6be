/* The questions, and what the keeper is told. */
#include "orchestrator/aci/meter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/aci/aci.h"

#define SECOND 1000000ull

/* ---- what is paid for ---- */

/* A time that can't be true is none: Azure's clock is not ours, but not far from it. */
static bool is_likely(const struct meter *m, uint64_t us, uint64_t now_us)
{
	const uint64_t earlier =
		m->asked_us > LIMIT_METRICS_SKEW_S * SECOND ? m->asked_us - LIMIT_METRICS_SKEW_S * SECOND : 0;
	return us > 0 && us >= earlier && us <= now_us;
}

uint64_t meter_from(const struct meter *m, uint64_t now_us, bool *is_told)
{
	const uint64_t told[] = {m->times.pulling, m->times.begun};
	for (size_t i = 0; i < 2; i++)
		if (is_likely(m, told[i], now_us)) {
			*is_told = true;
			return told[i];
		}
	*is_told = false;
	return m->asked_us;
}

uint64_t meter_billed_s(uint64_t from_us, uint64_t to_us)
{
	return from_us > 0 && to_us > from_us ? (to_us - from_us + SECOND - 1) / SECOND : 0;
}

static uint64_t marks_of(const struct meter *m, bool is_told, bool is_over)
{
	return RESULT_METERED | (metrics_have(&m->metrics, METRIC_CPU) ? RESULT_HAS_CPU : 0) |
	       (metrics_have(&m->metrics, METRIC_MEMORY) ? RESULT_HAS_MEMORY : 0) |
	       (metrics_have(&m->metrics, METRIC_RECEIVED) && metrics_have(&m->metrics, METRIC_SENT)
			? RESULT_HAS_NETWORK
			: 0) |
	       (is_told ? RESULT_HAS_START : 0) | (is_over ? RESULT_HAS_END : 0);
}

/* Told again and again, since we may be killed: the last one counts. */
void meter_say(struct aci *a, bool is_over)
{
	const struct meter *m = &a->meter;
	char line[400];
	bool is_told;
	const uint64_t now = clock_wall_us();
	if (m->asked_us == 0)
		return;
	const uint64_t billed = meter_billed_s(meter_from(m, now, &is_told), now);
	const uint64_t vcpu_us = billed * m->share.cpu_hundredths * (SECOND / 100);
	const uint64_t gb_us = billed * m->share.memory_thousandths * (SECOND / 1000);
	snprintf(line, sizeof(line),
		 "usage cpu_us=%" PRIu64 " memory_peak=%" PRIu64 " memory_average=%" PRIu64 " received=%" PRIu64
		 " sent=%" PRIu64 " metered_s=%" PRIu64 " billed_s=%" PRIu64 " vcpu_us=%" PRIu64 " gb_us=%" PRIu64
		 " marks=%" PRIu64,
		 metrics_cpu_us(&m->metrics), metrics_peak(&m->metrics, METRIC_MEMORY),
		 metrics_memory_average(&m->metrics), metrics_total(&m->metrics, METRIC_RECEIVED),
		 metrics_total(&m->metrics, METRIC_SENT), m->metrics.of[METRIC_CPU].seconds, billed, vcpu_us, gb_us,
		 marks_of(m, is_told, is_over));
	control_say(&a->control, line);
}

/* ---- what is learnt ---- */

void meter_asked(struct aci *a, const json_t *body)
{
	a->meter.asked_us = clock_wall_us();
	instance_share(body, &a->meter.share);
}

static bool lower(uint64_t *to, uint64_t us)
{
	const bool is_lower = us > 0 && (*to == 0 || us < *to);
	if (is_lower)
		*to = us;
	return is_lower;
}

/* Some of it may be missing in one look and be there in another. */
void meter_see(struct aci *a, const json_t *group)
{
	struct meter *m = &a->meter;
	struct instance_times now;
	struct instance_share share;
	instance_times(group, aci_containers[ACI_AGENT], &now);
	const bool is_earlier = lower(&m->times.pulling, now.pulling), is_begun = lower(&m->times.begun, now.begun);
	if (instance_share(group, &share))
		m->share = share;
	if (m->asked_us == 0) /* it was there before us */
		m->asked_us = now.pulling ? now.pulling : now.begun ? now.begun : clock_wall_us();
	if (m->next_us == 0)
		m->next_us = clock_mono_us() + LIMIT_METRICS_MS * 1000ull;
	else if (!is_earlier && !is_begun)
		return;
	meter_say(a, false);
}

/* It was not made, so that nothing is paid for it; what is tried next is another one. */
void meter_forget(struct aci *a)
{
	meter_drop(a);
	a->meter = (struct meter){.was_refused = a->meter.was_refused};
}

/* ---- metrics ---- */

static void ask(struct aci *a, enum arm_repeat repeat)
{
	struct meter *m = &a->meter;
	char resource[LIMIT_ARM_URL], path[LIMIT_ARM_URL];
	bool is_told;
	const uint64_t now = clock_wall_us();
	m->span = (struct metrics_span){.from_us = meter_from(m, now, &is_told), .to_us = now};
	snprintf(resource, sizeof(resource), "%.*s", (int)strcspn(a->path, "?"), a->path);
	for (enum metrics_part p = METRICS_CONTAINER; p < METRICS_PARTS; p++)
		if (metrics_path(resource, aci_containers[ACI_AGENT], p, m->span, path))
			arm_begin(&a->arm, &m->calls[p], "GET", path, NULL, repeat);
}

/* It will say the same again; a group that is not known there yet, or a service that stumbles, will not. */
static bool is_refusal(long status)
{
	return status == 400 || status == 401 || status == 403;
}

static void take(struct aci *a, struct arm_call *c)
{
	struct meter *m = &a->meter;
	if (arm_is_good(c)) {
		metrics_take(&m->metrics, c->answer, m->span);
		meter_say(a, false);
	} else if (is_refusal(c->status) && !m->was_refused) {
		m->was_refused = true;
		say("what the group uses is not told: %s%s%s", c->code, c->code[0] ? ": " : "", c->message);
	}
	arm_free(&a->arm, c);
}

void meter_look(struct aci *a)
{
	struct meter *m = &a->meter;
	bool is_asked = false;
	for (enum metrics_part p = METRICS_CONTAINER; p < METRICS_PARTS; p++) {
		if (m->calls[p].state != ARM_NONE)
			arm_look(&a->arm, &m->calls[p]);
		if (m->calls[p].state == ARM_DONE)
			take(a, &m->calls[p]);
		is_asked = is_asked || m->calls[p].state != ARM_NONE;
	}
	if (is_asked || a->state != ACI_RUNS || m->was_refused || m->next_us == 0 || clock_mono_us() < m->next_us)
		return;
	m->next_us = clock_mono_us() + LIMIT_METRICS_MS * 1000ull;
	ask(a, ARM_REPEATS);
}

/* Once more beside the removal, which does not wait for it. */
void meter_ask_last(struct aci *a)
{
	meter_drop(a);
	if (a->meter.next_us > 0 && !a->meter.was_refused)
		ask(a, ARM_ONCE);
	meter_say(a, false);
}

void meter_drop(struct aci *a)
{
	for (enum metrics_part p = METRICS_CONTAINER; p < METRICS_PARTS; p++)
		arm_free(&a->arm, &a->meter.calls[p]);
}
