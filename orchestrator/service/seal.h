/* Values of secrets at rest: each in a file of its own below the state directory of the service, sealed with AES-256-GCM under a
 * key that lies beside them, so that a copy of the values alone (a backup, a snapshot) tells nothing. The name is sealed in with
 * the value: a file that was given another name does not open. */
#ifndef CAGE_SERVICE_SEAL_H
#define CAGE_SERVICE_SEAL_H

#include <stdint.h>

#include "core/base/limits.h"
#include "core/base/slice.h"
#include "core/base/status.h"

#define SEAL_KEY "secrets.key" /* in the state directory */
#define SEAL_DIR "secrets"     /* the same: NAME.sealed */

enum seal_result { SEAL_FOUND, SEAL_NONE, SEAL_FAILED };

/* To be wiped. */
struct seal_value {
	char bytes[LIMIT_SECRET_VALUE];
	size_t len;
};

/* As the ids of a policy's secrets: 1 to 64 of letters, digits, '.', '_', '-'. */
bool seal_name_is_good(struct slice name);

/* Why a value can't be kept: "is shorter than ..."; NULL: it can. */
const char *seal_value_fault(struct slice value);

/* In the place of what had that name. Whole, or as it was before: false with a message. */
bool seal_write(const char *state_dir, const char *name, struct slice value) MUST_CHECK;

/* SEAL_NONE: there is none of that name, and nothing was said. SEAL_FAILED: it was said why. */
enum seal_result seal_read(const char *state_dir, const char *name, struct seal_value *out) MUST_CHECK;
enum seal_result seal_remove(const char *state_dir, const char *name) MUST_CHECK;

void seal_value_wipe(struct seal_value *v);

/* Calls each of them by name, in their order, with the time of its last change. False with a message. */
bool seal_list(const char *state_dir, void (*each)(void *arg, const char *name, int64_t changed_s),
	       void *arg) MUST_CHECK;

#endif
