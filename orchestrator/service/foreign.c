/* Looked at as YAML, before anything that it names is opened. */
#include "orchestrator/service/foreign.h"

#include <stdlib.h>

#include "core/base/arena.h"
#include "core/policy/image_key.h"

static const struct node *get(const struct node *map, const char *key)
{
	return map && map->kind == NODE_MAP ? node_get(map, slice_str(key)) : NULL;
}

static void refuse(struct policy_errors *errs, const struct node *node)
{
	if (node)
		node_key_error(errs, node, "a policy in a request may name no file and no program of this machine");
}

static void check_trust(struct policy_errors *errs, const struct node *trust)
{
	for (const struct node *n = trust && trust->kind == NODE_LIST ? trust->first : NULL; n; n = n->next)
		if (n->kind != NODE_TEXT || !slice_eq(n->text, SLICE("system")))
			node_error(errs, n, "a policy in a request may name no file of this machine");
}

/* A key in the policy itself names no file. */
static void check_images(struct policy_errors *errs, const struct node *images)
{
	for (const struct node *n = images && images->kind == NODE_LIST ? images->first : NULL; n; n = n->next) {
		const struct node *key = get(n, "key");
		if (key && (key->kind != NODE_TEXT || !image_key_is_pem(key->text)))
			refuse(errs, key);
	}
}

static void check_all(const struct node *policy, struct policy_errors *errs)
{
	const struct node *secrets = get(policy, "secrets");
	refuse(errs, get(policy, "include"));
	refuse(errs, get(get(policy, "inspectors"), "external"));
	check_trust(errs, get(get(policy, "upstream"), "trust"));
	check_images(errs, get(policy, "images"));
	for (const struct node *n = secrets && secrets->kind == NODE_LIST ? secrets->first : NULL; n; n = n->next)
		refuse(errs, get(get(n, "from"), "file"));
}

static void check_no_images(const struct node *policy, struct policy_errors *errs)
{
	const struct node *images = get(policy, "images");
	if (images)
		node_key_error(
			errs, images,
			"this service has no ceiling, and without one a policy in a request may let in no image: name "
			"a policy of the service's own, or a profile that has one");
}

static void check_patterns(const struct node *policy, struct policy_errors *errs)
{
	const struct node *extra = get(get(get(policy, "inspectors"), "secrets"), "extra");
	size_t bytes = 0;
	if (!extra || extra->kind != NODE_LIST)
		return;
	for (const struct node *n = extra->first; n; n = n->next) {
		const struct node *pattern = get(n, "pattern");
		bytes += pattern && pattern->kind == NODE_TEXT ? pattern->text.len : 0;
	}
	if (extra->count > LIMIT_GATEWAY_PATTERNS)
		node_error(errs, extra, "expected at most %d patterns in a policy of a request, got %zu",
			   LIMIT_GATEWAY_PATTERNS, extra->count);
	else if (bytes > LIMIT_GATEWAY_PATTERN_BYTES)
		node_error(errs, extra, "expected patterns of at most %zu bytes in a policy of a request, got %zu",
			   (size_t)LIMIT_GATEWAY_PATTERN_BYTES, bytes);
}

static void with_policy(struct slice text, struct policy_errors *errs,
			void (*check)(const struct node *, struct policy_errors *))
{
	struct arena arena;
	struct policy_errors *syntax = calloc(1, sizeof(*syntax));
	arena_init(&arena, LIMIT_POLICY_REGION);
	struct node_room room = {.arena = &arena, .nodes_left = LIMIT_POLICY_NODES};
	const struct node *policy = syntax ? node_read_yaml(text, "policy", &room, syntax) : NULL;
	if (policy)
		check(policy, errs);
	else if (!syntax)
		errs->more++; /* no memory: it is not good */
	arena_free(&arena);
	free(syntax);
}

void foreign_check(struct slice text, struct policy_errors *errs)
{
	with_policy(text, errs, check_all);
}

void foreign_check_patterns(struct slice text, struct policy_errors *errs)
{
	with_policy(text, errs, check_patterns);
}

void foreign_check_images(struct slice text, struct policy_errors *errs)
{
	with_policy(text, errs, check_no_images);
}
