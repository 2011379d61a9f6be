/* Descriptions and checks of the tools. */
#include "orchestrator/service/tools.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/base64.h"
#include "orchestrator/service/create.h"
#include "orchestrator/service/utf8.h"

enum tool tool_find(const char *name)
{
	for (int i = 0; i < TOOLS; i++)
		if (strcmp(name, tool_names[i]) == 0)
			return (enum tool)i;
	return TOOL_NONE;
}

/* ---- descriptions ---- */

static const struct {
	const char *description, *schema;
} about[TOOLS] = {
	[TOOL_SHELL] =
		{"Runs a command in the sandbox with sh -c",
		 "{\"type\":\"object\",\"required\":[\"command\"],\"additionalProperties\":false,\"properties\":{"
		 "\"command\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":30000},"
		 "\"workdir\":{\"type\":\"string\",\"maxLength\":1000,\"description\":\"default: the workspace\"}}}"},
	[TOOL_READ] = {"Reads a file of the workspace",
		       "{\"type\":\"object\",\"required\":[\"path\"],\"additionalProperties\":false,\"properties\":{"
		       "\"path\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4000},"
		       "\"max_bytes\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":1048576,\"default\":1048576}}}"},
	[TOOL_WRITE] =
		{"Writes a file of the workspace, with the directories that lead to it",
		 "{\"type\":\"object\",\"required\":[\"path\"],\"additionalProperties\":false,\"properties\":{"
		 "\"path\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4000},\"content\":{\"type\":\"string\"},"
		 "\"content_base64\":{\"type\":\"string\"}},"
		 "\"oneOf\":[{\"required\":[\"content\"]},{\"required\":[\"content_base64\"]}]}"},
	[TOOL_LIST] = {"Lists a directory of the workspace",
		       "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
		       "\"path\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4000,\"default\":\".\"}}}"},
	[TOOL_HTTP] = {"Makes an HTTP request through the cage, under the policy of the sandbox",
		       "{\"type\":\"object\",\"required\":[\"url\"],\"additionalProperties\":false,\"properties\":{"
		       "\"url\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":8000},"
		       "\"method\":{\"type\":\"string\",\"pattern\":\"^[A-Z]{1,32}$\",\"default\":\"GET\"},"
		       "\"headers\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}},"
		       "\"body\":{\"type\":\"string\"},\"body_base64\":{\"type\":\"string\"}}}"},
};

json_t *tools_json(void)
{
	json_t *list = json_array();
	for (size_t i = 0; i < TOOLS; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", tool_names[i], "description",
						      about[i].description, "arguments",
						      json_loads(about[i].schema, 0, NULL)));
	return list;
}

/* ---- arguments ---- */

static void check_command(const struct place *p, const json_t *value)
{
	check_text(p, value, 1, LIMIT_SERVE_COMMAND);
}

static void check_workdir(const struct place *p, const json_t *value)
{
	check_text(p, value, 0, 1000);
}

static void check_path(const struct place *p, const json_t *value)
{
	check_text(p, value, 1, LIMIT_SERVE_PATH);
}

static void check_max(const struct place *p, const json_t *value)
{
	check_number(p, value, 0, LIMIT_SERVE_TOOL_OUT);
}

static void check_base64(const struct place *p, const json_t *value)
{
	size_t n;
	if (!json_is_string(value)) {
		place_error(p, "expected text");
		return;
	}
	char *bytes = base64_decode(slice_of(json_string_value(value), json_string_length(value)), &n);
	if (!bytes)
		place_error(p, "is no base64");
	free(bytes);
}

static void check_url(const struct place *p, const json_t *value)
{
	if (check_text(p, value, 1, 8000) && strncmp(json_string_value(value), "http://", 7) != 0 &&
	    strncmp(json_string_value(value), "https://", 8) != 0)
		place_error(p, "expected an http or https URL");
}

static void check_method(const struct place *p, const json_t *value)
{
	const char *text = json_is_string(value) ? json_string_value(value) : "";
	size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	if (n == 0 || n > 32 || text[n])
		place_error(p, "expected a method in upper case");
}

static bool field_is_good(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] > '~' || s.ptr[i] == ':')
			return false;
	return s.len > 0 && s.len <= 256;
}

static void check_field(const struct place *p, const json_t *value)
{
	if (check_text(p, value, 0, 8000) && strpbrk(json_string_value(value), "\r\n"))
		place_error(p, "expected text without line breaks");
}

static void check_headers(const struct place *p, const json_t *value)
{
	check_map(p, value, 100, field_is_good, "a header field", check_field);
}

static const struct {
	struct member fields[6];
	size_t n;
} shapes[TOOLS] = {
	[TOOL_SHELL] = {{{"command", check_command, true}, {"workdir", check_workdir, false}}, 2},
	[TOOL_READ] = {{{"path", check_path, true}, {"max_bytes", check_max, false}}, 2},
	[TOOL_WRITE] = {{{"path", check_path, true},
			 {"content", check_any_text, false},
			 {"content_base64", check_base64, false}},
			3},
	[TOOL_LIST] = {{{"path", check_path, false}}, 1},
	[TOOL_HTTP] = {{{"url", check_url, true},
			{"method", check_method, false},
			{"headers", check_headers, false},
			{"body", check_any_text, false},
			{"body_base64", check_base64, false}},
		       5},
};

void tool_check(enum tool t, const json_t *arguments, json_t *errors)
{
	const struct place root = {errors, NULL, NULL, 0}, at = {errors, &root, "arguments", 0};
	if (t == TOOL_NONE || !check_object(&at, arguments, shapes[t].fields, shapes[t].n))
		return;
	bool text = json_object_get(arguments, "content"), base64 = json_object_get(arguments, "content_base64");
	if (t == TOOL_WRITE && text == base64)
		place_error(&at, "expected either \"content\" or \"content_base64\"");
	if (json_object_get(arguments, "body") && json_object_get(arguments, "body_base64"))
		place_error(&at, "expected either \"body\" or \"body_base64\"");
}

/* ---- what is forbidden ---- */

static bool is_among(const json_t *list, const char *name)
{
	size_t i;
	json_t *item;
	json_array_foreach(list, i, item)
	{
		if (strcmp(json_string_value(item), name) == 0)
			return true;
	}
	return false;
}

/* A match that takes too long counts as one. */
static bool matches(const char *pattern, const char *command)
{
	int number;
	PCRE2_SIZE offset;
	pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, 0, &number, &offset, NULL);
	pcre2_match_data *data = code ? pcre2_match_data_create(1, NULL) : NULL;
	pcre2_match_context *context = data ? pcre2_match_context_create(NULL) : NULL;
	int rc = 0;
	if (context) {
		pcre2_set_match_limit(context, LIMIT_SERVE_REGEX_STEPS);
		pcre2_set_depth_limit(context, LIMIT_SERVE_REGEX_DEPTH);
		rc = pcre2_match(code, (PCRE2_SPTR)command, strlen(command), 0, 0, data, context);
	}
	pcre2_match_context_free(context);
	pcre2_match_data_free(data);
	pcre2_code_free(code);
	return rc != PCRE2_ERROR_NOMATCH;
}

static bool is_blocked(const json_t *patterns, const char *command)
{
	size_t i;
	json_t *pattern;
	json_array_foreach(patterns, i, pattern)
	{
		if (matches(json_string_value(pattern), command))
			return true;
	}
	return false;
}

/* What can be seen of it here; the rest is seen inside. */
static bool leaves(const char *path)
{
	struct slice rest = slice_str(path);
	if (path[0] == '/')
		return true;
	while (rest.len > 0)
		if (slice_eq(slice_cut(&rest, '/'), SLICE("..")))
			return true;
	return false;
}

const char *tool_denied(const json_t *spec, const char *name, const json_t *arguments)
{
	const char *command = json_string_value(json_object_get(arguments, "command"));
	const char *path = json_string_value(json_object_get(arguments, "path"));
	if (tool_find(name) == TOOL_NONE || !is_among(json_object_get(spec, "tools"), name))
		return "tool.not_allowed";
	if (command && is_blocked(json_object_get(spec, "blocked_commands"), command))
		return "tool.command";
	return path && leaves(path) ? "tool.path" : NULL;
}

/* Of a tool that there is not, all that was said. */
static void unknown_detail(const json_t *arguments, char out[LIMIT_SERVE_DETAIL + 1])
{
	char *text = json_dumps(arguments, JSON_COMPACT | JSON_ENSURE_ASCII);
	snprintf(out, LIMIT_SERVE_DETAIL + 1, "%s", text ? text : "{}");
	free(text);
}

void tool_detail(enum tool t, const json_t *arguments, char out[LIMIT_SERVE_DETAIL + 1])
{
	static const char *const keys[] = {"command", "path", "path", "path", "url"};
	if (t == TOOL_NONE) {
		unknown_detail(arguments, out);
		return;
	}
	const char *text = json_string_value(json_object_get(arguments, keys[t]));
	snprintf(out, LIMIT_SERVE_DETAIL + 1, "%s", text ? text : ".");
	if (t == TOOL_HTTP)
		out[strcspn(out, "?#")] = '\0';
}

/* ---- results ---- */

static json_t *text_json(struct slice bytes)
{
	struct evbuffer *text = evbuffer_new();
	struct utf8_rest rest = {.n = 0};
	utf8_add(text, &rest, bytes);
	utf8_end(text, &rest);
	size_t n = evbuffer_get_length(text);
	json_t *value = json_stringn(n ? (const char *)evbuffer_pullup(text, -1) : "", n);
	evbuffer_free(text);
	return value;
}

/* "f SIZE NAME" */
static json_t *entry_json(struct slice word)
{
	struct slice kind = slice_cut(&word, ' '), size = slice_cut(&word, ' ');
	uint64_t n = 0;
	const char *type = slice_eq(kind, SLICE("f"))   ? "file"
			   : slice_eq(kind, SLICE("d")) ? "directory"
			   : slice_eq(kind, SLICE("l")) ? "link"
							: "other";
	if (!slice_to_u64(size, INT64_MAX, &n))
		n = 0;
	return json_pack("{s:o, s:s, s:I}", "name", text_json(word), "type", type, "size", (json_int_t)n);
}

json_t *tool_entries(struct slice words)
{
	json_t *list = json_array();
	while (words.len > 0) {
		struct slice word = slice_cut(&words, '\0');
		if (word.len > 0)
			json_array_append_new(list, entry_json(word));
	}
	return list;
}

static json_t *base64_json(struct slice bytes)
{
	char *text = malloc(bytes.len / 3 * 4 + 8);
	int n = text ? EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)bytes.ptr, (int)bytes.len) : 0;
	json_t *value = json_stringn(text ? text : "", (size_t)n);
	free(text);
	return value;
}

void tool_put_bytes(json_t *result, const char *key, struct slice bytes)
{
	char name[64];
	if (utf8_is_good(bytes)) {
		json_object_set_new(result, key, json_stringn(bytes.len ? bytes.ptr : "", bytes.len));
		return;
	}
	snprintf(name, sizeof(name), "%s_base64", key);
	json_object_set_new(result, name, base64_json(bytes));
}

char *base64_decode(struct slice text, size_t *n)
{
	size_t room = BASE64_ROOM(text.len);
	char *bytes = malloc(room + 1);
	if (bytes && base64_read(text, bytes, room, n))
		return bytes;
	free(bytes);
	return NULL;
}

/* ---- failures ---- */

bool errno_is_escape(int error)
{
	return error == EXDEV || error == ELOOP;
}

void answer_errno(struct request *r, int error)
{
	if (errno_is_escape(error))
		answer_refusal(r, 403, "tool.path", NULL, TOOL_PATH_ESCAPES);
	else if (error == ENOENT || error == ENOTDIR)
		answer_problem(r, 404, "there is no such file");
	else if (error == ENOSPC || error == EDQUOT)
		answer_problem(r, 507, "there is no room");
	else if (error == EFBIG || error == E2BIG)
		answer_problem(r, 413, "it is too large");
	else if (error == EBUSY || error == EAGAIN)
		answer_refusal(r, 429, "limit.tool", NULL, "too much is done in this sandbox at the same time");
	else if (error == EPIPE || error == ECANCELED)
		answer_problem(r, 409, "the sandbox has ended");
	else if (error == EIO)
		answer_problem(r, 502, "it could not be read or written");
	else
		answer_problem(r, 422, "%s", strerror(error));
}
