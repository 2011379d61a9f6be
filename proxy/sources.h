/* Where values come from: variables of our environment, and files. The master reads them, when a policy is loaded and, the
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

/* The policy comes into force, and is in the list: all its files are read again. false with a message on stderr: a value
 * can't be kept. */
bool sources_use(struct sources *s, const struct policy *p, const struct policy_list *all);

/* Now and then: reads files of these policies that have changed, and forgets what has been kept long enough. Says on
 * stderr what came, changed and went. */
void sources_look(struct sources *s, const struct policy_list *all);

#endif
