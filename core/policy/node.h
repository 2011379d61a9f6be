/* YAML as a tree in which every node knows its place in the file. Only what a policy needs: no anchors, aliases, tags,
 * several documents, duplicate keys or control characters. */
#ifndef CAGE_POLICY_NODE_H
#define CAGE_POLICY_NODE_H

#include "core/policy/errors.h"

enum node_kind { NODE_TEXT, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	bool quoted;       /* text in quotes: never "nothing" */
	struct where at;   /* where the value starts */
	struct slice text; /* NODE_TEXT */
	struct node *parent;
	struct node *first, *last, *next; /* children of a list or map, in the order of the file */
	size_t count;                     /* how many children */
	size_t index;                     /* place in the parent list */
	struct slice key;                 /* in a parent map: its key, ... */
	unsigned key_line, key_column;    /* ... and where that stands */
};

/* What the trees of one policy are built from. */
struct node_room {
	struct arena *arena;
	size_t nodes_left; /* over all files */
};

/* The tree, or NULL with errors added. file is borrowed by the nodes. */
const struct node *node_read_yaml(struct slice bytes, const char *file, struct node_room *room,
				  struct policy_errors *errs);

/* The value of that key in a map, or NULL. */
const struct node *node_get(const struct node *map, struct slice key);

/* Is it text of no length that nobody quoted: a key without a value? */
bool node_is_nothing(const struct node *node);

/* What stands there, for "got ...": quoted text, or "a list", "a mapping", "nothing". */
struct quoted node_describe(const struct node *node);

/* An error at the value; the text starts with the node's path: "rules[2].ports[0]: ". */
void node_error(struct policy_errors *errs, const struct node *node, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same, at the key. */
void node_key_error(struct policy_errors *errs, const struct node *node, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
