/* What a worker knows of the secrets of one policy: sets of values and placeholders to look for, made anew when the vault or
 * a token changes. The values stay in the vault. */
#ifndef CAGE_PROXY_KEYRING_H
#define CAGE_PROXY_KEYRING_H

#include "core/base/arena.h"
#include "inspectors/known/known.h"
#include "proxy/worker.h"

struct keyring;

/* NULL: no memory. g->policy has secrets; g->chain is told what is known. */
struct keyring *keyring_new(struct generation *g);
void keyring_free(struct keyring **k);

/* Looks whether something has changed since. false: what is known can't be looked for (no memory), so nothing may pass. */
bool keyring_refresh(struct keyring *k);

/* What responses are cleaned of. Borrowed; a reference keeps it. */
struct known_set *keyring_values(const struct keyring *k);

/* What stands for each secret of the policy in that sandbox, by index; one more for values that a policy before it had. In the arena;
 * NULL without memory. */
const struct slice *keyring_placeholders(const struct keyring *k, struct slice sandbox, struct arena *arena);

#endif
