/* The image that is there. The storage says which digest it has, but the digest is made of the manifest's bytes here, and what
 * is run is named by the id that those bytes name. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

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

/* ---- what it may say ---- */

static const char *const keys_of_manifest[] = {"schemaVersion", "mediaType", "artifactType", "config",
					       "layers",        "subject",   "annotations",  NULL};
static const char *const keys_of_descriptor[] = {"mediaType", "digest",      "size",         "urls", "data",
						 "platform",  "annotations", "artifactType", NULL};

static bool is_one_of(const char *key, const char *const *known)
{
	while (*known && strcmp(*known, key) != 0)
		known++;
	return *known;
}

/* Whoever reads it after us is written in Go, where "Annotations" and "annotations" are the same: what is not spelled as it has to be
 * is refused, whatever it might mean. */
static bool has_good_keys(const json_t *object, const char *const *known)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)object, key, value)
	{
		if (!is_one_of(key, known))
			return false;
	}
	return true;
}

static bool is_understood(const json_t *manifest)
{
	size_t i;
	json_t *layer;
	if (!has_good_keys(manifest, keys_of_manifest) ||
	    !has_good_keys(json_object_get(manifest, "config"), keys_of_descriptor) ||
	    !has_good_keys(json_object_get(manifest, "subject"), keys_of_descriptor))
		return false;
	json_array_foreach(json_object_get(manifest, "layers"), i, layer)
	{
		if (!has_good_keys(layer, keys_of_descriptor))
			return false;
	}
	return true;
}

bool image_annotation_describes(struct slice name)
{
	return slice_starts(name, SLICE("org.opencontainers.image."));
}

/* Podman hands annotations of an image on to the runtime, of which some obey what they say (crun: run.oci.*). */
static bool has_orders(const json_t *manifest)
{
	const char *name;
	json_t *value;
	json_object_foreach(json_object_get(manifest, "annotations"), name, value)
	{
		if (!image_annotation_describes(slice_str(name)))
			return true;
	}
	return false;
}

/* json: NULL if it is none. */
static bool check_words(const json_t *json, struct slice id, struct image_verdict *out)
{
	if (json_object_get(json, "manifests"))
		return refuse(out, IMAGE_MISMATCH,
			      "the digest is that of a list of several platforms; name the image of one of them");
	if (!names_config(json, id))
		return refuse(out, IMAGE_MISMATCH, "the manifest of that digest is not that of the local image");
	if (!is_understood(json))
		return refuse(out, IMAGE_ANNOTATED,
			      "its manifest has a key that is not one of the image format's, or is spelled otherwise");
	if (has_orders(json))
		return refuse(out, IMAGE_ANNOTATED,
			      "its manifest has annotations other than org.opencontainers.image.*, which a runtime "
			      "might obey");
	*out = (struct image_verdict){.reason = IMAGE_ADMITTED, .why = "the local image is the one that was asked for"};
	return true;
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
	const bool ok = check_words(json, id, out);
	json_decref(json);
	return ok;
}
