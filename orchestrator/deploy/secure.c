/* All text and all numbers of a parameter are hidden, but not the names of its members, which the template has too. What can be taken out
 * of a text alone is, else all of the text goes. */
#include "orchestrator/deploy/secure.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/limits.h"
#include "core/base/slice.h"
#include "core/base/wipe.h"
#include "orchestrator/azure/json_scrub.h"

static void add_number(struct secure *s, const json_t *number)
{
	char *text = json_number_text(number);
	if (text)
		hidden_add(&s->hidden, slice_str(text));
	s->hidden.values.failed = s->hidden.values.failed || !text;
	wipe_free(text);
}

static void add_all(struct secure *s, const json_t *value)
{
	size_t i;
	const char *key;
	json_t *item;
	if (json_is_string(value))
		hidden_add(&s->hidden, slice_of(json_string_value(value), json_string_length(value)));
	else if (json_is_number(value))
		add_number(s, value);
	json_array_foreach(value, i, item)
	{
		add_all(s, item);
	}
	json_object_foreach((json_t *)value, key, item)
	{
		add_all(s, item);
	}
}

/* What is short inside of an object is the name of a user, or a word such as "true". */
bool secure_add(struct secure *s, const json_t *value)
{
	if (json_is_string(value) && json_string_length(value) < LIMIT_DEPLOY_SECURE_LEAST)
		return false;
	add_all(s, value);
	return !hidden_has_failed(&s->hidden);
}

_Static_assert(sizeof(SECURE_SHOWN) - 1 <= LIMIT_DEPLOY_SECURE_LEAST,
	       "what stands in the place of a value is no longer");

/* A copy of text without the word, where it is in it; NULL: it is not, or no memory. */
static char *without(const char *text, const char *word, bool *failed)
{
	const char *at = strstr(text, word);
	if (!at)
		return NULL;
	char *out = malloc(strlen(text) + 1), *end = out;
	*failed = !out;
	for (; out && at; at = strstr(text, word)) {
		end = mempcpy(end, text, (size_t)(at - text));
		end = mempcpy(end, SECURE_SHOWN, sizeof(SECURE_SHOWN) - 1);
		text = at + strlen(word);
	}
	if (out)
		memcpy(end, text, strlen(text) + 1);
	return out;
}

static bool remove_plain(const struct secure *s, json_t *text)
{
	bool failed = false;
	for (size_t i = 0; i < s->hidden.values.n && !failed; i++) {
		char *clean = without(json_string_value(text), s->hidden.values.list[i], &failed);
		if (clean)
			failed = json_string_set(text, clean) != 0;
		free(clean);
	}
	return !failed;
}

/* Where one of them is escaped or encoded, nobody knows where it begins: all of the text goes. */
static bool scrub_text(const void *arg, json_t *text)
{
	const struct secure *s = arg;
	return remove_plain(s, text) &&
	       (!hidden_is_in(&s->hidden, json_string_value(text)) || json_string_set(text, SECURE_SHOWN) == 0);
}

bool secure_scrub(const struct secure *s, json_t *value)
{
	return json_scrub(value, scrub_text, s);
}

void secure_free(struct secure *s)
{
	hidden_wipe(&s->hidden);
}
