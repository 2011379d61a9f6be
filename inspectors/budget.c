/* budget: no more bytes leave than the rule allows in a time (limits.out). One account for each sandbox and rule. Heads
 * count with about what they take when they are sent, bodies and trailers as they came. */
#include "core/base/clock.h"
#include "inspectors/ledger.h"
#include "inspectors/table.h"

struct budget_state {
	uint64_t spent; /* bytes of this request */
};

static uint64_t head_bytes(const struct subject *s)
{
	return s->method.len + s->target->path.len + s->target->query.len +
	       fields_wire_size(s->head->fields, s->head->n_fields);
}

static enum inspect_result report(struct inspection *i, enum reason reason, enum place place)
{
	const struct spot spot = {.place = place};
	inspection_report(i, reason, &spot, SLICE_NONE, SLICE_NONE);
	return INSPECT_DONE;
}

/* Would it be more than the whole budget, which fits at no time? */
static bool never_fits(struct inspection *i, uint64_t bytes)
{
	const struct budget_state *st = inspection_state(i);
	uint64_t limit = inspection_subject(i)->rule->limit_out.count;
	return st->spent > limit || bytes > limit - st->spent;
}

static enum inspect_result report_never(struct inspection *i, enum place place)
{
	inspection_explain(i, "it has more bytes than all of limits.out");
	return report(i, place == PLACE_HOST ? REASON_LIMIT_BUDGET : REASON_BODY_TOO_LARGE, place);
}

static enum inspect_result spend(struct inspection *i, enum place place, uint64_t bytes)
{
	const struct subject *s = inspection_subject(i);
	const struct policy_rate *limit = &s->rule->limit_out;
	struct budget_state *st = inspection_state(i);
	struct ledger *l = inspection_ledger(i);
	uint64_t key = ledger_key(l, s->sandbox, LEDGER_OUT, &s->rule->id, 1);
	uint64_t wait_us = UINT64_MAX;
	if (never_fits(i, bytes))
		return report_never(i, place);
	enum cage_status status =
		ledger_spend(l, key, bytes, limit->count, limit->period_us, clock_mono_us(), &wait_us);
	st->spent += bytes;
	if (status == CAGE_OK)
		return INSPECT_PASS;
	if (wait_us < UINT64_MAX)
		inspection_retry_after(i, wait_us);
	return report(i, status == CAGE_ELIMIT ? REASON_LIMIT_BUDGET : REASON_LIMIT_COUNTERS, place);
}

static bool has_budget(const struct subject *s)
{
	return s->rule && s->rule->limit_out.period_us != 0;
}

/* Without a budget there is nothing to do. A body that never fits is not begun. */
static enum inspect_result on_head(struct inspection *i)
{
	const struct subject *s = inspection_subject(i);
	if (!has_budget(s))
		return INSPECT_DONE;
	uint64_t head = head_bytes(s), limit = s->rule->limit_out.count;
	if (s->head->framing == BODY_LENGTH && head <= limit && s->head->content_length > limit - head)
		return report_never(i, PLACE_BODY);
	return spend(i, PLACE_HOST, head);
}

static enum inspect_result on_message(struct inspection *i)
{
	return has_budget(inspection_subject(i)) ? INSPECT_PASS : INSPECT_DONE;
}

static enum inspect_result on_raw(struct inspection *i, struct slice piece)
{
	return spend(i, PLACE_BODY, piece.len);
}

static enum inspect_result on_trailers(struct inspection *i, const struct field *fields, size_t n)
{
	return spend(i, PLACE_TRAILER, fields_wire_size(fields, n));
}

const struct inspector budget_inspector = {.name = WORD("budget"),
					   .action = ACTION_BLOCK,
					   .state_size = sizeof(struct budget_state),
					   .on_head = on_head,
					   .on_message = on_message,
					   .on_raw = on_raw,
					   .on_trailers = on_trailers};
