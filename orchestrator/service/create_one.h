/* What a create may ask for of a backend whose sandboxes are one command. */
#ifndef CAGE_SERVICE_CREATE_ONE_H
#define CAGE_SERVICE_CREATE_ONE_H

#include "orchestrator/backend.h"

/* full: the request with its profile. What is wrong comes to errors. */
void create_check_one(const struct backend *b, const json_t *full, json_t *errors);

/* Of the spec that was made of it. False with an error: it would have nothing to do. */
bool create_has_command(const struct backend *b, const json_t *spec, json_t *errors);

/* The same of the step of a workflow, which has such a sandbox or another one. */
void create_check_one_step(const struct backend *b, const json_t *step, json_t *errors);

#endif
