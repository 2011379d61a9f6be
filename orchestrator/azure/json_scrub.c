/* Whatever holds an item puts another in its place, since neither a number nor a name can be changed. */
#include "orchestrator/azure/json_scrub.h"

#include <stdlib.h>
#include <string.h>

struct scrub {
	json_scrub_text *each;
	const void *arg;
};

static bool scrub_all(const struct scrub *s, json_t *value);

char *json_number_text(const json_t *number)
{
	return json_dumps(number, JSON_ENCODE_ANY);
}

/* A new string if it is changed; NULL: it is not, or *failed. */
static json_t *other_text(const struct scrub *s, const char *text, bool *failed)
{
	json_t *made = text ? json_string(text) : NULL;
	*failed = !made || !s->each(s->arg, made);
	if (!*failed && strcmp(json_string_value(made), text) != 0)
		return made;
	json_decref(made);
	return NULL;
}

/* What an item is to be replaced by; NULL: by nothing. */
static json_t *other_item(const struct scrub *s, json_t *item, bool *failed)
{
	if (!json_is_number(item)) {
		*failed = !scrub_all(s, item);
		return NULL;
	}
	char *text = json_number_text(item);
	json_t *made = other_text(s, text, failed);
	free(text);
	return made;
}

static bool scrub_item(const struct scrub *s, json_t *array, size_t i)
{
	bool failed;
	json_t *other = other_item(s, json_array_get(array, i), &failed);
	return !failed && (!other || json_array_set_new(array, i, other) == 0);
}

/* The new member comes behind all others, and is met once more. */
static bool rename_member(json_t *object, const char *key, const char *name)
{
	const bool ok = json_object_set(object, name, json_object_get(object, key)) == 0;
	return json_object_del(object, key) == 0 && ok;
}

static bool scrub_member(const struct scrub *s, json_t *object, const char *key, json_t *item)
{
	bool failed, has_no_name;
	json_t *other = other_item(s, item, &failed), *name = other_text(s, key, &has_no_name);
	bool ok = !failed && !has_no_name && (!other || json_object_set_new(object, key, other) == 0);
	if (name)
		ok = rename_member(object, key, json_string_value(name)) && ok;
	json_decref(name);
	return ok;
}

static bool scrub_all(const struct scrub *s, json_t *value)
{
	void *next;
	const char *key;
	json_t *item;
	bool ok = !json_is_string(value) || s->each(s->arg, value);
	for (size_t i = 0; i < json_array_size(value); i++)
		ok = scrub_item(s, value, i) && ok;
	json_object_foreach_safe(value, next, key, item)
	{
		ok = scrub_member(s, value, key, item) && ok;
	}
	return ok;
}

bool json_scrub(json_t *value, json_scrub_text *each, const void *arg)
{
	const struct scrub s = {each, arg};
	return scrub_all(&s, value);
}
