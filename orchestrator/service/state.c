/* A table of what may follow. */
#include "orchestrator/service/state.h"

#include <string.h>

#define TO(s) (1u << (s))
#define ENDED (TO(SUCCEEDED) | TO(FAILED) | TO(TIMED_OUT) | TO(KILLED))

static const struct {
	const char *name;
	unsigned next;
} states[STATES] = {
	[QUEUED] = {"queued", TO(CREATING) | TO(KILLED) | TO(TIMED_OUT)},
	[CREATING] = {"creating", TO(RUNNING) | ENDED},
	[RUNNING] = {"running", ENDED},
	[SUCCEEDED] = {"succeeded", TO(DELETED)},
	[FAILED] = {"failed", TO(DELETED)},
	[TIMED_OUT] = {"timed_out", TO(DELETED)},
	[KILLED] = {"killed", TO(DELETED)},
	[DELETED] = {"deleted", 0},
};

const char *state_name(enum state s)
{
	return states[s].name;
}

bool state_parse(const char *name, enum state *out)
{
	for (int i = 0; i < STATES; i++)
		if (strcmp(name, states[i].name) == 0) {
			*out = (enum state)i;
			return true;
		}
	return false;
}

bool state_may_follow(enum state from, enum state to)
{
	return states[from].next & TO(to);
}

bool state_is_open(enum state s)
{
	return s == QUEUED || s == CREATING || s == RUNNING;
}
