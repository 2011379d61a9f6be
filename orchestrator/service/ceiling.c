/* The strict form: each rule that lets something out must lie wholly within one rule of the ceiling, which is of the same kind.
 * Methods and paths must be among those of that rule word by word, where it lists any; secrets too, which are taken from where
 * the ceiling takes them. Limits are no higher, and a rule of the ceiling that counts has one rule below it: two would count
 * each for itself. Images are those of one of the ceiling's, with its digest and key where it has them. Pins, trust and private
 * addresses can't be had below a ceiling, since they change where a name leads. What would need more thought is refused. */
#include "orchestrator/service/ceiling.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/policy/load.h"
#include "orchestrator/service/check.h"
#include "orchestrator/service/node_json.h"

struct ceiling {
	struct arena arena;
	const struct policy *policy;
};

/* ---- rules ---- */

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

static bool action_covers(const struct policy_rule *high, const struct policy_rule *low)
{
	return high->action == low->action;
}

static bool methods_cover(const struct policy_rule *high, const struct policy_rule *low)
{
	return words_cover(high->methods, high->n_methods, low->methods, low->n_methods);
}

static bool paths_cover(const struct policy_rule *high, const struct policy_rule *low)
{
	return words_cover(high->paths, high->n_paths, low->paths, low->n_paths);
}

static bool addresses_cover(const struct policy_rule *high, const struct policy_rule *low)
{
	(void)high;
	return low->n_addresses == 0;
}

static bool mode_covers(const struct policy_rule *high, const struct policy_rule *low)
{
	return low->mode == POLICY_ENFORCE || high->mode == POLICY_OBSERVE;
}

static bool expiry_covers(const struct policy_rule *high, const struct policy_rule *low)
{
	return high->expires == 0 || (low->expires != 0 && low->expires <= high->expires);
}

static bool plaintext_covers(const struct policy_rule *high, const struct policy_rule *low)
{
	return !low->plaintext || high->plaintext;
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

/* Of another period it may let more out at once: only the same is compared. */
static bool rate_covers(const struct policy_rate *high, const struct policy_rate *low)
{
	return high->period_us == 0 || (low->period_us == high->period_us && low->count <= high->count);
}

static bool limits_cover(const struct policy_rule *high, const struct policy_rule *low)
{
	return low->limit_body <= high->limit_body && low->limit_hold <= high->limit_hold &&
	       rate_covers(&high->limit_rate, &low->limit_rate) && rate_covers(&high->limit_out, &low->limit_out) &&
	       (high->limit_rate.period_us == 0 || low->limit_burst <= high->limit_burst);
}

/* In the order in which the nearest rule of the ceiling is looked for: its first that does not fit is told. */
static const struct aspect {
	const char *name;
	bool (*covers)(const struct policy_rule *high, const struct policy_rule *low);
} aspects[] = {
	{"hosts", hosts_cover},         {"action", action_covers},       {"ports", ports_cover},
	{"methods", methods_cover},     {"paths", paths_cover},          {"secrets", secrets_cover},
	{"addresses", addresses_cover}, {"mode", mode_covers},           {"expires", expiry_covers},
	{"limits", limits_cover},       {"plaintext", plaintext_covers},
};

#define ASPECTS (sizeof(aspects) / sizeof(aspects[0]))

/* How far it fits: ASPECTS, wholly. */
static size_t fit(const struct policy_rule *high, const struct policy_rule *low)
{
	size_t i = 0;
	while (i < ASPECTS && aspects[i].covers(high, low))
		i++;
	return i;
}

static bool counts(const struct policy_rule *rule)
{
	return rule->limit_rate.period_us > 0 || rule->limit_out.period_us > 0;
}

/* Does the rule of the ceiling count, and has one of those before `end` as well? */
static bool is_taken(const struct policy_rule *high, const struct policy *p, size_t end)
{
	for (size_t i = 0; i < end && counts(high); i++)
		if (p->rules[i].action != RULE_DENY && fit(high, &p->rules[i]) == ASPECTS)
			return true;
	return false;
}

/* ---- what is told ---- */

/* A policy that was made from a list of names has one rule for each. */
static void tell(const struct policy *p, size_t i, enum policy_kind kind, const char *why, json_t *errors)
{
	char pointer[64], detail[LIMIT_POLICY_NAME + 600];
	const struct policy_rule *rule = &p->rules[i];
	const struct slice host = rule->n_hosts > 0 ? rule->hosts[0] : SLICE_NONE;
	snprintf(pointer, sizeof(pointer), "/network/domain_allowlist/%zu", i);
	if (kind == POLICY_MADE)
		snprintf(detail, sizeof(detail), "%.*s: %s", SLICE_FMT(host), why);
	else
		snprintf(detail, sizeof(detail), "rule %.*s (%.*s%s): %s", SLICE_FMT(rule->id), SLICE_FMT(host),
			 rule->n_hosts > 1 ? ", ..." : "", why);
	errors_add(errors, kind == POLICY_MADE ? pointer : NULL, detail);
}

static void compare_rule(const struct policy *ceiling, const struct policy *p, size_t i, enum policy_kind kind,
			 json_t *errors)
{
	char why[300];
	size_t best = 0;
	const struct policy_rule *nearest = NULL;
	for (size_t j = 0; j < ceiling->n_rules; j++) {
		const struct policy_rule *high = &ceiling->rules[j];
		size_t n = high->action == RULE_DENY ? 0 : fit(high, &p->rules[i]);
		if (n == ASPECTS && !is_taken(high, p, i))
			return;
		if (n > best) {
			best = n;
			nearest = high;
		}
	}
	if (!nearest)
		snprintf(why, sizeof(why), "no rule of this service's ceiling covers its hosts");
	else if (best == ASPECTS)
		snprintf(why, sizeof(why),
			 "rule %.*s of this service's ceiling counts, and another rule has it already",
			 SLICE_FMT(nearest->id));
	else
		snprintf(why, sizeof(why), "rule %.*s of this service's ceiling covers its hosts, but not its %s",
			 SLICE_FMT(nearest->id), aspects[best].name);
	tell(p, i, kind, why, errors);
}

/* ---- deny rules ---- */

static bool is_same(const struct slice *a, size_t n_a, const struct slice *b, size_t n_b)
{
	return n_a == n_b && words_cover(a, n_a, b, n_b) && words_cover(b, n_b, a, n_a);
}

static bool has_same_ports(const struct policy_rule *a, const struct policy_rule *b)
{
	return a->n_ports == b->n_ports && (a->n_ports == 0 || (ports_cover(a, b) && ports_cover(b, a)));
}

static bool has_rule(const struct policy *p, const struct policy_rule *deny)
{
	for (size_t i = 0; i < p->n_rules; i++) {
		const struct policy_rule *r = &p->rules[i];
		if (r->action == RULE_DENY && is_same(r->hosts, r->n_hosts, deny->hosts, deny->n_hosts) &&
		    is_same(r->methods, r->n_methods, deny->methods, deny->n_methods) &&
		    is_same(r->paths, r->n_paths, deny->paths, deny->n_paths) && has_same_ports(r, deny) &&
		    mode_covers(deny, r) && r->expires == 0)
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

/* ---- secrets ---- */

static bool is_same_hmac(const struct policy_hmac *a, const struct policy_hmac *b)
{
	if (!a || !b)
		return a == b;
	for (size_t i = 0; i < a->n_parts && a->n_parts == b->n_parts; i++)
		if (a->parts[i].what != b->parts[i].what || !slice_eq(a->parts[i].name, b->parts[i].name))
			return false;
	return a->n_parts == b->n_parts && slice_eq(a->header, b->header) && slice_eq(a->prefix, b->prefix) &&
	       a->base64 == b->base64 && slice_eq(a->joiner, b->joiner);
}

static bool is_same_oauth(const struct policy_oauth2 *a, const struct policy_oauth2 *b)
{
	if (!a || !b)
		return a == b;
	const struct target *to = &a->token_url, *other = &b->token_url;
	return to->scheme == other->scheme && host_eq(&to->host, &other->host) && to->port == other->port &&
	       slice_eq(to->path, other->path) && slice_eq(to->query, other->query) &&
	       slice_eq(a->client_id, b->client_id) && slice_eq(a->scope, b->scope) &&
	       slice_eq(a->audience, b->audience) && a->basic == b->basic;
}

static bool is_same_secret(const struct policy_secret *a, const struct policy_secret *b)
{
	return slice_eq(a->id, b->id) && a->from == b->from && slice_eq(a->source, b->source) &&
	       slice_eq(a->placeholder, b->placeholder) &&
	       is_same(a->headers, a->n_headers, b->headers, b->n_headers) &&
	       is_same(a->queries, a->n_queries, b->queries, b->n_queries) && a->in_path == b->in_path &&
	       a->in_body == b->in_body && a->require == b->require && a->use == b->use &&
	       slice_eq(a->key_id, b->key_id) && is_same_hmac(a->hmac, b->hmac) && is_same_oauth(a->oauth, b->oauth) &&
	       a->keep_us == b->keep_us;
}

static void compare_secrets(const struct policy *ceiling, const struct policy *p, json_t *errors)
{
	char detail[LIMIT_POLICY_NAME + 100];
	for (size_t i = 0; i < p->n_secrets; i++) {
		bool found = false;
		for (size_t j = 0; j < ceiling->n_secrets && !found; j++)
			found = is_same_secret(&ceiling->secrets[j], &p->secrets[i]);
		snprintf(detail, sizeof(detail), "secret %.*s is not as this service's ceiling has it",
			 SLICE_FMT(p->secrets[i].id));
		if (!found)
			errors_add(errors, NULL, detail);
	}
}

/* ---- images ---- */

/* A name without stars may lie below a pattern; a pattern has to be the same. */
static bool repository_covers(struct slice high, struct slice low)
{
	return slice_eq(high, low) || (slice_find(low, '*') == low.len && policy_path_matches(high, low));
}

static bool image_covers(const struct policy_image *high, const struct policy_image *low)
{
	return slice_eq(high->registry, low->registry) && repository_covers(high->repository, low->repository) &&
	       (high->digest.len == 0 || slice_eq(high->digest, low->digest)) &&
	       (high->key.len == 0 || slice_eq(high->key, low->key));
}

static void compare_images(const struct policy *ceiling, const struct policy *p, json_t *errors)
{
	char detail[LIMIT_IMAGE_REFERENCE + 100];
	for (size_t i = 0; i < p->n_images; i++) {
		bool found = false;
		for (size_t j = 0; j < ceiling->n_images && !found; j++)
			found = image_covers(&ceiling->images[j], &p->images[i]);
		snprintf(detail, sizeof(detail), "no image of this service's ceiling covers %.*s%.*s",
			 SLICE_FMT(p->images[i].registry), SLICE_FMT(p->images[i].repository));
		if (!found)
			errors_add(errors, NULL, detail);
	}
}

/* ---- the policy as a whole ---- */

static bool dns_covers(const struct policy_dns *high, const struct policy_dns *low)
{
	for (size_t i = 0; i < low->n_types; i++)
		if (!policy_lists_type(high, low->types[i]))
			return false;
	return low->mode == high->mode && (low->aliases == DNS_ALIASES_ALLOWED || high->aliases == DNS_ALIASES_ANY) &&
	       rate_covers(&high->tunnel_rate, &low->tunnel_rate) &&
	       rate_covers(&high->tunnel_bytes, &low->tunnel_bytes);
}

static void compare_whole(const struct policy *ceiling, const struct policy *p, json_t *errors)
{
	const struct slice *high = ceiling->inspectors, *low = p->inspectors;
	if (p->n_pins > 0 || p->trust.n_pems > 0 || p->n_resolvers > 0)
		errors_add(errors, NULL, "below a ceiling a policy can't have pins, trust or resolvers of its own");
	if (!slice_eq(*high, *low))
		errors_add(errors, NULL, "the inspectors have to be those of this service's ceiling, word by word");
	if (!dns_covers(&ceiling->dns, &p->dns) || (ceiling->bound && !p->bound))
		errors_add(errors, NULL, "dns lets out more than this service's ceiling does");
	if (!keeps_denials(ceiling, p))
		errors_add(errors, NULL, "each deny rule of the ceiling has to be in the policy too, as it is there");
}

/* One that lets nothing out is below every ceiling; one that observes lets out what no rule speaks of. */
bool ceiling_check(const struct ceiling *c, const struct policy *p, enum policy_kind kind, json_t *errors)
{
	const size_t before = json_array_size(errors);
	bool lets_out = false;
	if (!c)
		return true;
	for (size_t i = 0; i < p->n_rules; i++) {
		if (p->rules[i].action == RULE_DENY)
			continue;
		lets_out = true;
		compare_rule(c->policy, p, i, kind, errors);
	}
	if (p->mode == POLICY_OBSERVE && c->policy->mode != POLICY_OBSERVE) {
		lets_out = true;
		errors_add(errors, NULL, "below this service's ceiling a policy can't only observe");
	}
	compare_secrets(c->policy, p, errors);
	compare_images(c->policy, p, errors);
	if (lets_out)
		compare_whole(c->policy, p, errors);
	return json_array_size(errors) == before;
}

/* ---- loading ---- */

/* What the section says, to be compared: a slice in the arena of the policy. */
static const void *read_inspectors(struct loader *l, const struct node *section)
{
	json_t *json = section ? node_json(section) : NULL;
	char *text = json ? json_dumps(json, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
	struct slice *out = arena_alloc(l->arena, sizeof(*out));
	if (out)
		*out = text ? arena_dup(l->arena, slice_str(text)) : SLICE_NONE;
	if (!out || (section && !out->ptr)) {
		error_at(l->errs, (struct where){l->path, 0, 0}, "inspectors: can't be compared with the ceiling's");
		out = NULL;
	}
	json_decref(json);
	free(text);
	return out;
}

const struct policy_readers ceiling_readers = {.inspectors = read_inspectors};

struct ceiling *ceiling_load(const char *path, struct policy_errors *errs)
{
	struct ceiling *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	arena_init(&c->arena, LIMIT_POLICY_REGION);
	c->policy = policy_load(path, &c->arena, clock_wall_s(), &ceiling_readers, errs);
	if (!c->policy)
		ceiling_free(&c);
	return c;
}

void ceiling_free(struct ceiling **c)
{
	if (*c)
		arena_free(&(*c)->arena);
	free(*c);
	*c = NULL;
}

const char *ceiling_sha(const struct ceiling *c)
{
	return c->policy->sha;
}
