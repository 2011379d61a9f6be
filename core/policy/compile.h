/* The lookup tables of a compiled policy: what the maps of struct policy hold. */
#ifndef CAGE_POLICY_COMPILE_H
#define CAGE_POLICY_COMPILE_H

#include "core/policy/policy.h"

/* An allow or tunnel rule under one of its path patterns: the unit that has a place in the order. */
struct candidate {
	const struct policy_rule *rule;
	struct slice pattern; /* empty: any path */
	struct slice prefix;  /* of the pattern */
	size_t weight;        /* of the pattern */
};

/* Everything that is said about one host, or about all names under one domain. */
struct host_rules {
	const struct policy_rule *first; /* of all rules that name it */
	const struct policy_rule **denies;
	size_t n_denies;
	struct candidate *allows; /* most specific first */
	size_t n_allows;
	bool has_tunnel;
};

/* The entry of one host pattern as a rule lists it, or NULL. */
struct host_rules *host_rules_of(const struct policy *p, struct slice pattern);

/* The entries that a host falls under: the exact one first, then wildcards from long to short. */
#define HOST_ENTRIES (LIMIT_HOST / 2 + 2)

struct host_entries {
	const struct host_rules *list[HOST_ENTRIES];
	struct slice names[HOST_ENTRIES]; /* that each is the entry of: the host, or a domain that it lies under */
	size_t n;
};

void host_entries_find(const struct policy *p, const struct host *host, struct host_entries *out);

/* Adds the wildcard entries of the domains that a name lies under, without the name itself. */
void host_entries_add_parents(const struct policy *p, struct slice name, struct host_entries *out);

#endif
