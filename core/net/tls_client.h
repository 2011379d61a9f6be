/* TLS towards servers that are verified. */
#ifndef CAGE_NET_TLS_CLIENT_H
#define CAGE_NET_TLS_CLIENT_H

#include <openssl/ssl.h>

#include "core/base/slice.h"
#include "core/net/trust.h"

/* A context of either side with the settings that all have; NULL without memory. */
SSL_CTX *tls_ctx_new(const SSL_METHOD *method);

/* Towards servers, verified against that trust. alpn: what is offered, as the wire has it. NULL without memory. */
SSL_CTX *tls_verifying_ctx_new(const struct trust *trust, struct slice alpn);

/* An SSL that will accept that host only: its name or address in the SAN, never the CN, no partial wildcards. */
SSL *tls_verifying_new(SSL_CTX *ctx, struct slice host, bool is_address);

/* What OpenSSL does not look at, in a chain that it has verified, leaf first: a leaf that is a CA, and a host that a CA of the
 * chain is excluded from though the leaf's wildcard is not. NULL when it is good, else a static text. */
const char *tls_chain_fault(STACK_OF(X509) * chain, struct slice host);

#endif
