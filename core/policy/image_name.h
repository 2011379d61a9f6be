/* The parts of an image's name, in the policy and in what is asked for: one grammar, which leaves each thing one spelling. */
#ifndef CAGE_POLICY_IMAGE_NAME_H
#define CAGE_POLICY_IMAGE_NAME_H

#include <stdbool.h>

#include "core/base/slice.h"

#define IMAGE_DIGEST_LEN 71 /* "sha256:" and 64 hex digits */

/* Each: NULL when it is well formed, else what was expected, in words that can follow "expected". */

/* A name with a dot, a port or both, or localhost: without them others would fill in a registry of their own. */
const char *image_registry_fault(struct slice registry);

/* "org/agent". With stars: each may stand where a letter may. */
const char *image_repository_fault(struct slice repository, bool may_have_stars);

const char *image_digest_fault(struct slice digest);

#endif
