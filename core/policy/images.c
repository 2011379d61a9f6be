/* The section `images`: which images containers may be made of, and who has to have signed them. */
#include "core/policy/image_key.h"
#include "core/policy/image_name.h"
#include "core/policy/load.h"
#include "core/policy/pattern.h"

static void keep(struct loader *l, const struct node *value, const char *fault, struct slice *out)
{
	if (fault)
		node_error(l->errs, value, "expected %s, got %s", fault, node_describe(value).text);
	else
		*out = text_keep(l, value->text);
}

static void read_registry(struct loader *l, const struct node *value, void *out)
{
	struct policy_image *image = out;
	if (text_check(l, value, "a registry"))
		keep(l, value, image_registry_fault(value->text), &image->registry);
}

/* It is kept with a slash before it: then it is a pattern like those of paths. */
static void read_repository(struct loader *l, const struct node *value, void *out)
{
	struct policy_image *image = out;
	if (!text_check(l, value, "a repository"))
		return;
	const char *fault = image_repository_fault(value->text, true);
	if (fault) {
		node_error(l->errs, value, "expected %s or org/**, got %s", fault, node_describe(value).text);
		return;
	}
	char *pattern = load_keep(l, value->text.len + 1, 1);
	if (!pattern)
		return;
	pattern[0] = '/';
	memcpy(pattern + 1, value->text.ptr, value->text.len);
	image->repository = slice_of(pattern, value->text.len + 1);
	fault = pattern_fault(image->repository);
	if (fault)
		node_error(l->errs, value, "%s, got %s", fault, node_describe(value).text);
}

static void read_digest(struct loader *l, const struct node *value, void *out)
{
	struct policy_image *image = out;
	if (text_check(l, value, "a digest"))
		keep(l, value, image_digest_fault(value->text), &image->digest);
}

static struct slice key_file(struct loader *l, const struct node *value, const char **fault)
{
	struct file_id id;
	const char *path = file_beside_policy(l, value->text);
	return path ? file_read(l, path, LIMIT_IMAGE_KEY, &id, fault) : SLICE_NONE;
}

bool image_key_read(struct loader *l, const struct node *value, unsigned char der[IMAGE_KEY_DER])
{
	const char *unread = NULL;
	if (!text_check(l, value, "a file with a public key, or the key in PEM"))
		return false;
	bool is_pem = image_key_is_pem(value->text);
	struct slice pem = is_pem ? value->text : key_file(l, value, &unread);
	const char *fault = unread ? NULL : image_key_parse(pem, der);
	if (unread)
		node_error(l->errs, value, "can't use %s: %s", quote(value->text).text, unread);
	else if (fault)
		node_error(l->errs, value, "%s %s", is_pem ? "it" : quote(value->text).text, fault);
	return !unread && !fault;
}

static void read_key(struct loader *l, const struct node *value, void *out)
{
	struct policy_image *image = out;
	unsigned char der[IMAGE_KEY_DER];
	if (image_key_read(l, value, der) && !(image->key = arena_dup(l->arena, slice_of(der, sizeof(der)))).ptr)
		load_no_memory(l);
}

static const struct key image_keys[] = {
	{WORD("registry"), read_registry, KEY_REQUIRED},
	{WORD("repository"), read_repository, KEY_REQUIRED},
	{WORD("digest"), read_digest, KEY_OPTIONAL},
	{WORD("key"), read_key, KEY_OPTIONAL},
};

void images_read(struct loader *l, const struct node *list)
{
	struct policy *p = l->policy;
	if (!list_check(l, list, "images"))
		return;
	if (list->count > LIMIT_IMAGES) {
		node_error(l->errs, list, "expected at most %d images, got %zu", LIMIT_IMAGES, list->count);
		return;
	}
	p->images = load_keep(l, list->count, sizeof(*p->images));
	if (!p->images)
		return;
	for (const struct node *item = list->first; item; item = item->next)
		section_read(l, item, image_keys, sizeof(image_keys) / sizeof(image_keys[0]),
			     &p->images[p->n_images++]);
}
