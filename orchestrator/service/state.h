/* The states of a sandbox, and which may follow which. */
#ifndef CAGE_SERVICE_STATE_H
#define CAGE_SERVICE_STATE_H

#include <stdbool.h>
#include <stddef.h>

enum state { QUEUED, CREATING, RUNNING, SUCCEEDED, FAILED, TIMED_OUT, KILLED, DELETED, STATES };

const char *state_name(enum state s);
bool state_parse(const char *name, enum state *out);

bool state_may_follow(enum state from, enum state to);

/* Is there a room, or will there be one? */
bool state_is_open(enum state s);

#endif
