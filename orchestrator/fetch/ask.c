/* JSON to a struct. What is not known is refused: somebody has meant something by it. */
#include "orchestrator/fetch/ask.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/limits.h"

/* ---- texts ---- */

static bool is_token(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] > '~' || strchr("\"(),/:;<=>?@[\\]{}", s.ptr[i]))
			return false;
	return s.len > 0;
}

static bool is_method(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < 'A' || s.ptr[i] > 'Z')
			return false;
	return s.len > 0 && s.len <= 32 && !slice_eq(s, SLICE("CONNECT"));
}

/* No line of its own can be made out of it. */
static bool is_field_value(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] < ' ' && s.ptr[i] != '\t')
			return false;
	return slice_find(s, 0x7f) == s.len;
}

static bool is_url(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] > '~')
			return false;
	return s.len <= LIMIT_TARGET && (slice_starts(s, SLICE("http://")) || slice_starts(s, SLICE("https://")));
}

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

/* With its padding, and nothing else in it. */
static bool set_base64(struct ask *a, struct slice text)
{
	uint32_t bits = 0;
	size_t n = text.len;
	while (n > 0 && text.len - n < 2 && text.ptr[n - 1] == '=')
		n--;
	a->body = text.len % 4 == 0 ? malloc(text.len + 1) : NULL;
	for (size_t i = 0; a->body && i < n; i++) {
		int six = ascii_base64((unsigned char)text.ptr[i]);
		if (six < 0 || text.ptr[i] == '-' || text.ptr[i] == '_')
			return false;
		bits = bits << 6 | (uint32_t)six;
		if (i % 4 > 0)
			a->body[a->body_len++] = (char)(bits >> (6 - 2 * (i % 4)));
	}
	return a->body && n % 4 != 1;
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
		if (!is_token(slice_str(name)) || !json_is_string(field) || !is_field_value(text_of(field)))
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
		return set(&a->method, value) && is_method(slice_str(a->method));
	if (strcmp(name, "url") == 0)
		return set(&a->url, value) && is_url(slice_str(a->url));
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
