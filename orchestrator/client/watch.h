/* Waiting for a sandbox and following what it writes. */
#ifndef CAGE_CLIENT_WATCH_H
#define CAGE_CLIENT_WATCH_H

#include <jansson.h>

#include "orchestrator/client/client.h"

/* Has it ended? */
bool state_is_last(const char *state);

/* All that is known of a sandbox; NULL: it was said. */
json_t *sandbox_get(struct client *c, const char *id) MUST_CHECK;

/* Waits until it runs or has ended, and shows on a terminal what it waits for. NULL: it was said. */
json_t *wait_until_runs(struct client *c, const char *id) MUST_CHECK;

/* The same until it is deleted. */
bool wait_until_deleted(struct client *c, const char *id) MUST_CHECK;

/* How a command ended, as the service says at the end of its output: an exit code of ours. */
int ending_exit_code(const json_t *ending);

/* Copies its output to stdout and stderr until its end. *ending: how it ended, counted; NULL and false: it was said. stream: as
 * the API has it. */
bool follow_output(struct client *c, const char *id, const char *stream, json_t **ending) MUST_CHECK;

#endif
