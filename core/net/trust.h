/* Whom we believe upstream: the system's certificates and those of the policy. */
#ifndef CAGE_NET_TRUST_H
#define CAGE_NET_TRUST_H

#include <openssl/x509.h>
#include <stdio.h>

#include "core/base/slice.h"

struct trust {
	bool system;              /* its certificates, ... */
	const struct slice *pems; /* ... and those in these */
	size_t n_pems;
};

/* Reads the system's certificates, unless they were read. Best before workers are forked, so that they share them. Without any it warns. */
void trust_load_system(void);

/* A store with those; NULL without memory. */
X509_STORE *trust_store_new(const struct trust *trust);

/* Writes the system's bundle to f. A system without one gives nothing, which is no failure. */
bool trust_copy_system(FILE *f);

#endif
