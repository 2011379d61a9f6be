/* A request of the intake, read from bytes as they come. Heads are read by the strict reader of core/http; all of it is bounded. */
#ifndef CAGE_GATEWAY_REQUEST_H
#define CAGE_GATEWAY_REQUEST_H

#include "core/base/arena.h"
#include "core/http/h1.h"

enum request_state {
	REQUEST_HEAD,   /* it is being read */
	REQUEST_HEADED, /* it is there: whoever reads it says whether to go on */
	REQUEST_BODY,
	REQUEST_WHOLE,
	REQUEST_BAD, /* status and why say what is answered */
	REQUEST_STATES
};

static inline bool request_may_follow(enum request_state from, enum request_state to)
{
	static const unsigned next[REQUEST_STATES] = {
		[REQUEST_HEAD] = 1u << REQUEST_HEADED | 1u << REQUEST_BAD,
		[REQUEST_HEADED] = 1u << REQUEST_BODY,
		[REQUEST_BODY] = 1u << REQUEST_WHOLE | 1u << REQUEST_BAD,
	};
	return next[from] & 1u << to;
}

struct request {
	enum request_state state;
	struct arena arena;
	struct h1_gate gate;
	struct message head; /* from REQUEST_HEADED on */
	struct h1_body framing;
	char *body; /* owned; NULL: none */
	size_t len;
	int status;      /* of HTTP */
	const char *why; /* static */
};

void request_init(struct request *r);
void request_free(struct request *r);

/* Takes what it can of the bytes and says how many that were. With none and in the same state it waits for more. */
size_t request_take(struct request *r, struct slice input);

/* REQUEST_HEADED: its body is wanted. */
void request_go_on(struct request *r);

#endif
