/* Walking a map of the policy with a table of its keys. Nothing is skipped in silence: what the table does not know is
 * an error, with the key that was probably meant. */
#include "core/policy/load.h"

#include "core/base/text.h"

#define NEAR_WORD 32 /* longer words are not compared */
#define NEAR_EDITS 2 /* more edits make another word */

/* Edits (one byte put in, left out or changed) that make b of a; at most NEAR_WORD bytes each. */
static size_t edit_distance(struct slice a, struct slice b)
{
	size_t row[NEAR_WORD + 1];
	for (size_t j = 0; j <= b.len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a.len; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= b.len; j++) {
			size_t best = diagonal + (a.ptr[i - 1] != b.ptr[j - 1]);
			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[b.len];
}

void near_try(struct near *n, struct slice word)
{
	if (n->text.len > NEAR_WORD || word.len > NEAR_WORD)
		return;
	size_t distance = edit_distance(n->text, word);
	size_t least = n->word.len > 0 ? n->distance : NEAR_EDITS + 1;
	if (distance >= least || distance >= word.len)
		return;
	n->word = word;
	n->distance = distance;
}

struct quoted near_hint(const struct near *n)
{
	struct quoted hint = {""};
	struct text t = text_in(hint.text, sizeof(hint.text) - 1);
	if (n->word.len > 0) {
		text_put(&t, SLICE("; did you mean \""));
		text_put(&t, n->word);
		text_put(&t, SLICE("\"?"));
	}
	return hint;
}

static const struct key *key_find(const struct key *keys, size_t n, struct slice name)
{
	for (size_t i = 0; i < n; i++)
		if (slice_eq(keys[i].name, name))
			return &keys[i];
	return NULL;
}

static void unknown_key(struct loader *l, const struct node *value, const struct key *keys, size_t n)
{
	struct near near = {.text = value->key};
	for (size_t i = 0; i < n; i++)
		near_try(&near, keys[i].name);
	node_key_error(l->errs, value, "unknown key%s", near_hint(&near).text);
}

static void key_read(struct loader *l, const struct node *value, const struct key *keys, size_t n, void *out)
{
	const struct key *key = key_find(keys, n, value->key);
	if (!key)
		unknown_key(l, value, keys, n);
	else if (!key->read)
		node_key_error(l->errs, value, "%s is not supported by this build yet", quote(key->name).text);
	else
		key->read(l, value, out);
}

bool section_read(struct loader *l, const struct node *map, const struct key *keys, size_t n_keys, void *out)
{
	if (map->kind != NODE_MAP) {
		node_error(l->errs, map, "expected a mapping, got %s", node_describe(map).text);
		return false;
	}
	for (const struct node *value = map->first; value; value = value->next)
		key_read(l, value, keys, n_keys, out);
	for (size_t i = 0; i < n_keys; i++)
		if (keys[i].need == KEY_REQUIRED && !node_get(map, keys[i].name))
			node_error(l->errs, map, "missing key %s", quote(keys[i].name).text);
	return true;
}

bool list_check(struct loader *l, const struct node *node, const char *what)
{
	if (node->kind == NODE_LIST && node->count > 0)
		return true;
	if (node->kind == NODE_LIST)
		node_error(l->errs, node, "expected a list of %s, got an empty list", what);
	else
		node_error(l->errs, node, "expected a list of %s, got %s", what, node_describe(node).text);
	return false;
}

bool text_check(struct loader *l, const struct node *node, const char *what)
{
	if (node->kind == NODE_TEXT && node->text.len > 0)
		return true;
	node_error(l->errs, node, "expected %s, got %s", what, node_describe(node).text);
	return false;
}

bool choice_read(struct loader *l, const struct node *node, const struct slice *words, size_t n, size_t *out)
{
	char buf[64];
	struct text expected = text_in(buf, sizeof(buf));
	struct near near = {.text = node->text};
	for (size_t i = 0; i < n; i++) {
		if (node->kind == NODE_TEXT && slice_eq(node->text, words[i])) {
			*out = i;
			return true;
		}
		near_try(&near, words[i]);
		if (i > 0)
			text_put(&expected, i + 1 == n ? SLICE(" or ") : SLICE(", "));
		text_put(&expected, words[i]);
	}
	node_error(l->errs, node, "expected %.*s, got %s%s", (int)expected.len, buf, node_describe(node).text,
		   near_hint(&near).text);
	return false;
}

bool mode_read(struct loader *l, const struct node *node, enum policy_mode *out)
{
	static const struct slice words[] = {
		[POLICY_ENFORCE] = WORD("enforce"),
		[POLICY_OBSERVE] = WORD("observe"),
	};
	size_t i;
	if (!choice_read(l, node, words, 2, &i))
		return false;
	*out = (enum policy_mode)i;
	return true;
}
