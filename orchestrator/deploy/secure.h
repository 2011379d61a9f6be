/* Values of secure parameters: known only so that they can be taken out of whatever is shown. */
#ifndef CAGE_DEPLOY_SECURE_H
#define CAGE_DEPLOY_SECURE_H

#include <jansson.h>

#include "orchestrator/azure/hidden.h"

#define SECURE_SHOWN "(secure)"

struct secure {
	struct hidden hidden;
};

/* All text and all numbers in it. False: some of it is too short to be told from other text, or no memory; nothing may be shown then. */
bool secure_add(struct secure *s, const json_t *value);

/* Puts SECURE_SHOWN in the place of each of them, in all text of value, names and numbers too. False: no memory. */
bool secure_scrub(const struct secure *s, json_t *value);

void secure_free(struct secure *s);

#endif
