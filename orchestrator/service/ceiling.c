/* The strict form: each rule that lets something out must lie wholly within one rule of the ceiling, which is of the same kind.
 * Methods and paths must be among those of that rule word by word, where it lists any; secrets too. Pins, trust and private
 * addresses can't be had below a ceiling, since they change where a name leads. What would need more thought is refused. */
#include "orchestrator/service/ceiling.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/policy/errors.h"
#include "orchestrator/service/check.h"

static bool has_word(const struct slice *list, size_t n, struct slice word)
{
	for (size_t i = 0; i < n; i++)
		if (slice_eq(list[i], word))
			return true;
	return false;
}

/* "*.x" covers itself and each name below x, also "*.y.x"; never x. */
static bool host_covers(struct slice high, struct slice low)
{
	if (slice_eq(high, low))
		return true;
	return slice_starts(high, SLICE("*.")) && low.len > high.len - 1 && slice_ends(low, slice_from(high, 1));
}

static bool hosts_cover(const struct policy_rule *high, const struct policy_rule *low)
{
	for (size_t i = 0; i < low->n_hosts; i++) {
		bool found = false;
		for (size_t j = 0; j < high->n_hosts && !found; j++)
			found = host_covers(high->hosts[j], low->hosts[i]);
		if (!found)
			return false;
	}
	return true;
}

static bool ports_cover(const struct policy_rule *high, const struct policy_rule *low)
{
	for (size_t i = 0; i < low->n_ports; i++) {
		bool found = false;
		for (size_t j = 0; j < high->n_ports && !found; j++)
			found = high->ports[j] == low->ports[i];
		if (!found)
			return false;
	}
	return low->n_ports > 0;
}

/* None in the ceiling's: any. */
static bool words_cover(const struct slice *high, size_t n_high, const struct slice *low, size_t n_low)
{
	for (size_t i = 0; i < n_low && n_high > 0; i++)
		if (!has_word(high, n_high, low[i]))
			return false;
	return n_high == 0 || n_low > 0;
}

static bool secrets_cover(const struct policy_rule *high, const struct policy_rule *low)
{
	for (size_t i = 0; i < low->n_secrets; i++) {
		bool found = false;
		for (size_t j = 0; j < high->n_secrets && !found; j++)
			found = slice_eq(high->secrets[j]->id, low->secrets[i]->id);
		if (!found)
			return false;
	}
	return true;
}

static bool rule_covers(const struct policy_rule *high, const struct policy_rule *low)
{
	return high->action == low->action && hosts_cover(high, low) && ports_cover(high, low) &&
	       words_cover(high->methods, high->n_methods, low->methods, low->n_methods) &&
	       words_cover(high->paths, high->n_paths, low->paths, low->n_paths) && secrets_cover(high, low) &&
	       low->n_addresses == 0 && (low->mode == POLICY_ENFORCE || high->mode == POLICY_OBSERVE) &&
	       (high->expires == 0 || (low->expires != 0 && low->expires <= high->expires)) &&
	       (!low->plaintext || high->plaintext);
}

static bool is_denied(const struct policy *ceiling)
{
	for (size_t i = 0; i < ceiling->n_rules; i++)
		if (ceiling->rules[i].action == RULE_DENY)
			return true;
	return false;
}

static bool is_covered(const struct policy *ceiling, const struct policy_rule *rule)
{
	for (size_t i = 0; i < ceiling->n_rules; i++)
		if (rule_covers(&ceiling->rules[i], rule))
			return true;
	return false;
}

static bool is_same(const struct slice *a, size_t n_a, const struct slice *b, size_t n_b)
{
	return n_a == n_b && words_cover(a, n_a, b, n_b) && words_cover(b, n_b, a, n_a);
}

static bool has_rule(const struct policy *p, const struct policy_rule *deny)
{
	for (size_t i = 0; i < p->n_rules; i++) {
		const struct policy_rule *r = &p->rules[i];
		if (r->action == RULE_DENY && is_same(r->hosts, r->n_hosts, deny->hosts, deny->n_hosts) &&
		    is_same(r->methods, r->n_methods, deny->methods, deny->n_methods) &&
		    is_same(r->paths, r->n_paths, deny->paths, deny->n_paths) && r->n_ports == deny->n_ports &&
		    r->expires == 0)
			return true;
	}
	return false;
}

static bool keeps_denials(const struct policy *ceiling, const struct policy *p)
{
	for (size_t i = 0; i < ceiling->n_rules; i++)
		if (ceiling->rules[i].action == RULE_DENY && !has_rule(p, &ceiling->rules[i]))
			return false;
	return true;
}

static void compare(const struct policy *ceiling, const struct policy *p, json_t *errors)
{
	char detail[200];
	bool lets_out = false;
	for (size_t i = 0; i < p->n_rules; i++) {
		const struct policy_rule *rule = &p->rules[i];
		lets_out |= rule->action != RULE_DENY;
		if (rule->action == RULE_DENY || is_covered(ceiling, rule))
			continue;
		snprintf(detail, sizeof(detail), "rule %.*s allows what the ceiling of this service does not",
			 SLICE_FMT(rule->id));
		errors_add(errors, NULL, detail);
	}
	if (p->n_pins > 0 || p->trust.n_pems > 0 || p->n_resolvers > 0)
		errors_add(errors, NULL, "below a ceiling a policy can't have pins, trust or resolvers of its own");
	if (lets_out && is_denied(ceiling) && !keeps_denials(ceiling, p))
		errors_add(errors, NULL, "each deny rule of the ceiling has to be in the policy too");
}

bool ceiling_check(const struct config *c, const struct policy *p, json_t *errors)
{
	size_t before = json_array_size(errors);
	if (!c->ceiling[0])
		return true;
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	struct arena arena;
	arena_init(&arena, LIMIT_POLICY_REGION);
	const struct policy *ceiling = errs ? policy_load(c->ceiling, &arena, clock_wall_s(), NULL, errs) : NULL;
	if (ceiling)
		compare(ceiling, p, errors);
	else
		errors_add(errors, NULL, "the ceiling of this service can't be read; nothing is allowed");
	arena_free(&arena);
	free(errs);
	return json_array_size(errors) == before;
}
