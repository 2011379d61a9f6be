/* From rules to lookup tables: one entry for each host pattern, with its deny rules, and its allow and tunnel rules in
 * the order in which they win. Two passes over the rules: the first counts, the second fills. */
#include "core/policy/compile.h"

#include <stdlib.h>

#include "core/policy/load.h"
#include "core/policy/pattern.h"

static bool is_wildcard(struct slice host)
{
	return slice_starts(host, SLICE("*."));
}

static struct slice map_key(struct slice pattern)
{
	return is_wildcard(pattern) ? slice_from(pattern, 2) : pattern;
}

struct host_rules *host_rules_of(const struct policy *p, struct slice pattern)
{
	return map_get(is_wildcard(pattern) ? &p->wildcard : &p->exact, map_key(pattern));
}

/* The entry of a host pattern, made when it is new; NULL with an error. */
static struct host_rules *entry_for(struct loader *l, const struct policy_rule *r, struct slice pattern)
{
	struct host_rules *entry = host_rules_of(l->policy, pattern);
	if (entry)
		return entry;
	entry = load_keep(l, 1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->first = r;
	if (map_add(is_wildcard(pattern) ? &l->policy->wildcard : &l->policy->exact, map_key(pattern), entry) ==
	    CAGE_OK)
		return entry;
	load_no_memory(l);
	return NULL;
}

static bool init_maps(struct loader *l)
{
	struct policy *p = l->policy;
	size_t exact = 0, wildcard = 0;
	for (size_t i = 0; i < p->n_rules; i++)
		for (size_t h = 0; h < p->rules[i].n_hosts; h++)
			is_wildcard(p->rules[i].hosts[h]) ? wildcard++ : exact++;
	if (map_init(&p->exact, l->arena, exact) == CAGE_OK && map_init(&p->wildcard, l->arena, wildcard) == CAGE_OK)
		return true;
	load_no_memory(l);
	return false;
}

static bool count_rule(struct loader *l, const struct policy_rule *r)
{
	for (size_t h = 0; h < r->n_hosts; h++) {
		struct host_rules *entry = entry_for(l, r, r->hosts[h]);
		if (!entry)
			return false;
		if (r->action == RULE_DENY)
			entry->n_denies++;
		else
			entry->n_allows += r->n_paths > 0 ? r->n_paths : 1;
		entry->has_tunnel |= r->action == RULE_TUNNEL;
	}
	return true;
}

/* Gives an entry its arrays, of the size that was counted, and starts counting again. */
static bool entry_make_room(struct loader *l, struct host_rules *entry)
{
	if (entry->denies || entry->allows)
		return true;
	entry->denies = load_keep(l, entry->n_denies, sizeof(struct policy_rule *));
	entry->allows = load_keep(l, entry->n_allows, sizeof(struct candidate));
	entry->n_denies = entry->n_allows = 0;
	return entry->denies && entry->allows;
}

static void entry_add(struct host_rules *entry, const struct policy_rule *r)
{
	if (r->action == RULE_DENY) {
		entry->denies[entry->n_denies++] = r;
		return;
	}
	if (r->n_paths == 0)
		entry->allows[entry->n_allows++] = (struct candidate){.rule = r};
	for (size_t i = 0; i < r->n_paths; i++)
		entry->allows[entry->n_allows++] =
			(struct candidate){r, r->paths[i], pattern_prefix(r->paths[i]), pattern_weight(r->paths[i])};
}

static bool fill_rule(struct loader *l, const struct policy_rule *r)
{
	for (size_t h = 0; h < r->n_hosts; h++) {
		struct host_rules *entry = host_rules_of(l->policy, r->hosts[h]);
		if (!entry_make_room(l, entry))
			return false;
		entry_add(entry, r);
	}
	return true;
}

/* Heavier patterns first, then listed methods. Among equals, which never match the same request, by what their paths
 * start with: so those that could meet stand together for the search for ties. */
static int compare_candidates(const void *va, const void *vb)
{
	const struct candidate *a = va, *b = vb;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	bool a_listed = a->rule->n_methods > 0, b_listed = b->rule->n_methods > 0;
	if (a_listed != b_listed)
		return a_listed ? -1 : 1;
	int order = slice_compare(a->prefix, b->prefix);
	return order != 0 ? order : (a->rule > b->rule) - (a->rule < b->rule);
}

static void sort_entries(const struct map *map)
{
	for (size_t i = 0; map->count > 0 && i <= map->mask; i++) {
		struct host_rules *entry = map->slots[i].value;
		if (entry)
			qsort(entry->allows, entry->n_allows, sizeof(*entry->allows), compare_candidates);
	}
}

/* One bit for each port, since very many rules may list the same few. */
static bool list_ports(struct loader *l)
{
	struct policy *p = l->policy;
	bool *listed = load_scratch(l, UINT16_MAX + 1, sizeof(*listed));
	if (!listed)
		return false;
	for (size_t i = 0; i < p->n_rules; i++)
		for (size_t j = 0; j < p->rules[i].n_ports; j++)
			listed[p->rules[i].ports[j]] = true;
	size_t n = 0;
	for (size_t port = 0; port <= UINT16_MAX; port++)
		n += listed[port];
	p->listed_ports = load_keep(l, n, sizeof(*p->listed_ports));
	if (!p->listed_ports)
		return false;
	for (size_t port = 0; port <= UINT16_MAX; port++)
		if (listed[port])
			p->listed_ports[p->n_listed_ports++] = (uint16_t)port;
	return true;
}

bool policy_compile(struct loader *l)
{
	struct policy *p = l->policy;
	if (!init_maps(l) || !list_ports(l))
		return false;
	for (size_t i = 0; i < p->n_rules; i++)
		if (!count_rule(l, &p->rules[i]))
			return false;
	for (size_t i = 0; i < p->n_rules; i++)
		if (!fill_rule(l, &p->rules[i]))
			return false;
	sort_entries(&p->exact);
	sort_entries(&p->wildcard);
	return true;
}
