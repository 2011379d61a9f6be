/* The ready policies that come with cage. */
#ifndef CAGE_ORCHESTRATOR_PRESETS_H
#define CAGE_ORCHESTRATOR_PRESETS_H

#include <stdbool.h>
#include <stddef.h>

#include "orchestrator/words.h"

/* The file of the policy NAME ("default", "claude-code"): in $CAGE_POLICIES, in share/cage/policies beside the directory of
 * our executable, or in the source tree that it was built from. False with a message that lists those that there are. */
bool preset_find(const char *name, char *out, size_t room);

/* Adds the directories that the next run looks in for them, whether they are there or not. */
void preset_places(struct words *out);

/* Variables that go with that agent, NAME=VALUE, for what a policy can't say: no telemetry, no updates, where its model is.
 * Ends with NULL. */
const char *const *preset_env(const char *name);

#endif
