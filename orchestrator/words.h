/* A list of words that ends with NULL, as exec wants arguments and environments. */
#ifndef CAGE_ORCHESTRATOR_WORDS_H
#define CAGE_ORCHESTRATOR_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct words {
	char **list; /* NULL-terminated; NULL while there is none */
	size_t n, room;
	bool failed; /* no memory: nothing may be done with it */
};

/* Adds one word, made like printf makes it. */
void words_add(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool words_has(const struct words *w, const char *word);

/* The value of "NAME=..." in the list, the last one of them; NULL: there is none. */
const char *words_value(const struct words *w, const char *name);

/* The word behind the last OPTION, in a list of options that have one value each; NULL: it is not there. */
const char *words_option(const struct words *w, const char *option);

void words_free(struct words *w);

/* The same for words that carry secrets. */
void words_wipe(struct words *w);

#endif
