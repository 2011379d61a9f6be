/* Many certificates, of which few are ever needed: OpenSSL 3.0 takes a third of a millisecond to parse one, and a system has
 * some hundred and forty. Only their names are read at first; a certificate is parsed when a chain leads to its name. */
#ifndef CAGE_NET_TRUST_INDEX_H
#define CAGE_NET_TRUST_INDEX_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stdio.h>

struct trust_index;

/* Those of a PEM file; blocks that are no certificates are left out. NULL without memory. */
struct trust_index *trust_index_read(FILE *pem);

size_t trust_index_count(const struct trust_index *index);

/* The store trusts them too; the index has to outlive it. */
bool trust_index_offer(const struct trust_index *index, X509_STORE *store);

void trust_index_free(struct trust_index **index);

#endif
