/* May this image be run? Only if an entry of the policy's `images` lets it: the same registry, a repository that fits, a digest,
 * and where the entry has a key, a signature by it. No entries: no image at all. Everything that is not wholly understood is
 * refused, with a reason of a closed list and a sentence for people.
 *
 * Who runs images asks twice: when a sandbox is asked for, and right before its container is made, then with the manifest of the
 * image that is there (image_check_local), and runs it by its id. */
#ifndef CAGE_IMAGE_ADMIT_H
#define CAGE_IMAGE_ADMIT_H

#include "core/policy/policy.h"

/* From what fits least to what fits most: of several entries the nearest says why. Documented in docs/admission.md. */
#define IMAGE_REASONS(X)                        \
	X(MALFORMED, "image.malformed")         \
	X(UNPINNED, "image.unpinned")           \
	X(NOT_ALLOWED, "image.not_allowed")     \
	X(OTHER_DIGEST, "image.other_digest")   \
	X(UNSIGNED, "image.unsigned")           \
	X(UNREADABLE, "image.unreadable")       \
	X(BAD_SIGNATURE, "image.bad_signature") \
	X(SIGNED_OTHER, "image.signed_other")   \
	X(MISMATCH, "image.mismatch")           \
	X(ANNOTATED, "image.annotated")         \
	X(POLICY, "image.policy")               \
	X(ADMITTED, "")

enum image_reason {
#define X(name, text) IMAGE_##name,
	IMAGE_REASONS(X)
#undef X
};

#define IMAGE_WHY 768        /* room of a sentence */
#define IMAGE_DIGEST_ROOM 72 /* "sha256:", 64 hex digits and a NUL */

struct image_verdict {
	enum image_reason reason;
	char why[IMAGE_WHY]; /* printable ASCII */
};

/* "image.unsigned"; "" when it is admitted. */
const char *image_reason_code(enum image_reason reason);

/* signatures: a directory (signatures.h); NULL or "": there are none. True: it is admitted. */
bool image_admit(const struct policy *p, struct slice reference, const char *signatures, struct image_verdict *out);

/* The same with the policy that is in that file; IMAGE_POLICY when it can't be loaded. */
bool image_admit_file(const char *policy, struct slice reference, const char *signatures, struct image_verdict *out);

/* The digest of a manifest: of its bytes as they are. False: no memory for it. */
bool image_digest_of(struct slice manifest, char out[IMAGE_DIGEST_ROOM]);

/* Is the local image of that id (its configuration's digest in hex, with "sha256:" before it or not) the one that the reference
 * names? manifest: the bytes that the local storage keeps of it, of which nothing is believed: they must have the reference's
 * digest, and name the id as their configuration. IMAGE_MISMATCH when not. IMAGE_ANNOTATED: it says more than an image has to. */
bool image_check_local(struct slice reference, struct slice manifest, struct slice id, struct image_verdict *out);

/* Annotations of the image format describe, and no more. */
bool image_annotation_describes(struct slice name);

#endif
