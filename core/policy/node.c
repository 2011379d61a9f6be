/* Looking at YAML nodes, and speaking of them: where a node is ("rules[2].ports[0]") and what stands there. */
#include "core/policy/node.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/base/text.h"

const struct node *node_get(const struct node *map, struct slice key)
{
	for (const struct node *n = map->first; n; n = n->next)
		if (slice_eq(n->key, key))
			return n;
	return NULL;
}

bool node_is_nothing(const struct node *node)
{
	return node->kind == NODE_TEXT && node->text.len == 0 && !node->quoted;
}

struct quoted node_describe(const struct node *node)
{
	if (node->kind == NODE_LIST)
		return (struct quoted){"a list"};
	if (node->kind == NODE_MAP)
		return (struct quoted){"a mapping"};
	return node_is_nothing(node) ? (struct quoted){"nothing"} : quote(node->text);
}

static bool is_plain_key(struct slice key)
{
	for (size_t i = 0; i < key.len; i++) {
		unsigned char c = (unsigned char)key.ptr[i];
		unsigned char l = ascii_lower(c);
		if (!(l >= 'a' && l <= 'z') && !ascii_is_digit(c) && c != '_' && c != '-')
			return false;
	}
	return key.len > 0 && key.len <= LIMIT_POLICY_VALUE;
}

static void put_key(struct text *t, struct slice key)
{
	if (is_plain_key(key)) {
		if (t->len > 0)
			text_put_char(t, '.');
		text_put(t, key);
		return;
	}
	text_put_char(t, '[');
	text_put(t, slice_str(quote(key).text));
	text_put_char(t, ']');
}

/* Writes the path of a node and ": " behind it; nothing for the root. */
static void put_path(struct text *t, const struct node *node)
{
	const struct node *way[LIMIT_POLICY_DEPTH + 1];
	size_t n = 0;
	for (; node->parent; node = node->parent)
		way[n++] = node;
	if (n == 0)
		return;
	while (n > 0) {
		const struct node *step = way[--n];
		if (step->parent->kind == NODE_MAP) {
			put_key(t, step->key);
			continue;
		}
		text_put_char(t, '[');
		text_put_u64(t, step->index);
		text_put_char(t, ']');
	}
	text_put(t, SLICE(": "));
}

static void add_error(struct policy_errors *errs, const struct node *node, struct where at, const char *fmt,
		      va_list args)
{
	char path[256], text[sizeof(errs->list[0].text)];
	struct text t = text_in(path, sizeof(path));
	put_path(&t, node);
	vsnprintf(text, sizeof(text), fmt, args);
	error_at(errs, at, "%.*s%s", (int)t.len, path, text);
}

void node_error(struct policy_errors *errs, const struct node *node, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	add_error(errs, node, node->at, fmt, args);
	va_end(args);
}

void node_key_error(struct policy_errors *errs, const struct node *node, const char *fmt, ...)
{
	struct where at = {node->at.file, node->key_line, node->key_column};
	va_list args;
	va_start(args, fmt);
	add_error(errs, node, at, fmt, args);
	va_end(args);
}
