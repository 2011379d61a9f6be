/* The key of all leaves, and leaves made from bytes, without what OpenSSL 3.0 spends on them.
 *
 * OpenSSL 3.0 searches all its decoders for each public key that it meets in a certificate (0.25 ms). The key of our
 * leaves is known: so a leaf is parsed where no decoders are, and given its key. */
#ifndef CAGE_PROXY_LEAF_KEY_H
#define CAGE_PROXY_LEAF_KEY_H

#include <openssl/x509.h>

#include "core/base/slice.h"

/* A new P-256 key; NULL on failure. */
EVP_PKEY *leaf_key_new(void);

/* The leaf with those bytes, whose key is leaf_key; NULL when it is not well-formed or has another key. */
X509 *leaf_parse(struct slice der, EVP_PKEY *leaf_key);

#endif
