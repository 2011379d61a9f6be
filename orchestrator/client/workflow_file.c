/* YAML has no types here: numbers and flags are known by their keys, and all else is text. */
#include "orchestrator/client/workflow_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/limits.h"
#include "core/base/say.h"
#include "core/policy/node.h"
#include "core/policy/policy.h"
#include "orchestrator/client/file_text.h"
#include "orchestrator/client/shown.h"
#include "orchestrator/inside/beneath.h"

/* ---- YAML ---- */

static bool is_one_of(struct slice key, const char *const *names)
{
	for (; *names; names++)
		if (slice_eq(key, slice_str(*names)))
			return true;
	return false;
}

static json_t *text_json(const struct node *node)
{
	static const char *const numbers[] = {
		"max_bytes",    "lifetime_seconds", "cpu",          "memory", "pids",      "disk",
		"wall_seconds", "egress_bytes",     "output_bytes", "port",   "host_port", NULL};
	struct slice text = node->text.ptr ? node->text : SLICE("");
	if (!node->quoted && is_one_of(node->key, numbers)) {
		json_t *number = json_loadb(text.ptr, text.len, JSON_DECODE_ANY, NULL);
		if (json_is_number(number))
			return number;
		json_decref(number);
	}
	if (!node->quoted && slice_eq(node->key, SLICE("keep")) && slice_eq(text, SLICE("true")))
		return json_true();
	if (!node->quoted && slice_eq(node->key, SLICE("keep")) && slice_eq(text, SLICE("false")))
		return json_false();
	return json_stringn(text.ptr, text.len);
}

/* Of these all values are text, whatever their names are. */
static bool has_texts(const struct node *node)
{
	static const char *const maps[] = {"env", "files", "files_from", "labels", NULL};
	return node->kind == NODE_MAP && is_one_of(node->key, maps);
}

static json_t *node_to_json(const struct node *node)
{
	if (node->kind == NODE_TEXT)
		return node->parent && has_texts(node->parent)
			       ? json_stringn(node->text.ptr ? node->text.ptr : "", node->text.len)
			       : text_json(node);
	json_t *out = node->kind == NODE_LIST ? json_array() : json_object();
	for (const struct node *item = node->first; item; item = item->next) {
		json_t *value = node_to_json(item);
		int failed = node->kind == NODE_LIST ? json_array_append_new(out, value)
						     : json_object_setn_new(out, item->key.ptr, item->key.len, value);
		if (failed) {
			json_decref(out);
			return NULL;
		}
	}
	return out;
}

static json_t *read_yaml(const char *path, struct slice bytes)
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	struct arena arena;
	arena_init(&arena, 4 * LIMIT_CLIENT_TEXT);
	struct node_room room = {&arena, LIMIT_POLICY_NODES};
	const struct node *root = errs ? node_read_yaml(bytes, path, &room, errs) : NULL;
	json_t *out = root && errs->n == 0 ? node_to_json(root) : NULL;
	if (errs)
		policy_errors_print(errs, STDERR_FILENO);
	arena_free(&arena);
	free(errs);
	return out;
}

static json_t *read_json(const char *path, struct slice bytes)
{
	json_error_t e;
	json_t *out = json_loadb(bytes.ptr, bytes.len, JSON_REJECT_DUPLICATES, &e);
	if (!out)
		say("%s:%d:%d: %s", path, e.line, e.column, e.text);
	return out;
}

/* ---- files of this machine ---- */

/* Where they are looked for, and whose they are, for errors: "FILE: step ID: files_from:". */
struct beside {
	int dir;
	char whose[2 * LIMIT_CLIENT_CELL];
};

/* Who wrote the workflow names files that lie beside it, and no others of this machine: neither a name nor a link leads out of
 * its directory. */
static json_t *read_local(const struct beside *b, const char *name)
{
	size_t len;
	int fd = beneath_open_file(b->dir, name);
	if (fd < 0 && errno == EXDEV) {
		say("%s %s: is not in the directory of the workflow's file, and no other is read", b->whose, name);
		return NULL;
	}
	char *text = file_text_from(fd, b->whose, name, &len);
	json_t *out = text ? json_stringn(text, len) : NULL;
	if (text && !out)
		say("%s %s: is no text in UTF-8", b->whose, name);
	free(text);
	return out;
}

static bool take_files(json_t *sandbox, const struct beside *b)
{
	json_t *from = json_object_get(sandbox, "files_from"), *files = json_object_get(sandbox, "files"), *name;
	const char *to;
	if (!from)
		return true;
	if (!json_is_object(from)) {
		say("%s expected paths of the workspace, each with a file of this machine", b->whose);
		return false;
	}
	if (files && !json_is_object(files)) {
		say("%s `files` has to be paths of the workspace, each with its text", b->whose);
		return false;
	}
	if (!files) {
		files = json_object();
		json_object_set_new(sandbox, "files", files);
	}
	json_object_foreach(from, to, name)
	{
		if (!json_is_string(name))
			say("%s %s: expected the name of a file of this machine", b->whose, to);
		json_t *text = json_is_string(name) ? read_local(b, json_string_value(name)) : NULL;
		if (!text || json_object_set_new(files, to, text) != 0)
			return false;
	}
	json_object_del(sandbox, "files_from");
	return true;
}

/* -1 with a message. */
static int open_directory(const char *path)
{
	char *copy = strdup(path);
	int fd = copy ? open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd < 0)
		say("the directory of %s: %s", path, strerror(errno));
	free(copy);
	return fd;
}

static void name_step(struct beside *b, const char *path, const json_t *step, size_t i)
{
	char id[LIMIT_CLIENT_CELL];
	const char *given = json_string_value(json_object_get(step, "id"));
	shown(given ? given : "", id, sizeof(id));
	if (id[0])
		snprintf(b->whose, sizeof(b->whose), "%.*s: step %s: files_from:", LIMIT_CLIENT_CELL / 2, path, id);
	else
		snprintf(b->whose, sizeof(b->whose), "%.*s: step %zu: files_from:", LIMIT_CLIENT_CELL / 2, path, i + 1);
}

static bool take_all_files(json_t *workflow, const char *path)
{
	size_t i;
	json_t *step;
	struct beside b = {.dir = open_directory(path)};
	bool ok = b.dir >= 0;
	json_array_foreach(json_object_get(workflow, "steps"), i, step)
	{
		name_step(&b, path, step, i);
		ok = ok && take_files(json_object_get(step, "sandbox"), &b);
	}
	if (b.dir >= 0)
		close(b.dir);
	return ok;
}

json_t *workflow_file_read(const char *path)
{
	size_t len;
	char *text = file_text("FILE", path, &len);
	json_t *out = NULL;
	if (text) {
		struct slice bytes = slice_of(text, len);
		out = slice_starts(bytes, SLICE("{")) ? read_json(path, bytes) : read_yaml(path, bytes);
	}
	free(text);
	if (out && take_all_files(out, path))
		return out;
	json_decref(out);
	return NULL;
}
