/* What the agent is told when its traffic stops: the same machine-readable answer on every path. */
#ifndef CAGE_PROXY_REFUSAL_H
#define CAGE_PROXY_REFUSAL_H

#include "core/base/reason.h"
#include "core/base/text.h"

/* How it is told. */
enum refusal_form {
	REFUSAL_JSON,
	REFUSAL_GRPC /* over HTTP/2, to a call of gRPC, whose client reads nothing but a status of its own */
};

struct refusal {
	enum refusal_form form;
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

/* How that status is called in gRPC: 8 for a rate, 14 for our lack and an upstream that fails, and else 7. */
struct slice refusal_grpc_status(enum reason r);

/* "blocked_by_cage secret.detected 0123456789abcdef: The request carries ...", as a grpc-message is written. */
void refusal_put_grpc_message(struct text *t, const struct refusal *r);

/* The whole response. close: say that the connection ends; head_only: no body, for HEAD. */
void refusal_write(struct text *t, const struct refusal *r, bool close, bool head_only);

#endif
