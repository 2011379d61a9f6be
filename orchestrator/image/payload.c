/* The payload's JSON. Keys that are there twice are refused: two readers could believe different ones. */
#include "orchestrator/image/payload.h"

#include <jansson.h>

#define TYPE "cosign container image signature"

/* The text of the only member of an object; NULL: it is not that. */
static const json_t *only_text(const json_t *object, const char *name)
{
	const json_t *text = json_object_get(object, name);
	return json_object_size(object) == 1 && json_is_string(text) ? text : NULL;
}

static bool copy(const json_t *text, char out[LIMIT_IMAGE_REFERENCE + 1])
{
	size_t len = json_string_length(text);
	if (!text || len > LIMIT_IMAGE_REFERENCE)
		return false;
	memcpy(out, json_string_value(text), len + 1);
	return true;
}

static const char *read_critical(const json_t *critical, struct image_claim *out)
{
	const json_t *type = json_object_get(critical, "type");
	if (json_object_size(critical) != 3 || !json_is_string(type))
		return "its payload has not what is critical, and only that";
	if (strcmp(json_string_value(type), TYPE) != 0)
		return "its payload is not of the type \"" TYPE "\"";
	if (!copy(only_text(json_object_get(critical, "identity"), "docker-reference"), out->name))
		return "its payload does not say the image's repository";
	if (!copy(only_text(json_object_get(critical, "image"), "docker-manifest-digest"), out->digest))
		return "its payload does not say the image's digest";
	return NULL;
}

bool payload_read(struct slice payload, struct image_claim *out, const char **why)
{
	*why = "its payload is too long";
	if (payload.len > LIMIT_IMAGE_PAYLOAD)
		return false;
	json_t *root = json_loadb(payload.ptr ? payload.ptr : "", payload.len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *critical = json_object_get(root, "critical"), *optional = json_object_get(root, "optional");
	if (!critical || json_object_size(root) != 1 + (size_t)(optional != NULL))
		*why = "its payload is no JSON object with critical and optional";
	else
		*why = read_critical(critical, out);
	json_decref(root);
	return !*why;
}

bool payload_is_about(const struct image_claim *claim, const struct image_reference *image)
{
	return slice_eq(slice_str(claim->name), image->name) && slice_eq(slice_str(claim->digest), image->digest);
}
