/* rate: no more requests than the rule allows in a time (limits.rate, limits.burst). One token bucket for each sandbox,
 * rule and registrable domain, so that other names of the same owner don't help. */
#include "core/base/clock.h"
#include "inspectors/ledger.h"
#include "inspectors/table.h"

static enum cage_status take(struct inspection *i, uint64_t *wait_us)
{
	const struct subject *s = inspection_subject(i);
	const struct policy_rule *rule = s->rule;
	struct ledger *l = inspection_ledger(i);
	const struct slice parts[] = {rule->id, subject_domain(s)};
	uint64_t key = ledger_key(l, s->sandbox, LEDGER_RATE, parts, sizeof(parts) / sizeof(parts[0]));
	return ledger_take(l, key, rule->limit_rate.count, rule->limit_rate.period_us, rule->limit_burst,
			   clock_mono_us(), wait_us);
}

static enum inspect_result on_head(struct inspection *i)
{
	const struct policy_rule *rule = inspection_subject(i)->rule;
	const struct spot spot = {.place = PLACE_HOST};
	uint64_t wait_us = UINT64_MAX;
	if (!rule || rule->limit_rate.period_us == 0)
		return INSPECT_DONE;
	enum cage_status st = take(i, &wait_us);
	if (st == CAGE_OK)
		return INSPECT_DONE;
	if (wait_us < UINT64_MAX)
		inspection_retry_after(i, wait_us);
	inspection_report(i, st == CAGE_ELIMIT ? REASON_LIMIT_RATE : REASON_LIMIT_COUNTERS, &spot, SLICE_NONE,
			  SLICE_NONE);
	return INSPECT_DONE;
}

const struct inspector rate_inspector = {.name = WORD("rate"), .action = ACTION_BLOCK, .on_head = on_head};
