/* The walk over a JSON value, and the errors of it. */
#include "orchestrator/service/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/policy/load.h"
#include "core/proc/sandbox_id.h"

void errors_add(json_t *errors, const char *pointer, const char *detail)
{
	if (json_array_size(errors) >= LIMIT_SERVE_ERRORS)
		return;
	json_t *e = pointer ? json_pack("{s:s, s:s}", "pointer", pointer, "detail", detail)
			    : json_pack("{s:s}", "detail", detail);
	if (e)
		json_array_append_new(errors, e);
}

/* "~" and "/" of a key are written as RFC 6901 has it. */
static void put_key(struct text *t, const char *key)
{
	for (; *key; key++) {
		if (*key == '~' || *key == '/')
			text_put(t, *key == '~' ? SLICE("~0") : SLICE("~1"));
		else
			text_put_char(t, *key);
	}
}

static void put_place(struct text *t, const struct place *p)
{
	if (!p->up)
		return;
	put_place(t, p->up);
	text_put_char(t, '/');
	if (p->key)
		put_key(t, p->key);
	else
		text_put_u64(t, p->index);
}

void place_error(const struct place *p, const char *format, ...)
{
	char pointer[LIMIT_SERVE_POINTER], detail[LIMIT_SERVE_PROBLEM];
	struct text t = text_in(pointer, sizeof(pointer) - 1);
	va_list args;
	put_place(&t, p);
	pointer[t.len] = '\0';
	va_start(args, format);
	vsnprintf(detail, sizeof(detail), format, args);
	va_end(args);
	errors_add(p->errors, text_ok(&t) ? pointer : NULL, detail);
}

static const struct member *find(const struct member *fields, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

static bool is_object(const struct place *p, const json_t *value)
{
	if (json_is_object(value))
		return true;
	place_error(p, "expected an object");
	return false;
}

/* What was meant, if it is nearly the same. */
static struct quoted hint_of(const struct member *fields, size_t n, const char *key)
{
	struct near near = {.text = slice_str(key)};
	for (size_t i = 0; i < n; i++)
		near_try(&near, slice_str(fields[i].name));
	return near_hint(&near);
}

bool check_object(const struct place *p, const json_t *value, const struct member *fields, size_t n)
{
	const char *key;
	json_t *item;
	if (!is_object(p, value))
		return false;
	json_object_foreach((json_t *)value, key, item)
	{
		const struct member *f = find(fields, n, key);
		struct place at = {p->errors, p, key, 0};
		if (f)
			f->check(&at, item);
		else
			place_error(&at, "is not known%s", hint_of(fields, n, key).text);
	}
	for (size_t i = 0; i < n; i++)
		if (fields[i].required && !json_object_get(value, fields[i].name))
			place_error(p, "\"%s\" is missing", fields[i].name);
	return true;
}

void check_map(const struct place *p, const json_t *value, size_t most, bool (*name_is_good)(struct slice),
	       const char *what, checker *each)
{
	const char *key;
	json_t *item;
	if (!is_object(p, value))
		return;
	if (json_object_size(value) > most)
		place_error(p, "expected at most %zu", most);
	json_object_foreach((json_t *)value, key, item)
	{
		struct place at = {p->errors, p, key, 0};
		if (!name_is_good(slice_str(key)))
			place_error(&at, "expected a name of %s", what);
		each(&at, item);
	}
}

bool check_list(const struct place *p, const json_t *value, size_t least, size_t most, checker *each)
{
	size_t i;
	json_t *item;
	if (!json_is_array(value)) {
		place_error(p, "expected a list");
		return false;
	}
	if (json_array_size(value) < least || json_array_size(value) > most)
		place_error(p, "expected %zu to %zu of them", least, most);
	json_array_foreach(value, i, item)
	{
		struct place at = {p->errors, p, NULL, i};
		each(&at, item);
	}
	return true;
}

void check_unique(const struct place *p, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		for (size_t j = 0; j < i; j++)
			if (json_equal(json_array_get(list, i), json_array_get(list, j))) {
				struct place at = {p->errors, p, NULL, i};
				place_error(&at, "is there twice");
				break;
			}
}

bool check_text(const struct place *p, const json_t *value, size_t least, size_t most)
{
	size_t n = json_is_string(value) ? json_string_length(value) : 0;
	if (json_is_string(value) && n >= least && n <= most)
		return true;
	place_error(p, "expected text of %zu to %zu bytes", least, most);
	return false;
}

bool check_number(const struct place *p, const json_t *value, json_int_t least, json_int_t most)
{
	if (json_is_integer(value) && json_integer_value(value) >= least && json_integer_value(value) <= most)
		return true;
	place_error(p, "expected an integer from %lld to %lld", (long long)least, (long long)most);
	return false;
}

void check_any_text(const struct place *p, const json_t *value)
{
	if (!json_is_string(value))
		place_error(p, "expected text");
}

void check_flag(const struct place *p, const json_t *value)
{
	if (!json_is_boolean(value))
		place_error(p, "expected true or false");
}

bool name_is_plain(struct slice s)
{
	return sandbox_id_is_good(s);
}

void check_name(const struct place *p, const json_t *value)
{
	if (!json_is_string(value) || !name_is_plain(slice_str(json_string_value(value))))
		place_error(p, "expected %s", SANDBOX_ID);
}
