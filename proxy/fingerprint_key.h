/* The key under which findings are fingerprinted: made on first start and kept, so that the same secret has the same
 * fingerprint in every log of this installation. */
#ifndef CAGE_PROXY_FINGERPRINT_KEY_H
#define CAGE_PROXY_FINGERPRINT_KEY_H

#include <stdbool.h>

#include "inspectors/chain.h"

/* Reads DIR/fingerprint.key, or makes it (mode 0600). Says on stderr what is wrong. */
bool fingerprint_key_open(const char *dir, unsigned char key[CHAIN_KEY]);

#endif
