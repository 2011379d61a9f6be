/* Fingerprints: two lines of the log about the same secret can be seen to be so, without the secret. */
#ifndef CAGE_AUDIT_FINGERPRINT_H
#define CAGE_AUDIT_FINGERPRINT_H

#include "core/base/slice.h"

/* Of value under key (HMAC-SHA-256, cut to 64 bits). Never 0, which stands for none. */
uint64_t audit_fingerprint(struct slice key, struct slice value);

#endif
