/* Certificate and key of an intake: whether they can be used, as cage-gateway does at its start, and as others want to know before. */
#ifndef CAGE_GATEWAY_PAIR_H
#define CAGE_GATEWAY_PAIR_H

#include <openssl/ssl.h>

enum pair_fault { PAIR_GOOD, PAIR_NO_CERTIFICATE, PAIR_NO_KEY, PAIR_OTHER_KEY };

/* Paths of PEM files that can be read. They are the context's then, if they are good. */
enum pair_fault pair_use(SSL_CTX *ctx, const char *cert, const char *key);

#endif
