/* Two accounts with a ceiling each. */
#include "proxy/h2_budget.h"

#include "core/base/limits.h"

#define US_PER_S 1000000u

void h2_budget_init(struct h2_budget *b, uint64_t now_us)
{
	*b = (struct h2_budget){.control = LIMIT_H2_CONTROL, .resets = LIMIT_H2_RESETS, .filled_us = now_us};
}

static void fill(uint64_t *account, uint64_t more, uint64_t ceiling)
{
	*account = more < ceiling - *account ? *account + more : ceiling;
}

/* Whole seconds only, so that no fraction is lost or counted twice. */
static void fill_by_time(struct h2_budget *b, uint64_t now_us)
{
	uint64_t seconds = now_us > b->filled_us ? (now_us - b->filled_us) / US_PER_S : 0;
	if (seconds == 0)
		return;
	b->filled_us += seconds * US_PER_S;
	fill(&b->control, seconds * LIMIT_H2_CONTROL_RATE, LIMIT_H2_CONTROL);
	fill(&b->resets, seconds * LIMIT_H2_RESETS_RATE, LIMIT_H2_RESETS);
}

static bool pay(uint64_t *account)
{
	if (*account == 0)
		return false;
	--*account;
	return true;
}

bool h2_budget_control(struct h2_budget *b, uint64_t now_us)
{
	fill_by_time(b, now_us);
	return pay(&b->control);
}

bool h2_budget_reset(struct h2_budget *b, uint64_t now_us)
{
	fill_by_time(b, now_us);
	return pay(&b->resets);
}

void h2_budget_earn_data(struct h2_budget *b)
{
	fill(&b->control, LIMIT_H2_CONTROL_EARNED, LIMIT_H2_CONTROL);
}

void h2_budget_earn_answer(struct h2_budget *b)
{
	fill(&b->resets, 1, LIMIT_H2_RESETS);
	fill(&b->control, LIMIT_H2_CONTROL_EARNED, LIMIT_H2_CONTROL);
}
