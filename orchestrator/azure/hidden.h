/* Values that were sent and that nothing which is shown may have: finding them again in what was answered, as they are, and as they look in
 * JSON, in an address or a form, or in base64, and in one of these inside of another: base64 of another form where it begins with a word of the
 * text and has no breaks. A message may quote any of them. */
#ifndef CAGE_AZURE_HIDDEN_H
#define CAGE_AZURE_HIDDEN_H

#include "core/base/slice.h"
#include "orchestrator/words.h"

struct hidden {
	struct words values; /* those that are long enough, and each of their lines that is */
	struct words digits; /* what base64 of something with a value in it has, wherever the value begins */
};

/* What is shorter than LIMIT_DEPLOY_SECURE_LEAST can't be told from other text, and is passed over. */
void hidden_add(struct hidden *h, struct slice value);

/* There was no memory: nobody knows what is hidden. */
static inline bool hidden_has_failed(const struct hidden *h)
{
	return h->values.failed || h->digits.failed;
}

/* Is one of them in it, in whatever form? True also where that can't be told: without memory, and for a text that has too many layers. */
bool hidden_is_in(const struct hidden *h, const char *text);

void hidden_wipe(struct hidden *h);

#endif
