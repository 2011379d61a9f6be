/* Cut at the '@' and at the first slash; what is left has to be a registry, a repository and a digest, each as the policy would
 * spell it. Userinfo, tags and schemes fit into none of them. */
#include "orchestrator/image/reference.h"

#include "core/policy/image_name.h"

/* Without its digest: is it a name with a tag, or without, which others would take? */
static bool is_name(struct slice text)
{
	size_t colon = slice_rfind(text, ':'), slash = slice_rfind(text, '/');
	bool has_tag = colon < text.len && slash < colon;
	struct slice repository = has_tag ? slice_head(text, colon) : text;
	struct slice registry = slice_cut(&repository, '/');
	return !image_registry_fault(registry) && !image_repository_fault(repository, false);
}

/* registry "/" repository */
static const char *name_fault(struct slice name, struct image_reference *out)
{
	struct slice repository = name;
	struct slice registry = slice_cut(&repository, '/');
	out->name = name;
	out->registry = registry;
	out->repository = repository;
	if (image_registry_fault(registry))
		return "the image's registry is not well formed: expected REGISTRY/REPOSITORY@sha256:DIGEST, the "
		       "registry in "
		       "lower case with a dot or a port in it, or localhost";
	if (image_repository_fault(repository, false))
		return "the image's repository is not well formed: expected REGISTRY/REPOSITORY@sha256:DIGEST in lower "
		       "case, without a tag";
	return NULL;
}

enum image_form image_reference_parse(struct slice text, struct image_reference *out, const char **why)
{
	struct slice digest = text;
	*out = (struct image_reference){.name = SLICE_NONE};
	*why = "the image's name is too long";
	if (text.len > LIMIT_IMAGE_REFERENCE)
		return IMAGE_FORM_MALFORMED;
	struct slice name = slice_cut(&digest, '@');
	if (name.len == text.len && is_name(text)) {
		*why = "the image has no digest: what a tag names can change; expected "
		       "REGISTRY/REPOSITORY@sha256:DIGEST";
		return IMAGE_FORM_UNPINNED;
	}
	*why = name_fault(name, out);
	if (!*why && image_digest_fault(digest))
		*why = "the image's digest is not well formed: expected sha256: and 64 hex digits in lower case";
	out->digest = digest;
	return *why ? IMAGE_FORM_MALFORMED : IMAGE_FORM_GOOD;
}
