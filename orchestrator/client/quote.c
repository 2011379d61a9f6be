/* Quoting for sh: all of a word stands between single quotes, but for those in it. */
#include "orchestrator/client/quote.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/limits.h"
#include "core/base/text.h"

/* Signs that no shell looks at. */
static bool is_plain(const char *word)
{
	for (const char *c = word; *c; c++)
		if (!ascii_is_unreserved((unsigned char)*c) && !strchr("/=:,@+", *c))
			return false;
	return word[0] != '\0' && !strchr("~=", word[0]);
}

/* What looks like an assignment before the command would be one. */
static void put_word(struct text *t, const char *word, bool is_first)
{
	if (is_plain(word) && !(is_first && strchr(word, '='))) {
		text_put(t, slice_str(word));
		return;
	}
	text_put_char(t, '\'');
	for (const char *c = word; *c; c++) {
		if (*c == '\'')
			text_put(t, SLICE("'\\''"));
		else
			text_put_char(t, *c);
	}
	text_put_char(t, '\'');
}

char *shell_quote(char *const *words)
{
	size_t room = 1;
	for (char *const *w = words; *w; w++)
		room += 4 * strlen(*w) + 3;
	char *out = room <= LIMIT_CLIENT_TEXT ? malloc(room) : NULL;
	struct text t = text_in(out, room - 1);
	if (!out)
		return NULL;
	if (words[0] && !words[1])
		text_put(&t, slice_str(words[0]));
	for (char *const *w = words; words[1] && *w; w++) {
		if (t.len > 0)
			text_put_char(&t, ' ');
		put_word(&t, *w, w == words);
	}
	out[t.len] = '\0';
	return out;
}
