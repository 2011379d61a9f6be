/* What the agent is told when its traffic stops: the same machine-readable answer on every path. */
#ifndef CAGE_PROXY_REFUSAL_H
#define CAGE_PROXY_REFUSAL_H

#include "core/base/reason.h"
#include "core/base/text.h"

struct refusal {
	enum reason reason;
	struct slice host, rule; /* empty: left out */
	const char *detail;      /* a sentence in place of the reason's own, with its full stop, or a clause to go with
				  * it; NULL: none */
	uint64_t txn;
	uint64_t retry_after_s; /* 0: not said */
};

#define REFUSAL_ROOM 4096

/* The status that goes with a reason: 403, 400, 407, 429, 502, 503 or 504. */
int refusal_status(enum reason r);

/* An upstream that fails is not a refusal: the agent and the log are told so. */
bool refusal_is_upstream_failure(enum reason r);

/* The whole response. close: say that the connection ends; head_only: no body, for HEAD. */
void refusal_write(struct text *t, const struct refusal *r, bool close, bool head_only);

#endif
