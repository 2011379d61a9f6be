/* The ceiling: a policy of the operator's that no sandbox gets more than. */
#ifndef CAGE_SERVICE_CEILING_H
#define CAGE_SERVICE_CEILING_H

#include <jansson.h>

#include "core/policy/policy.h"

enum policy_kind {
	POLICY_MADE, /* by us: the loader's check is enough */
	POLICY_GIVEN /* by somebody: cage-proxy has to check it too, which knows the inspectors */
};

struct ceiling;

/* NULL with errors. */
struct ceiling *ceiling_load(const char *path, struct policy_errors *errs);
void ceiling_free(struct ceiling **c);

/* Of its file and includes, in hex. */
const char *ceiling_sha(const struct ceiling *c);

/* What a policy has to be loaded with to be compared. */
extern const struct policy_readers ceiling_readers;

/* Is all that the policy lets out let out by the ceiling too? False with errors. NULL: there is no ceiling, so it is. */
bool ceiling_check(const struct ceiling *c, const struct policy *p, enum policy_kind kind, json_t *errors);

#endif
