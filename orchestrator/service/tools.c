/* Descriptions and checks of the tools, and what is logged of a call. */
#include "orchestrator/service/tools.h"

#include <errno.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/text.h"
#include "orchestrator/fetch/rules.h"
#include "orchestrator/service/create.h"
#include "orchestrator/service/tool_results.h"

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
	[TOOL_HTTP] = {"Makes an HTTP request through the cage, under the policy of the sandbox; all of it has at most "
		       "1047552 bytes as JSON",
		       "{\"type\":\"object\",\"required\":[\"url\"],\"additionalProperties\":false,\"properties\":{"
		       "\"url\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":8000},"
		       "\"method\":{\"type\":\"string\",\"pattern\":\"^(?!CONNECT$)[A-Z]{1,32}$\",\"default\":\"GET\"},"
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
	check_text(p, value, 0, LIMIT_SERVE_WORKDIR);
}

static void check_path(const struct place *p, const json_t *value)
{
	check_text(p, value, 1, LIMIT_SERVE_PATH);
}

static void check_max(const struct place *p, const json_t *value)
{
	check_number(p, value, 0, LIMIT_SERVE_TOOL_OUT);
}

static struct slice slice_json(const json_t *text)
{
	return slice_of(json_string_value(text), json_string_length(text));
}

static void check_base64(const struct place *p, const json_t *value)
{
	if (!json_is_string(value))
		place_error(p, "expected text");
	else if (!base64_is_good(slice_json(value)))
		place_error(p, "is no base64");
}

static void check_url(const struct place *p, const json_t *value)
{
	if (check_text(p, value, 1, LIMIT_SERVE_URL) && !fetch_url_is_good(slice_json(value)))
		place_error(p, "expected an http or https URL, without blanks");
}

static void check_method(const struct place *p, const json_t *value)
{
	if (!json_is_string(value) || !fetch_method_is_good(slice_json(value)))
		place_error(p, "expected a method in upper case, and not CONNECT");
}

static bool field_is_good(struct slice s)
{
	return fetch_field_name_is_good(s) && s.len <= LIMIT_SERVE_FIELD_NAME;
}

static void check_field(const struct place *p, const json_t *value)
{
	if (check_text(p, value, 0, LIMIT_SERVE_FIELD) && !fetch_field_value_is_good(slice_json(value)))
		place_error(p, "expected text without line breaks and control characters");
}

static void check_headers(const struct place *p, const json_t *value)
{
	check_map(p, value, LIMIT_SERVE_FIELDS, field_is_good, "a header field", check_field);
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

/* As cage-fetch is told: what has more is not even written. */
static bool order_is_short(const json_t *arguments)
{
	return json_string_length(json_object_get(arguments, "body")) <= LIMIT_SERVE_ORDER &&
	       json_string_length(json_object_get(arguments, "body_base64")) <= LIMIT_SERVE_ORDER &&
	       json_dumpb(arguments, NULL, 0, JSON_COMPACT) <= LIMIT_SERVE_ORDER;
}

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
	if (t == TOOL_HTTP && !order_is_short(arguments))
		place_error(&at, "is too long: a request has at most %zu bytes as JSON", LIMIT_SERVE_ORDER);
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

bool tool_is_allowed(const json_t *spec, const char *name)
{
	return tool_find(name) != TOOL_NONE && is_among(json_object_get(spec, "tools"), name);
}

const char *path_denied(const char *path)
{
	return leaves(path) ? "tool.path" : NULL;
}

const char *tool_denied(struct blocked *blocked, const json_t *arguments)
{
	const char *command = json_string_value(json_object_get(arguments, "command"));
	const char *path = json_string_value(json_object_get(arguments, "path"));
	if (command && blocked_has(blocked, slice_str(command)))
		return "tool.command";
	return path ? path_denied(path) : NULL;
}

struct problem tool_denial(enum tool t, const char *reason)
{
	struct problem p = {403, NULL, reason, TOOL_PATH_ESCAPES};
	if (t == TOOL_NONE)
		p.detail = "there is no such tool; GET /api/v1/tools lists them";
	else if (strcmp(reason, "tool.not_allowed") == 0)
		p.detail = "this sandbox may not use the tool";
	else if (strcmp(reason, "tool.command") == 0)
		p.detail = "the command is blocked in this sandbox";
	else if (strcmp(reason, "tool.arguments") == 0)
		p = (struct problem){422, NULL, reason, "the call is not good"};
	return p;
}

/* ---- what is logged of it ---- */

/* Of a tool that there is not, what it was to be told of: values could be anything, secrets too. */
static void names_detail(const json_t *arguments, struct text *t)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)arguments, key, value)
	{
		if (t->len > 0)
			text_put(t, SLICE(", "));
		text_put(t, slice_head(slice_str(key), t->room - t->len));
	}
}

static bool has_port(struct slice host)
{
	const char *end = host.len > 0 ? memrchr(host.ptr, ']', host.len) : NULL;
	struct slice port = end ? slice_from(host, (size_t)(end - host.ptr) + 1) : host;
	slice_cut(&port, ':');
	for (size_t i = 0; i < port.len; i++)
		if (!ascii_is_digit((unsigned char)port.ptr[i]))
			return false;
	return true;
}

static struct slice without_port(struct slice host)
{
	const char *end = host.len > 0 ? memrchr(host.ptr, ']', host.len) : NULL;
	return slice_head(host, end ? (size_t)(end - host.ptr) + 1 : slice_find(host, ':'));
}

/* Scheme, host, port and path. What comes before the host is a user's name and password, and what seems to have a port that is no
 * number may be one that has been written badly. So may what has no host, or a backslash, of which readers differ in where its host
 * is; and what is before an '@' in a path. */
static void url_detail(struct slice url, struct text *t)
{
	size_t letters = strspn(url.ptr, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	bool has_scheme = slice_starts(slice_from(url, letters), SLICE("://"));
	size_t scheme = letters + 3;
	struct slice rest = slice_from(url, scheme);
	rest = slice_head(rest, strcspn(rest.ptr, "?#"));
	struct slice host = slice_head(rest, strcspn(rest.ptr, "/\\?#")), path = slice_from(rest, host.len);
	const char *user = host.len > 0 ? memrchr(host.ptr, '@', host.len) : NULL;
	if (user)
		host = slice_from(host, (size_t)(user - host.ptr) + 1);
	const bool is_plain = slice_find(path, '@') == path.len;
	if (!has_scheme || host.len == 0 || !has_port(host) || slice_find(rest, '\\') < rest.len)
		return;
	if (!is_plain) {
		host = without_port(host);
		path = SLICE_NONE;
	}
	text_put(t, slice_head(slice_head(url, scheme), t->room));
	text_put(t, slice_head(host, t->room - t->len));
	text_put(t, slice_head(path, t->room - t->len));
}

void tool_detail(enum tool t, const json_t *arguments, char out[LIMIT_SERVE_DETAIL + 1])
{
	static const char *const keys[] = {"command", "path", "path", "path", "url"};
	struct text detail = text_in(out, LIMIT_SERVE_DETAIL);
	const char *text = t == TOOL_NONE ? NULL : json_string_value(json_object_get(arguments, keys[t]));
	if (t == TOOL_NONE)
		names_detail(arguments, &detail);
	else if (t == TOOL_HTTP && text)
		url_detail(slice_str(text), &detail);
	else
		text_put(&detail, slice_head(slice_str(text ? text : ""), LIMIT_SERVE_DETAIL));
	if (detail.len == 0)
		text_put_char(&detail, '.');
	out[detail.len] = '\0';
}

/* ---- failures ---- */

bool errno_is_escape(int error)
{
	return error == EXDEV || error == ELOOP;
}

struct problem errno_problem(int error)
{
	if (errno_is_escape(error))
		return (struct problem){403, NULL, "tool.path", TOOL_PATH_ESCAPES};
	if (error == ENOENT || error == ENOTDIR)
		return (struct problem){404, NULL, NULL, "there is no such file"};
	if (error == ENOSPC || error == EDQUOT)
		return (struct problem){507, NULL, NULL, "there is no room"};
	if (error == EFBIG || error == E2BIG)
		return (struct problem){413, NULL, NULL, "it is too large"};
	if (error == EBUSY || error == EAGAIN)
		return (struct problem){429, NULL, "limit.tool", "too much is done in this sandbox at the same time"};
	if (error == EPIPE || error == ECANCELED)
		return (struct problem){409, NULL, NULL, "the sandbox has ended"};
	if (error == EIO)
		return (struct problem){502, NULL, NULL, "it could not be read or written"};
	return (struct problem){422, NULL, NULL, strerror(error)};
}
