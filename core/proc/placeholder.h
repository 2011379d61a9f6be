/* What stands for a secret inside a sandbox: as the policy writes it, or "cage-ph-" and 32 hex digits that depend on a key
 * of this installation (placeholder.key in the CA directory), the sandbox and the secret, so that they are the same after
 * a restart, and nobody can guess those of another sandbox. */
#ifndef CAGE_PROC_PLACEHOLDER_H
#define CAGE_PROC_PLACEHOLDER_H

#include "core/base/text.h"
#include "core/policy/policy.h"

#define PLACEHOLDER_KEY 32
#define PLACEHOLDER_RANDOM (sizeof(PLACEHOLDER_PREFIX) - 1 + 32) /* bytes of a random one */

/* Reads or makes the key (key_file_get); false with a message on stderr. */
bool placeholder_key_load(const char *keys, const char *ca_dir, unsigned char key[PLACEHOLDER_KEY]);

/* room is used for a random one. ptr NULL: it could not be computed. */
struct slice placeholder_of(const struct policy_secret *s, struct slice sandbox,
			    const unsigned char key[PLACEHOLDER_KEY], char room[PLACEHOLDER_RANDOM]);

/* The name of the variable in which a sandbox expects it: the policy's own, or for a file one named like the secret:
 * "gh-token" is GH_TOKEN. */
void placeholder_variable(const struct policy_secret *s, struct text *t);

#endif
