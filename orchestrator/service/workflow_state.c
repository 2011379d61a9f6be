/* A table of what may follow. */
#include "orchestrator/service/workflow_state.h"

#include <string.h>

#define TO(s) (1u << (s))

static const struct {
	const char *name;
	unsigned next;
} states[WORKFLOW_STATES] = {
	[WORKFLOW_WAITING] = {"waiting", TO(WORKFLOW_RUNNING) | TO(WORKFLOW_FAILED) | TO(WORKFLOW_SKIPPED) |
						 TO(WORKFLOW_CANCELLED)},
	[WORKFLOW_RUNNING] = {"running", TO(WORKFLOW_SUCCEEDED) | TO(WORKFLOW_FAILED) | TO(WORKFLOW_TIMED_OUT) |
						 TO(WORKFLOW_KILLED) | TO(WORKFLOW_CANCELLED)},
	[WORKFLOW_SUCCEEDED] = {"succeeded", 0},
	[WORKFLOW_FAILED] = {"failed", 0},
	[WORKFLOW_TIMED_OUT] = {"timed_out", 0},
	[WORKFLOW_KILLED] = {"killed", 0},
	[WORKFLOW_SKIPPED] = {"skipped", 0},
	[WORKFLOW_CANCELLED] = {"cancelled", 0},
};

const char *workflow_state_name(enum workflow_state s)
{
	return states[s].name;
}

bool workflow_state_parse(const char *name, enum workflow_state *out)
{
	for (int i = 0; i < WORKFLOW_STATES; i++)
		if (strcmp(name, states[i].name) == 0) {
			*out = (enum workflow_state)i;
			return true;
		}
	return false;
}

bool workflow_state_may_follow(enum workflow_state from, enum workflow_state to)
{
	return states[from].next & TO(to);
}

bool workflow_state_is_open(enum workflow_state s)
{
	return s == WORKFLOW_WAITING || s == WORKFLOW_RUNNING;
}
