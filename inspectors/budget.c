/* budget: no more bytes leave than the rule allows in a time (limits.out). One account for each sandbox and rule. Heads
 * count with about what they take when they are sent, bodies and trailers as they came. */
#include "core/base/clock.h"
#include "inspectors/ledger.h"
#include "inspectors/table.h"

#define FIELD_EXTRA 4 /* colon, blank and line end */

static uint64_t fields_bytes(const struct field *fields, size_t n)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < n; i++)
		bytes += fields[i].name.len + fields[i].value.len + FIELD_EXTRA;
	return bytes;
}

static uint64_t head_bytes(const struct subject *s)
{
	return s->method.len + s->target->path.len + s->target->query.len +
	       fields_bytes(s->head->fields, s->head->n_fields);
}

static enum inspect_result report(struct inspection *i, enum place place, uint64_t wait_us)
{
	const struct spot spot = {.place = place};
	if (wait_us < UINT64_MAX)
		inspection_retry_after(i, wait_us);
	inspection_report(i, REASON_LIMIT_BUDGET, &spot, SLICE_NONE, SLICE_NONE);
	return INSPECT_DONE;
}

static enum inspect_result spend(struct inspection *i, enum place place, uint64_t bytes)
{
	const struct subject *s = inspection_subject(i);
	const struct policy_rate *limit = &s->rule->limit_out;
	struct ledger *l = inspection_ledger(i);
	const struct slice parts[] = {s->sandbox, s->rule->id};
	uint64_t key = ledger_key(l, LEDGER_OUT, parts, sizeof(parts) / sizeof(parts[0]));
	uint64_t wait_us = UINT64_MAX;
	if (ledger_spend(l, key, bytes, limit->count, limit->period_us, clock_mono_us(), &wait_us) == CAGE_OK)
		return INSPECT_PASS;
	return report(i, place, wait_us);
}

/* Without a budget there is nothing to do. A body that is larger than all of it is not begun. */
static enum inspect_result on_head(struct inspection *i)
{
	const struct subject *s = inspection_subject(i);
	if (!s->rule || s->rule->limit_out.period_us == 0)
		return INSPECT_DONE;
	if (s->head->framing == BODY_LENGTH && s->head->content_length > s->rule->limit_out.count)
		return report(i, PLACE_BODY, UINT64_MAX);
	return spend(i, PLACE_HOST, head_bytes(s));
}

static enum inspect_result on_raw(struct inspection *i, struct slice piece)
{
	return spend(i, PLACE_BODY, piece.len);
}

static enum inspect_result on_trailers(struct inspection *i, const struct field *fields, size_t n)
{
	return spend(i, PLACE_TRAILER, fields_bytes(fields, n));
}

const struct inspector budget_inspector = {.name = WORD("budget"),
					   .action = ACTION_BLOCK,
					   .on_head = on_head,
					   .on_raw = on_raw,
					   .on_trailers = on_trailers};
