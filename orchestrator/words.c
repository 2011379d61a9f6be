/* Growing lists of owned words. */
#include "orchestrator/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/say.h"
#include "core/base/wipe.h"

static bool grow(struct words *w)
{
	if (w->n + 1 < w->room)
		return true;
	size_t room = w->room ? 2 * w->room : 32;
	char **list = realloc(w->list, room * sizeof(*list));
	if (!list)
		return false;
	w->list = list;
	w->room = room;
	return true;
}

void words_add(struct words *w, const char *format, ...)
{
	va_list args;
	char *word = NULL;
	va_start(args, format);
	int len = vasprintf(&word, format, args);
	va_end(args);
	if (len < 0 || !grow(w)) {
		if (len >= 0)
			free(word);
		if (!w->failed)
			say("no memory");
		w->failed = true;
		return;
	}
	w->list[w->n++] = word;
	w->list[w->n] = NULL;
}

bool words_has(const struct words *w, const char *word)
{
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->list[i], word) == 0)
			return true;
	return false;
}

const char *words_value(const struct words *w, const char *name)
{
	size_t len = strlen(name);
	const char *value = NULL;
	for (size_t i = 0; i < w->n; i++)
		if (strncmp(w->list[i], name, len) == 0 && w->list[i][len] == '=')
			value = w->list[i] + len + 1;
	return value;
}

const char *words_option(const struct words *w, const char *option)
{
	for (size_t i = w->n; i > 1; i -= 2)
		if (strcmp(w->list[i - 2], option) == 0)
			return w->list[i - 1];
	return NULL;
}

void words_free(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->list[i]);
	free(w->list);
	*w = (struct words){0};
}

void words_wipe(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		wipe_free(w->list[i]);
	free(w->list);
	*w = (struct words){0};
}
