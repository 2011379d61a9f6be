/* Where the signatures of images are: a directory, which may be filled without any registry. Either it has
 *
 *   sha256-HEX.json, sha256-HEX.sig    the payload, and the signature over it in base64
 *
 * for the image of the digest sha256:HEX; or it is an OCI layout as cosign fills one, whose index has a manifest by the name
 * sha256-HEX.sig: each layer of it is a payload, with the signature as an annotation. Nothing in it is believed but what a key of
 * the policy has signed. */
#ifndef CAGE_IMAGE_SIGNATURES_H
#define CAGE_IMAGE_SIGNATURES_H

#include "orchestrator/image/reference.h"

/* Takes one of them; true: that was enough. */
typedef bool signature_taker(void *arg, struct slice payload, struct slice signature);

/* Gives all that the directory has of that digest, until one was enough. NULL, or what can't be read, in words that follow
 * "signatures: ". None at all is no fault. */
const char *signatures_each(const char *dir, struct slice digest, signature_taker *take, void *arg);

/* Is it a signature (ECDSA, SHA-256) over the payload by that key, which is one of image_key.h? */
bool signature_is_good(struct slice key, struct slice payload, struct slice signature);

#endif
