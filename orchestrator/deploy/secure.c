/* Finding them again: also each line of one that has several, and what a value looks like in JSON that is a part of a text, however often
 * it was escaped and in whatever way. A message may quote any of these. */
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

static bool remove_plain(const struct secure *s, json_t *text)
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

/* ---- escaped ones ---- */

/* The code unit of an escape with four hex digits, or 0: there is none, or it is NUL, which no value has. */
static unsigned unit_at(const char *at)
{
	unsigned unit = 0;
	if (at[0] != '\\' || at[1] != 'u')
		return 0;
	for (int i = 2; i < 6; i++) {
		const int digit = ascii_hex((unsigned char)at[i]);
		if (digit < 0)
			return 0;
		unit = unit << 4 | (unsigned)digit;
	}
	return unit;
}

/* UTF-8 of what is written there as one escape, or as two that are a pair; never longer than they are. */
static const char *take_unit(const char *at, char **out)
{
	const unsigned unit = unit_at(at), low = (unit & 0xfc00) == 0xd800 ? unit_at(at + 6) : 0;
	const bool is_pair = (low & 0xfc00) == 0xdc00;
	const unsigned letter = is_pair ? 0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff) : unit;
	const unsigned more = letter < 0x80      ? 0
			      : letter < 0x800   ? 1
			      : letter < 0x10000 ? 2
						 : 3; /* bytes after the first */
	static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
	*(*out)++ = (char)(first[more] | letter >> (6 * more));
	for (unsigned i = more; i-- > 0;)
		*(*out)++ = (char)(0x80 | (letter >> (6 * i) & 0x3f));
	return at + (is_pair ? 12 : 6);
}

/* One layer of escapes less, in place. */
static void unescape(char *text)
{
	static const char letters[] = "nrtbf", meant[] = "\n\r\t\b\f";
	char *out = text;
	for (const char *at = text; *at;) {
		const char *letter = at[0] == '\\' && at[1] ? strchr(letters, at[1]) : NULL;
		if (unit_at(at) > 0) {
			at = take_unit(at, &out);
		} else if (at[0] == '\\' && at[1]) {
			*out++ = letter ? meant[letter - letters] : at[1];
			at += 2;
		} else {
			*out++ = *at++;
		}
	}
	*out = '\0';
}

/* Is one of them in it, without so many layers of escapes? */
static bool has_escaped(const struct secure *s, char *text)
{
	for (unsigned layer = 0; layer < LIMIT_DEPLOY_NESTED && strchr(text, '\\'); layer++) {
		unescape(text);
		for (size_t i = 0; i < s->values.n; i++)
			if (strstr(text, s->values.list[i]))
				return true;
	}
	return false;
}

/* Where one of them is escaped, nobody knows where it begins: all of the text goes. */
static bool scrub_text(const struct secure *s, json_t *text)
{
	if (!remove_plain(s, text))
		return false;
	if (s->values.n == 0 || !strchr(json_string_value(text), '\\'))
		return true;
	char *copy = strdup(json_string_value(text));
	const bool ok = copy && (!has_escaped(s, copy) || json_string_set(text, SECURE_SHOWN) == 0);
	wipe_free(copy);
	return ok;
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
