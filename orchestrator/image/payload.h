/* What is signed: cosign's payload of "simple signing", a JSON text that says which image it is about. */
#ifndef CAGE_IMAGE_PAYLOAD_H
#define CAGE_IMAGE_PAYLOAD_H

#include "orchestrator/image/reference.h"

/* What it claims. */
struct image_claim {
	char name[LIMIT_IMAGE_REFERENCE + 1];   /* critical.identity.docker-reference: REGISTRY/REPOSITORY */
	char digest[LIMIT_IMAGE_REFERENCE + 1]; /* critical.image.docker-manifest-digest */
};

/* False with *why: it is no such payload. Members of `critical` that are not known are not skipped. */
bool payload_read(struct slice payload, struct image_claim *out, const char **why);

/* Is it about this image? */
bool payload_is_about(const struct image_claim *claim, const struct image_reference *image);

#endif
