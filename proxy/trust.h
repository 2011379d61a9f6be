/* Whom we believe upstream: the system's certificates and those of the policy. */
#ifndef CAGE_PROXY_TRUST_H
#define CAGE_PROXY_TRUST_H

#include <openssl/x509.h>
#include <stdio.h>

#include "core/policy/policy.h"

/* Reads the system's certificates once, before the workers are forked, so that they share them. Without any it warns.
 */
void trust_load_system(void);

/* A store with what the policy trusts; NULL without memory. */
X509_STORE *trust_store_new(const struct policy_trust *trust);

/* Writes the system's bundle to f. A system without one gives nothing, which is no failure. */
bool trust_copy_system(FILE *f);

#endif
