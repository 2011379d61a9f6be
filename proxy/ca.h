/* The certificate authority: made on first start, held by the signer alone, and what it signs. */
#ifndef CAGE_PROXY_CA_H
#define CAGE_PROXY_CA_H

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "core/base/status.h"
#include "core/http/url.h"

struct ca {
	X509 *cert;
	EVP_PKEY *key;
};

/* Loads ca.pem and ca.key from dir, or makes both (key 0600), and writes bundle.pem: the system's certificates plus
 * ours. Says on stderr what is wrong. */
bool ca_open(struct ca *ca, const char *dir);
void ca_close(struct ca *ca);

/* A leaf that depends on the name alone: SAN only, random serial, valid for less than seven days. NULL on failure. */
X509 *ca_mint(const struct ca *ca, const struct host *host, EVP_PKEY *leaf_key);

#define CA_LEAF_MAX_AGE_US (24ull * 3600 * 1000000) /* a kept leaf is minted anew after this */

#endif
