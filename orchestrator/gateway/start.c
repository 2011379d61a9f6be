/* The start: the proxy is asked until it answers, and the intake lets nobody in before. */
#include "core/base/clock.h"
#include "orchestrator/gateway/boxes.h"
#include "orchestrator/gateway/change_private.h"
#include "orchestrator/gateway/intake.h"

static void on_first_answer(struct gateway *g, uint64_t n)
{
	const struct timeval soon = loop_ms(LIMIT_GATEWAY_LOOK_MS);
	if (g->state != GATEWAY_STARTS)
		return;
	if (n == UINT64_MAX)
		evtimer_add(g->clock, &soon);
	else if (intake_serve(g))
		gateway_enter(g, GATEWAY_SERVES);
	else
		gateway_fail(g, "the intake can't be opened");
}

void start_look(struct gateway *g)
{
	const uint64_t now = clock_mono_us();
	if (g->start_until_us == 0)
		g->start_until_us =
			now + LIMIT_GATEWAY_START_MS * 1000ull + boxes_count(g) * LIMIT_GATEWAY_CHECK_S * 1000000ull;
	if (now >= g->start_until_us)
		gateway_fail(g, "cage-proxy does not answer");
	else if (!behind_ask(g, on_first_answer))
		on_first_answer(g, UINT64_MAX);
}
