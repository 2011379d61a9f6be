/* The policy of a sandbox: made from its `network`, taken from the request, or from the policy directory; written to its
 * directory, and checked there. */
#ifndef CAGE_SERVICE_POLICIES_H
#define CAGE_SERVICE_POLICIES_H

#include "orchestrator/service/child.h"
#include "orchestrator/service/config.h"

enum policy_kind {
	POLICY_MADE, /* by us: the loader's check is enough */
	POLICY_GIVEN /* by somebody: cage-proxy has to check it too, which knows the inspectors */
};

/* The text of a request's policy; free() it. NULL with errors. */
char *policy_text(const struct config *c, const json_t *full, enum policy_kind *kind, json_t *errors);

/* Writes DIR/NAME, whole and on the disk. False with errno. */
bool policy_write(const char *dir, const char *name, const char *text);

/* Loads the file; false with errors, which have pointers where we made it (kind). On success sha has its SHA-256. */
bool policy_check(const struct config *c, const char *path, enum policy_kind kind, char sha[65], json_t *errors);

/* The list of errors in what `cage-proxy --check` said. */
void policy_read_errors(struct slice said, const char *path, json_t *errors);

#endif
