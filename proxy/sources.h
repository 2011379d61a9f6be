/* Where values come from: variables of our environment, files, and vaults that are read elsewhere (keyvault.h). The master reads them, when a policy is loaded and, the
 * files, when they change, and puts them into the vault. A variable can be read once only, since nobody else shall find it:
 * it is taken out of the environment then, and its value stays in the vault. */
#ifndef CAGE_PROXY_SOURCES_H
#define CAGE_PROXY_SOURCES_H

#include "core/policy/policy.h"
#include "proxy/vault.h"

struct sources;

/* All policies that are in force. */
struct policy_list {
	const struct policy *const *list;
	size_t n;
};

/* NULL: no memory. The vault outlives it. */
struct sources *sources_new(struct vault *v);
void sources_free(struct sources **s);

/* For policy_load(), with the sources as arg. What it gives is good until the next call, or sources_done(). */
policy_value_reader sources_value;

/* No value that was read is left outside of the vault. */
void sources_done(struct sources *s);

/* Gives each secret of a policy its slot. false: all are taken by others that are still kept. */
bool sources_assign(struct sources *s, struct policy *p);

/* The policy comes into force, and is in the list: all its files are read again, and what it does not take of the values that are
 * there is lost. false with a message on stderr: a value can't be kept. */
bool sources_use(struct sources *s, const struct policy *p, const struct policy_list *all);

/* A value of a secret that somebody else has read. NULL, or why it can't be used, in words that follow "it"; *is_new: it is not the
 * one that was in use. */
const char *sources_put(struct sources *s, const struct policy *p, const struct policy_secret *secret,
			struct slice value, bool *is_new);

/* Is there a value for it now? */
bool sources_has(const struct sources *s, const struct policy_secret *secret);

/* Now and then: reads files of these policies that have changed, and forgets what has been kept long enough. Says on
 * stderr what came, changed and went. */
void sources_look(struct sources *s, const struct policy_list *all);

#endif
