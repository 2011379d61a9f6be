/* The image that is there. The storage says which digest it has, but the digest is made of the manifest's bytes here, and what
 * is run is named by the id that those bytes name. */
#include <jansson.h>
#include <stdio.h>

#include "orchestrator/image/admit.h"
#include "orchestrator/image/reference.h"

static bool refuse(struct image_verdict *out, enum image_reason reason, const char *why)
{
	*out = (struct image_verdict){.reason = reason};
	snprintf(out->why, sizeof(out->why), "%s", why);
	return false;
}

static bool has_digest(struct slice manifest, struct slice digest)
{
	char own[IMAGE_DIGEST_ROOM];
	return manifest.len > 0 && manifest.len <= LIMIT_IMAGE_MANIFEST && image_digest_of(manifest, own) &&
	       slice_eq(slice_str(own), digest);
}

static bool names_config(const json_t *manifest, struct slice id)
{
	const json_t *digest = json_object_get(json_object_get(manifest, "config"), "digest");
	struct slice named = slice_of(json_string_value(digest), json_string_length(digest));
	struct slice prefix = SLICE("sha256:");
	if (!slice_starts(named, prefix))
		return false;
	return slice_eq(slice_from(named, prefix.len), slice_starts(id, prefix) ? slice_from(id, prefix.len) : id);
}

/* Podman hands annotations of an image on to the runtime, of which some obey what they say (crun: run.oci.*). Those of the image format
 * describe, and no more. */
static bool has_orders(const json_t *manifest)
{
	const char *name;
	json_t *value;
	json_object_foreach(json_object_get(manifest, "annotations"), name, value)
	{
		if (!slice_starts(slice_str(name), SLICE("org.opencontainers.image.")))
			return true;
	}
	return false;
}

bool image_check_local(struct slice reference, struct slice manifest, struct slice id, struct image_verdict *out)
{
	struct image_reference image;
	const char *why;
	enum image_form form = image_reference_parse(reference, &image, &why);
	if (form != IMAGE_FORM_GOOD)
		return refuse(out, form == IMAGE_FORM_UNPINNED ? IMAGE_UNPINNED : IMAGE_MALFORMED, why);
	if (!has_digest(manifest, image.digest))
		return refuse(out, IMAGE_MISMATCH,
			      "the manifest of the local image has not the digest that was asked for");
	json_t *json = json_loadb(manifest.ptr, manifest.len, JSON_REJECT_DUPLICATES, NULL);
	bool is_index = json_object_get(json, "manifests"), is_named = names_config(json, id),
	     is_wilful = has_orders(json);
	json_decref(json);
	if (is_index)
		return refuse(out, IMAGE_MISMATCH,
			      "the digest is that of a list of several platforms; name the image of one of them");
	if (!is_named)
		return refuse(out, IMAGE_MISMATCH, "the manifest of that digest is not that of the local image");
	if (is_wilful)
		return refuse(out, IMAGE_ANNOTATED,
			      "its manifest has annotations other than org.opencontainers.image.*, which a runtime "
			      "might obey");
	*out = (struct image_verdict){.reason = IMAGE_ADMITTED, .why = "the local image is the one that was asked for"};
	return true;
}
