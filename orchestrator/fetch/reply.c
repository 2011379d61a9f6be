/* Bytes to JSON: text where it is UTF-8 without NULs and not mostly control bytes, else base64. */
#include "orchestrator/fetch/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/json_suits.h"
#include "core/base/limits.h"
#include "core/base/slice.h"

/* ---- what comes ---- */

/* Bytes that are no UTF-8 are as good as question marks in a head. */
static json_t *text(struct slice s)
{
	json_t *as_is = json_stringn(s.ptr, s.len);
	char *plain = as_is ? NULL : malloc(s.len + 1);
	if (!plain)
		return as_is;
	for (size_t i = 0; i < s.len; i++)
		plain[i] = (signed char)s.ptr[i] < 0 ? '?' : s.ptr[i];
	as_is = json_stringn(plain, s.len);
	free(plain);
	return as_is;
}

/* A new status line begins a new head: what was before it was an answer on the way, such as 100. */
bool reply_add_line(struct reply *r, const char *line, size_t len)
{
	struct slice value = slice_of(line, len);
	while (slice_ends(value, SLICE("\n")) || slice_ends(value, SLICE("\r")))
		value.len--;
	if (slice_starts(value, SLICE("HTTP/"))) {
		json_array_clear(r->headers);
		r->head_len = 0;
		return true;
	}
	r->head_len += len;
	if (value.len == 0)
		return true;
	struct slice name = slice_cut(&value, ':');
	return r->head_len <= LIMIT_FETCH_HEAD &&
	       json_array_append_new(r->headers, json_pack("[o,o]", text(name), text(slice_trim(value)))) == 0;
}

static bool grow(struct reply *r, size_t needed)
{
	size_t room = r->body_room ? r->body_room : KIB(16);
	while (room < needed)
		room *= 2;
	char *body = room > r->body_room ? realloc(r->body, room) : r->body;
	if (!body)
		return false;
	r->body = body;
	r->body_room = room;
	return true;
}

bool reply_add_body(struct reply *r, const char *bytes, size_t len, size_t max)
{
	const size_t kept = len < max - r->body_len ? len : max - r->body_len;
	r->is_truncated = !grow(r, r->body_len + kept);
	if (r->is_truncated)
		return false;
	memcpy(r->body + r->body_len, bytes, kept);
	r->body_len += kept;
	r->is_truncated = kept < len;
	return !r->is_truncated;
}

/* ---- what is told ---- */

static json_t *base64(struct slice s)
{
	const size_t n = BASE64_DIGITS(s.len);
	char *out = malloc(n + 1);
	if (out)
		base64_write(s, out);
	json_t *json = out ? json_stringn(out, n) : NULL;
	free(out);
	return json;
}

static bool print(json_t *json)
{
	bool ok = json && json_dumpf(json, stdout, JSON_COMPACT) == 0 && fflush(stdout) == 0;
	json_decref(json);
	return ok;
}

bool reply_print(const struct reply *r)
{
	json_t *json = json_pack("{s:I, s:O, s:b}", "status", (json_int_t)r->status, "headers", r->headers, "truncated",
				 r->is_truncated);
	const struct slice bytes = slice_of(r->body ? r->body : "", r->body_len);
	json_t *body = json_suits(bytes) ? json_stringn(bytes.ptr, bytes.len) : NULL;
	if (json && body)
		json_object_set_new(json, "body", body);
	else if (json)
		json_object_set_new(json, "body_base64", base64(bytes));
	return print(json);
}

bool reply_print_error(const char *word, const char *message)
{
	return print(json_pack("{s:s, s:s}", "error", word, "message", message));
}

void reply_free(struct reply *r)
{
	json_decref(r->headers);
	free(r->body);
	*r = (struct reply){0};
}
