/* The states of workflows and of their steps, and which may follow which. */
#ifndef CAGE_SERVICE_WORKFLOW_STATE_H
#define CAGE_SERVICE_WORKFLOW_STATE_H

#include <stdbool.h>

enum workflow_state {
	WORKFLOW_WAITING, /* a step: for those that it needs, or for its sandbox to be made */
	WORKFLOW_RUNNING, /* a step: it has a sandbox. A workflow: not all of its steps are at their end */
	WORKFLOW_SUCCEEDED,
	WORKFLOW_FAILED,
	WORKFLOW_TIMED_OUT,
	WORKFLOW_KILLED,
	WORKFLOW_SKIPPED, /* what it needs did not succeed */
	WORKFLOW_CANCELLED,
	WORKFLOW_STATES
};

const char *workflow_state_name(enum workflow_state s);
bool workflow_state_parse(const char *name, enum workflow_state *out);

bool workflow_state_may_follow(enum workflow_state from, enum workflow_state to);

bool workflow_state_is_open(enum workflow_state s);

#endif
