/* What a peer may do on one HTTP/2 connection that costs us more than it costs the peer (THREATS T24): frames that carry
 * nothing, and requests that are begun and given up. Both are paid from an account that time fills, and that useful
 * traffic fills too, so that busy connections may have as many as they need. */
#ifndef CAGE_PROXY_H2_BUDGET_H
#define CAGE_PROXY_H2_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct h2_budget {
	uint64_t control, resets; /* how many more there may be */
	uint64_t filled_us;       /* up to when time has been counted */
};

/* now_us: loop_now_us(). */
void h2_budget_init(struct h2_budget *b, uint64_t now_us);

/* A frame that carries nothing. false: there were too many. */
bool h2_budget_control(struct h2_budget *b, uint64_t now_us);

/* A request that was given up. false: there were too many. */
bool h2_budget_reset(struct h2_budget *b, uint64_t now_us);

/* A frame with bytes of a body has come or gone. */
void h2_budget_earn_data(struct h2_budget *b);

/* A request was answered. */
void h2_budget_earn_answer(struct h2_budget *b);

#endif
