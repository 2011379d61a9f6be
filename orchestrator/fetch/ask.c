/* JSON to a struct. What is not known is refused: somebody has meant something by it. */
#include "orchestrator/fetch/ask.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/limits.h"
#include "orchestrator/fetch/rules.h"

/* ---- texts ---- */

static struct slice text_of(const json_t *value)
{
	return slice_of(json_string_value(value), json_string_length(value));
}

/* ---- the body ---- */

static bool set_text(struct ask *a, struct slice text)
{
	a->body = malloc(text.len + 1);
	if (a->body)
		memcpy(a->body, text.ptr, text.len);
	a->body_len = text.len;
	return a->body != NULL;
}

static bool set_base64(struct ask *a, struct slice text)
{
	a->body = malloc(BASE64_ROOM(text.len) + 1);
	return a->body && base64_read(text, a->body, BASE64_ROOM(text.len), &a->body_len);
}

/* ---- members ---- */

static bool set_headers(struct ask *a, json_t *value)
{
	const char *name;
	json_t *field;
	a->headers = value;
	if (!json_is_object(value) || json_object_size(value) > LIMIT_FETCH_FIELDS)
		return false;
	json_object_foreach(value, name, field)
	{
		if (!fetch_field_name_is_good(slice_str(name)) || !json_is_string(field) ||
		    !fetch_field_value_is_good(text_of(field)))
			return false;
	}
	return true;
}

static bool set_number(uint64_t *where, const json_t *value, uint64_t max)
{
	*where = (uint64_t)json_integer_value(value);
	return json_is_integer(value) && json_integer_value(value) > 0 && *where <= max;
}

/* Only what is the whole text: it could have a NUL byte in it. */
static bool set(const char **where, const json_t *value)
{
	*where = json_string_value(value);
	return *where && strlen(*where) == json_string_length(value) && **where;
}

static bool take(struct ask *a, const char *name, json_t *value)
{
	if (strcmp(name, "method") == 0)
		return set(&a->method, value) && fetch_method_is_good(slice_str(a->method));
	if (strcmp(name, "url") == 0)
		return set(&a->url, value) && fetch_url_is_good(slice_str(a->url));
	if (strcmp(name, "headers") == 0)
		return set_headers(a, value);
	if (strcmp(name, "body") == 0)
		return json_is_string(value) && !a->body && set_text(a, text_of(value));
	if (strcmp(name, "body_base64") == 0)
		return json_is_string(value) && !a->body && set_base64(a, text_of(value));
	if (strcmp(name, "timeout_ms") == 0)
		return set_number(&a->timeout_ms, value, LIMIT_FETCH_MS);
	if (strcmp(name, "max_bytes") == 0)
		return set_number(&a->max_bytes, value, LIMIT_FETCH_BODY);
	if (strcmp(name, "proxy") == 0)
		return set(&a->proxy, value);
	return strcmp(name, "ca_file") == 0 && set(&a->ca_file, value);
}

bool ask_parse(struct slice text, struct ask *out, const char **why)
{
	json_error_t error;
	const char *name;
	json_t *value;
	*out = (struct ask){
		.method = "GET", .timeout_ms = LIMIT_FETCH_MS_DEFAULT, .max_bytes = LIMIT_FETCH_BODY_DEFAULT};
	out->json = json_loadb(text.ptr ? text.ptr : "", text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	*why = "expected one JSON object";
	if (!json_is_object(out->json))
		return false;
	*why = "a member is not known, or has a bad value";
	json_object_foreach(out->json, name, value)
	{
		if (!take(out, name, value))
			return false;
	}
	*why = "url is missing";
	return out->url != NULL;
}

void ask_free(struct ask *a)
{
	json_decref(a->json);
	free(a->body);
	*a = (struct ask){0};
}
