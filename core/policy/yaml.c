/* libyaml's events become a tree; nothing recurses. Faults that leave the structure clear are noted and the reading
 * goes on; nobody looks at the tree once there is an error. */
#include "core/policy/node.h"

#include <yaml.h>

struct builder {
	const char *file;
	struct node_room *room;
	struct policy_errors *errs;
	struct node *root;
	struct node *open; /* the list or map that is being read; NULL outside of all */
	size_t depth;      /* how many are open */
	struct slice key;  /* of the value that comes next in a map */
	struct where key_at;
	bool has_key;
};

/* What to do after an event. */
enum step { STEP_ON, STEP_END, STEP_FAIL };

static struct where mark_at(const struct builder *b, const yaml_mark_t *mark)
{
	return (struct where){b->file, (unsigned)mark->line + 1, (unsigned)mark->column + 1};
}

static enum step no_memory(struct builder *b)
{
	error_at(b->errs, (struct where){b->file, 0, 0}, "no memory to read the policy");
	return STEP_FAIL;
}

/* Hangs a node into the open list or map, or makes it the root. */
static void attach(struct builder *b, struct node *node)
{
	struct node *parent = b->open;
	if (!parent) {
		b->root = node;
		return;
	}
	node->parent = parent;
	node->index = parent->count++;
	node->key = b->key;
	node->key_line = b->key_at.line;
	node->key_column = b->key_at.column;
	b->has_key = false;
	if (parent->last)
		parent->last->next = node;
	else
		parent->first = node;
	parent->last = node;
}

static bool wants_key(const struct builder *b)
{
	return b->open && b->open->kind == NODE_MAP && !b->has_key;
}

/* A node of that kind in its place in the tree; NULL with an error. */
static struct node *node_new(struct builder *b, enum node_kind kind, const yaml_mark_t *mark)
{
	if (b->room->nodes_left == 0) {
		error_at(b->errs, mark_at(b, mark), "there are more than %d values", LIMIT_POLICY_NODES);
		return NULL;
	}
	b->room->nodes_left--;
	struct node *node = arena_alloc(b->room->arena, sizeof(*node));
	if (!node) {
		no_memory(b);
		return NULL;
	}
	node->kind = kind;
	node->at = mark_at(b, mark);
	attach(b, node);
	return node;
}

static void refuse_extras(struct builder *b, const yaml_mark_t *mark, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor)
		error_at(b->errs, mark_at(b, mark), "anchors (&name) are not allowed here");
	if (tag)
		error_at(b->errs, mark_at(b, mark), "tags (!name) are not allowed here");
}

/* A public key has lines, as it is in its file; nothing else has. */
static bool has_control(struct slice s)
{
	const bool has_lines = slice_starts(s, SLICE("-----BEGIN PUBLIC KEY-----"));
	for (size_t i = 0; i < s.len; i++)
		if (((unsigned char)s.ptr[i] < 0x20 && !(has_lines && s.ptr[i] == '\n')) || s.ptr[i] == 0x7f)
			return true;
	return false;
}

static enum step on_text(struct builder *b, struct slice text, bool quoted, const yaml_mark_t *mark)
{
	struct slice copy = arena_dup(b->room->arena, text);
	if (!copy.ptr)
		return no_memory(b);
	if (has_control(copy))
		error_at(b->errs, mark_at(b, mark), "control characters are not allowed here, got %s",
			 quote(copy).text);
	if (wants_key(b)) {
		b->key = copy;
		b->key_at = mark_at(b, mark);
		b->has_key = true;
		return STEP_ON;
	}
	struct node *node = node_new(b, NODE_TEXT, mark);
	if (!node)
		return STEP_FAIL;
	node->text = copy;
	node->quoted = quoted;
	return STEP_ON;
}

static enum step on_scalar(struct builder *b, const yaml_event_t *e)
{
	refuse_extras(b, &e->start_mark, e->data.scalar.anchor, e->data.scalar.tag);
	return on_text(b, slice_of(e->data.scalar.value, e->data.scalar.length),
		       e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE, &e->start_mark);
}

static enum step on_alias(struct builder *b, const yaml_event_t *e)
{
	error_at(b->errs, mark_at(b, &e->start_mark),
		 "aliases (*name) are not allowed here; put text that starts with a star in quotes");
	return on_text(b, SLICE("alias"), true, &e->start_mark);
}

static enum step on_open(struct builder *b, enum node_kind kind, const yaml_mark_t *mark)
{
	if (wants_key(b)) {
		error_at(b->errs, mark_at(b, mark), "a key must be plain text");
		return STEP_FAIL;
	}
	if (b->depth == LIMIT_POLICY_DEPTH) {
		error_at(b->errs, mark_at(b, mark), "nested deeper than %d levels", LIMIT_POLICY_DEPTH);
		return STEP_FAIL;
	}
	struct node *node = node_new(b, kind, mark);
	if (!node)
		return STEP_FAIL;
	b->open = node;
	b->depth++;
	return STEP_ON;
}

/* No key may be there twice: readers differ in which one they take. */
static enum step check_keys(struct builder *b, struct node *map)
{
	struct map seen;
	if (map_init(&seen, b->room->arena, map->count) != CAGE_OK)
		return no_memory(b);
	for (struct node *n = map->first; n; n = n->next) {
		if (map_get(&seen, n->key))
			node_key_error(b->errs, n, "the key is there twice");
		else if (map_add(&seen, n->key, n) != CAGE_OK)
			return no_memory(b);
	}
	return STEP_ON;
}

static enum step on_close(struct builder *b)
{
	struct node *closed = b->open;
	if (!closed)
		return STEP_FAIL;
	b->open = closed->parent;
	b->depth--;
	return closed->kind == NODE_MAP ? check_keys(b, closed) : STEP_ON;
}

static enum step on_document(struct builder *b, const yaml_event_t *e)
{
	if (b->root) {
		error_at(b->errs, mark_at(b, &e->start_mark), "a policy is one document; here a second one starts");
		return STEP_FAIL;
	}
	if (e->data.document_start.tag_directives.start != e->data.document_start.tag_directives.end)
		error_at(b->errs, mark_at(b, &e->start_mark), "tag directives are not allowed here");
	return STEP_ON;
}

static enum step on_event(struct builder *b, const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return STEP_ON;
	case YAML_STREAM_END_EVENT:
		return STEP_END;
	case YAML_DOCUMENT_START_EVENT:
		return on_document(b, e);
	case YAML_ALIAS_EVENT:
		return on_alias(b, e);
	case YAML_SCALAR_EVENT:
		return on_scalar(b, e);
	case YAML_SEQUENCE_START_EVENT:
		refuse_extras(b, &e->start_mark, e->data.sequence_start.anchor, e->data.sequence_start.tag);
		return on_open(b, NODE_LIST, &e->start_mark);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_close(b);
	case YAML_MAPPING_START_EVENT:
		refuse_extras(b, &e->start_mark, e->data.mapping_start.anchor, e->data.mapping_start.tag);
		return on_open(b, NODE_MAP, &e->start_mark);
	}
	return STEP_FAIL;
}

static struct where offset_at(const char *file, struct slice bytes, size_t offset)
{
	struct where at = {file, 1, 1};
	for (size_t i = 0; i < offset && i < bytes.len; i++) {
		at.column++;
		if (bytes.ptr[i] == '\n') {
			at.line++;
			at.column = 1;
		}
	}
	return at;
}

/* Is there a tab in the indentation of that line (from 0)? */
static bool tab_indents(struct slice bytes, size_t line)
{
	for (; line > 0; line--)
		slice_cut(&bytes, '\n');
	for (size_t i = 0; i < bytes.len && (bytes.ptr[i] == ' ' || bytes.ptr[i] == '\t'); i++)
		if (bytes.ptr[i] == '\t')
			return true;
	return false;
}

static const char *syntax_hint(const char *context, struct slice bytes, size_t line)
{
	if (strstr(context, "alias"))
		return "; put text that starts with a star in quotes: \"*.example.com\"";
	return tab_indents(bytes, line) ? "; the line is indented with a tab: use spaces" : "";
}

/* In libyaml's words, which are fixed text; with a hint for what authors of policies meet first. */
static void syntax_error(struct builder *b, const yaml_parser_t *parser, struct slice bytes)
{
	if (parser->error == YAML_READER_ERROR) {
		error_at(b->errs, offset_at(b->file, bytes, parser->problem_offset), "not UTF-8 text: %s",
			 parser->problem);
		return;
	}
	const char *context = parser->context ? parser->context : "";
	const char *hint = syntax_hint(context, bytes, parser->problem_mark.line);
	error_at(b->errs, mark_at(b, &parser->problem_mark), "not YAML: %s%s%s%s", context, *context ? ", " : "",
		 parser->problem ? parser->problem : "no memory", hint);
}

/* Control bytes are looked for before libyaml sees them: a NUL or an escape sequence has no place in a policy. */
static bool check_bytes(struct slice bytes, const char *file, struct policy_errors *errs)
{
	for (size_t i = 0; i < bytes.len; i++) {
		unsigned char c = (unsigned char)bytes.ptr[i];
		if ((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\r' || c == '\t')
			continue;
		error_at(errs, offset_at(file, bytes, i), "control byte \\x%02x in the file", c);
		return false;
	}
	return true;
}

static void build(struct builder *b, yaml_parser_t *parser, struct slice bytes)
{
	enum step step = STEP_ON;
	while (step == STEP_ON) {
		yaml_event_t event;
		if (!yaml_parser_parse(parser, &event)) {
			syntax_error(b, parser, bytes);
			return;
		}
		step = on_event(b, &event);
		yaml_event_delete(&event);
	}
}

const struct node *node_read_yaml(struct slice bytes, const char *file, struct node_room *room,
				  struct policy_errors *errs)
{
	size_t errors_before = errs->n;
	struct builder b = {.file = file, .room = room, .errs = errs};
	yaml_parser_t parser;
	if (!check_bytes(bytes, file, errs))
		return NULL;
	if (!yaml_parser_initialize(&parser)) {
		no_memory(&b);
		return NULL;
	}
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)bytes.ptr, bytes.len);
	build(&b, &parser, bytes);
	yaml_parser_delete(&parser);
	if (errs->n > errors_before || errs->more > 0)
		return NULL;
	if (!b.root)
		error_at(errs, (struct where){file, 0, 0}, "the file is empty");
	return b.root;
}
