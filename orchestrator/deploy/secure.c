/* Finding them again. What a value looks like within JSON counts too, and each line of one that has several: a message may quote any of
 * these. */
#include "orchestrator/deploy/secure.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/limits.h"
#include "core/base/slice.h"
#include "core/base/wipe.h"

static void add_word(struct secure *s, struct slice word)
{
	if (word.len >= LIMIT_DEPLOY_SECURE_LEAST)
		words_add(&s->values, "%.*s", SLICE_FMT(word));
}

static void add_text(struct secure *s, const json_t *text)
{
	struct slice rest = slice_of(json_string_value(text), json_string_length(text));
	add_word(s, rest);
	char *escaped = json_dumps(text, JSON_ENCODE_ANY);
	if (!escaped)
		s->values.failed = true;
	else
		add_word(s, slice_of(escaped + 1, strlen(escaped) - 2));
	wipe_free(escaped);
	while (rest.len > 0)
		add_word(s, slice_cut(&rest, '\n'));
}

static void add_all(struct secure *s, const json_t *value)
{
	size_t i;
	const char *key;
	json_t *item;
	if (json_is_string(value))
		add_text(s, value);
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
	return !s->values.failed;
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

static bool scrub_text(const struct secure *s, json_t *text)
{
	bool failed = false;
	for (size_t i = 0; i < s->values.n && !failed; i++) {
		char *clean = without(json_string_value(text), s->values.list[i], &failed);
		if (clean)
			failed = json_string_set(text, clean) != 0;
		free(clean);
	}
	return !failed;
}

bool secure_scrub(const struct secure *s, json_t *value)
{
	size_t i;
	const char *key;
	json_t *item;
	bool ok = !json_is_string(value) || scrub_text(s, value);
	json_array_foreach(value, i, item)
	{
		ok = secure_scrub(s, item) && ok;
	}
	json_object_foreach(value, key, item)
	{
		ok = secure_scrub(s, item) && ok;
	}
	return ok;
}

void secure_free(struct secure *s)
{
	words_wipe(&s->values);
}
