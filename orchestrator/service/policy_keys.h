/* Keys of images that a policy of the service's directory has in files. */
#ifndef CAGE_SERVICE_POLICY_KEYS_H
#define CAGE_SERVICE_POLICY_KEYS_H

#include "core/policy/errors.h"

/* The text of the policy at that path with each such key in the place of its file's name, which is relative to the policy's; free()
 * it. NULL with errors, or without memory. A text that is no YAML is returned as it is: whoever loads it says why. */
char *policy_with_keys(const char *text, const char *path, struct policy_errors *errs);

#endif
