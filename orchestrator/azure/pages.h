/* A list of ARM, which comes a page after the other. Who wants it asks for `next` until that is empty, and gives each answer here. */
#ifndef CAGE_AZURE_PAGES_H
#define CAGE_AZURE_PAGES_H

#include <jansson.h>

#include "core/base/limits.h"

struct pages {
	char next[LIMIT_ARM_URL]; /* where the next page is; "": there is none */
	unsigned n;               /* of them that were taken */
	size_t items;             /* in them */
};

typedef void pages_item(void *arg, const json_t *item);

void pages_begin(struct pages *p, const char *where);

/* Each item of a good answer. NULL, or what is wrong with it: then the list is not whole. */
const char *pages_take(struct pages *p, const json_t *answer, pages_item *each, void *arg);

#endif
