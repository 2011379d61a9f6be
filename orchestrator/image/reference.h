/* The name of an image, as somebody asks for it: REGISTRY/REPOSITORY@sha256:HEX. Strict: one spelling, no tag, nothing that is
 * filled in, so that what was judged is what is run. */
#ifndef CAGE_IMAGE_REFERENCE_H
#define CAGE_IMAGE_REFERENCE_H

#include "core/base/limits.h"
#include "core/base/slice.h"

/* All of it borrowed from the text that was parsed. */
struct image_reference {
	struct slice registry;   /* "registry.example.com" or "registry.example.com:5000" */
	struct slice repository; /* "org/agent" */
	struct slice name;       /* both, with the slash between them */
	struct slice digest;     /* "sha256:" and 64 hex digits in lower case */
};

enum image_form {
	IMAGE_FORM_GOOD,
	IMAGE_FORM_UNPINNED, /* it could be one, but has no digest */
	IMAGE_FORM_MALFORMED
};

/* *why: a sentence for people, when it is not good. */
enum image_form image_reference_parse(struct slice text, struct image_reference *out, const char **why);

#endif
