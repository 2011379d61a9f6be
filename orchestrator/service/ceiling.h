/* The ceiling: a policy of the operator's that no sandbox gets more than. */
#ifndef CAGE_SERVICE_CEILING_H
#define CAGE_SERVICE_CEILING_H

#include "core/policy/policy.h"
#include "orchestrator/service/config.h"

/* Is all that the policy lets out let out by the ceiling of the configuration too? False with errors. Without one it is. */
bool ceiling_check(const struct config *c, const struct policy *p, json_t *errors);

#endif
