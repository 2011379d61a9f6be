/* The public key that has to have signed an image: ECDSA on P-256 and nothing else, in the one form that such a key has in DER, so
 * that two keys are the same when their bytes are. */
#ifndef CAGE_POLICY_IMAGE_KEY_H
#define CAGE_POLICY_IMAGE_KEY_H

#include "core/base/slice.h"

#define IMAGE_KEY_DER 91 /* bytes of a SubjectPublicKeyInfo with a named curve and an uncompressed point */

/* Is that PEM, and not the name of a file? */
bool image_key_is_pem(struct slice text);

/* One PEM block with nothing around it but blanks; blanks in it count for line breaks, since YAML folds these. NULL, or what is
 * wrong in words that follow "it". */
const char *image_key_parse(struct slice pem, unsigned char der[IMAGE_KEY_DER]);

#endif
