/* What a workflow asks for: its shape, that its steps can follow each other, and that each sandbox could be made. */
#ifndef CAGE_SERVICE_WORKFLOW_CHECK_H
#define CAGE_SERVICE_WORKFLOW_CHECK_H

#include "orchestrator/service/check.h"
#include "orchestrator/service/config.h"

/* The shape, and how the steps hang together: all that is wrong with it. */
void workflow_check(const json_t *body, json_t *errors);

/* What each sandbox asks for, as a create has it; what is no sandbox by its shape is passed over. */
void workflow_check_sandboxes(const struct config *config, const json_t *body, json_t *errors);

/* Which step has that id; n of them: none. */
size_t workflow_find_step(const json_t *steps, const char *id);

/* How long an artifact may be. */
json_int_t artifact_most(const json_t *artifact);

/* Which artifact of a step has that path; n of them: none. */
size_t artifact_find(const json_t *step, const char *path);

#endif
