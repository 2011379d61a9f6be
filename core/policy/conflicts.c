/* Rules that contradict each other. Two allow rules tie when some request fits both and nothing says which is the more
 * specific: same host pattern, a port in common, methods either listed in both with one in common or in neither, and
 * path patterns of the same weight that can match the same path. A tunnel must have its hosts and ports for itself.
 * Expired rules count: whether a policy loads does not depend on the day. */
#include "core/policy/compile.h"
#include "core/policy/load.h"
#include "core/policy/pattern.h"

struct search {
	struct loader *l;
	bool *told;     /* for each rule: it has its error already */
	uint64_t steps; /* work done */
	bool gave_up;
};

/* One more comparison. False, with an error, once there was too much work. */
static bool search_step(struct search *s)
{
	if (s->gave_up)
		return false;
	s->gave_up = ++s->steps > LIMIT_POLICY_COMPARE;
	if (s->gave_up)
		error_at(s->l->errs, (struct where){s->l->path, 0, 0},
			 "too many rules for the same host: they can't all be compared with each other");
	return !s->gave_up;
}

static bool ports_meet(const struct policy_rule *a, const struct policy_rule *b)
{
	for (size_t i = 0, j = 0; i < a->n_ports && j < b->n_ports;) {
		if (a->ports[i] == b->ports[j])
			return true;
		a->ports[i] < b->ports[j] ? i++ : j++;
	}
	return false;
}

static bool methods_meet(const struct policy_rule *a, const struct policy_rule *b)
{
	for (size_t i = 0; i < a->n_methods; i++)
		for (size_t j = 0; j < b->n_methods; j++)
			if (slice_eq(a->methods[i], b->methods[j]))
				return true;
	return a->n_methods == 0 && b->n_methods == 0;
}

static bool paths_meet(struct search *s, const struct candidate *a, const struct candidate *b)
{
	return a->pattern.len == 0 || b->pattern.len == 0 || patterns_overlap(a->pattern, b->pattern, &s->steps);
}

/* The node of a rule that gets an error now; NULL when it had one. */
static const struct node *rule_to_tell(struct search *s, const struct policy_rule *r)
{
	size_t i = (size_t)(r - s->l->policy->rules);
	if (s->told[i])
		return NULL;
	s->told[i] = true;
	return s->l->rule_nodes[i];
}

static struct quoted pattern_text(const struct candidate *c)
{
	return c->pattern.len > 0 ? quote(c->pattern) : (struct quoted){"any path"};
}

static void tell_tie(struct search *s, const struct candidate *a, const struct candidate *b, struct slice host)
{
	const struct candidate *late = a->rule > b->rule ? a : b, *early = late == a ? b : a;
	const struct node *node = rule_to_tell(s, late->rule);
	if (node)
		node_error(s->l->errs, node, "ties with rule %s at %s: %s and %s are equally specific",
			   quote(early->rule->id).text, quote(host).text, pattern_text(late).text,
			   pattern_text(early).text);
}

/* Can what b matches start with what all of a's paths start with? Equal ranks are sorted so that these stand behind
 * a. */
static bool may_tie(const struct candidate *a, const struct candidate *b)
{
	return a->weight == b->weight && (a->rule->n_methods > 0) == (b->rule->n_methods > 0) &&
	       slice_starts(b->prefix, a->prefix);
}

static void find_ties(struct search *s, const struct host_rules *entry, struct slice host)
{
	for (size_t i = 0; i < entry->n_allows; i++) {
		const struct candidate *a = &entry->allows[i];
		for (size_t j = i + 1; j < entry->n_allows && may_tie(a, &entry->allows[j]); j++) {
			const struct candidate *b = &entry->allows[j];
			if (!search_step(s))
				return;
			if (a->rule == b->rule || a->rule->action != RULE_ALLOW || b->rule->action != RULE_ALLOW)
				continue;
			if (ports_meet(a->rule, b->rule) && methods_meet(a->rule, b->rule) && paths_meet(s, a, b))
				tell_tie(s, a, b, host);
		}
	}
}

static void tell_tunnel(struct search *s, const struct policy_rule *a, const struct policy_rule *b, struct slice host)
{
	bool a_is_tunnel = a->action == RULE_TUNNEL && (b->action != RULE_TUNNEL || a > b);
	const struct policy_rule *tunnel = a_is_tunnel ? a : b, *other = a_is_tunnel ? b : a;
	const struct node *node = rule_to_tell(s, tunnel);
	if (node)
		node_error(s->l->errs, node, "the tunnel overlaps rule %s at %s: both match its host and port",
			   quote(other->id).text, quote(host).text);
}

static void find_tunnel_overlaps(struct search *s, const struct host_rules *a, const struct host_rules *b,
				 struct slice host)
{
	if (!a->has_tunnel && !b->has_tunnel)
		return;
	for (size_t i = 0; i < a->n_allows; i++) {
		for (size_t j = 0; j < b->n_allows; j++) {
			const struct policy_rule *ra = a->allows[i].rule, *rb = b->allows[j].rule;
			if (!search_step(s))
				return;
			bool has_tunnel = ra->action == RULE_TUNNEL || rb->action == RULE_TUNNEL;
			if (ra != rb && has_tunnel && ports_meet(ra, rb))
				tell_tunnel(s, ra, rb, host);
		}
	}
}

/* Names meet when they are the same or one lies under the other's wildcard; looking upwards from each finds all. */
static void search_entry(struct search *s, const struct host_rules *entry, struct slice host)
{
	struct host_entries parents = {.n = 0};
	struct slice name = slice_starts(host, SLICE("*.")) ? slice_from(host, 2) : host;
	host_entries_add_parents(s->l->policy, name, &parents);
	find_tunnel_overlaps(s, entry, entry, host);
	for (size_t e = 0; e < parents.n; e++)
		find_tunnel_overlaps(s, entry, parents.list[e], host);
	find_ties(s, entry, host);
}

/* Each entry once, in the order of the rules, so that the errors come in that order. */
void conflicts_check(struct loader *l)
{
	const struct policy *p = l->policy;
	struct search s = {.l = l, .told = load_scratch(l, p->n_rules, sizeof(bool))};
	if (!s.told)
		return;
	for (size_t i = 0; i < p->n_rules; i++) {
		const struct policy_rule *r = &p->rules[i];
		for (size_t h = 0; h < r->n_hosts; h++) {
			const struct host_rules *entry = host_rules_of(p, r->hosts[h]);
			if (entry->first == r)
				search_entry(&s, entry, r->hosts[h]);
		}
	}
}
