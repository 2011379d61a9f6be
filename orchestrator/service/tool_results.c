/* What a tool call has brought, as JSON. All of it has passed the sandbox: bytes that are no text are told as base64, or mended. */
#include "orchestrator/service/tool_results.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/base64.h"
#include "core/base/json_suits.h"
#include "orchestrator/service/utf8.h"

/* ---- bytes ---- */

static json_t *text_json(struct slice bytes)
{
	struct evbuffer *text = evbuffer_new();
	struct utf8_rest rest = {.n = 0};
	if (!text)
		return NULL;
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
	const size_t n = BASE64_DIGITS(bytes.len);
	char *text = malloc(n + 1);
	if (text)
		base64_write(bytes, text);
	json_t *value = text ? json_stringn(text, n) : NULL;
	free(text);
	return value;
}

static void put_base64(json_t *result, const char *key, struct slice bytes)
{
	char name[64];
	snprintf(name, sizeof(name), "%s_base64", key);
	json_object_set_new(result, name, base64_json(bytes));
}

void tool_put_bytes(json_t *result, const char *key, struct slice bytes)
{
	if (json_suits(bytes) && utf8_is_good(bytes))
		json_object_set_new(result, key, json_stringn(bytes.len ? bytes.ptr : "", bytes.len));
	else
		put_base64(result, key, bytes);
}

/* What a program writes for people is mended where it is no UTF-8: it may be cut within a character. */
static void put_stream(json_t *result, const char *key, struct slice bytes)
{
	if (json_suits(bytes))
		json_object_set_new(result, key, text_json(bytes));
	else
		put_base64(result, key, bytes);
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

/* ---- each tool ---- */

static json_t *shell_result(const struct tool_output *o)
{
	json_t *result = json_pack("{s:i, s:b, s:b}", o->end.how == JOB_EXIT ? "exit_code" : "signal", o->end.number,
				   "truncated", o->truncated, "timed_out", o->timed_out);
	put_stream(result, "stdout", o->out);
	put_stream(result, "stderr", o->err);
	return result;
}

static json_t *read_result(const struct tool_output *o)
{
	json_t *result = json_pack("{s:I, s:b}", "size", (json_int_t)o->out.len, "truncated", o->truncated);
	tool_put_bytes(result, "content", o->out);
	return result;
}

/* What cage-fetch has said, as far as it is part of a result. */
static json_t *http_result(const struct tool_output *o, char *error, size_t room)
{
	static const char *const keys[] = {"status", "headers", "body", "body_base64", "truncated"};
	json_t *said = json_loadb(o->out.ptr, o->out.len, JSON_ALLOW_NUL, NULL), *result = json_object();
	const char *why = json_string_value(json_object_get(said, "error"));
	const char *message = json_string_value(json_object_get(said, "message"));
	bool ok = json_is_integer(json_object_get(said, "status"));
	snprintf(error, room, "the request could not be made%s%s%s%s", why ? ": " : "", why ? why : "",
		 message ? ": " : "", message ? message : "");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && ok; i++)
		if (json_object_get(said, keys[i]))
			json_object_set(result, keys[i], json_object_get(said, keys[i]));
	json_decref(said);
	if (ok)
		return result;
	json_decref(result);
	return NULL;
}

json_t *tool_result(enum tool t, const struct tool_output *o, char *error, size_t room)
{
	snprintf(error, room, "its result can't be told: no memory");
	switch (t) {
	case TOOL_SHELL:
		return shell_result(o);
	case TOOL_READ:
		return read_result(o);
	case TOOL_WRITE:
		return json_pack("{s:I}", "size", (json_int_t)o->written);
	case TOOL_LIST:
		return json_pack("{s:o}", "entries", tool_entries(o->out));
	case TOOL_HTTP:
		return http_result(o, error, room);
	case TOOL_NONE:
		break;
	}
	return NULL;
}
