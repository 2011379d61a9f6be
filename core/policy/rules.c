/* The section `rules`: from a list of maps to rules with every value checked and every default filled in. */
#include "core/policy/load.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/policy/pattern.h"

static void read_id(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	if (value->kind != NODE_TEXT || !word_is_plain(value->text, LIMIT_RULE_ID)) {
		node_error(l->errs, value, "expected 1 to %d letters, digits, '.', '_' or '-', got %s", LIMIT_RULE_ID,
			   node_describe(value).text);
		return;
	}
	if (map_get(&l->ids, value->text)) {
		node_error(l->errs, value, "the id %s is taken by another rule", quote(value->text).text);
		return;
	}
	r->id = arena_dup(l->arena, value->text);
	if (!r->id.ptr || map_add(&l->ids, r->id, r) != CAGE_OK)
		load_no_memory(l);
}

static void read_action(struct loader *l, const struct node *value, void *out)
{
	static const struct slice words[] = {
		[RULE_ALLOW] = WORD("allow"), [RULE_DENY] = WORD("deny"), [RULE_TUNNEL] = WORD("tunnel")};
	struct policy_rule *r = out;
	size_t i;
	if (choice_read(l, value, words, 3, &i))
		r->action = (enum rule_action)i;
}

/* The same host twice, perhaps in two spellings, is one entry too many. */
static bool host_is_new(struct loader *l, struct map *seen, const struct node *item, struct slice host)
{
	if (map_get(seen, host)) {
		node_error(l->errs, item, "%s is listed twice", quote(host).text);
		return false;
	}
	if (map_add(seen, host, l) == CAGE_OK)
		return true;
	load_no_memory(l);
	return false;
}

static void read_hosts(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	struct map seen;
	if (!list_check(l, value, "hosts"))
		return;
	r->hosts = load_keep(l, value->count, sizeof(*r->hosts));
	if (!r->hosts)
		return;
	if (map_init(&seen, &l->scratch, value->count) != CAGE_OK) {
		load_no_memory(l);
		return;
	}
	for (const struct node *item = value->first; item; item = item->next) {
		struct slice host;
		if (host_pattern_read(l, item, &host) && host_is_new(l, &seen, item, host))
			r->hosts[r->n_hosts++] = host;
	}
}

static int compare_ports(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

static void read_ports(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	if (!list_check(l, value, "ports"))
		return;
	r->ports = load_keep(l, value->count, sizeof(*r->ports));
	if (!r->ports)
		return;
	for (const struct node *item = value->first; item; item = item->next)
		if (port_read(l, item, &r->ports[r->n_ports]))
			r->n_ports++;
	qsort(r->ports, r->n_ports, sizeof(*r->ports), compare_ports);
}

static void read_methods(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	if (!list_check(l, value, "methods"))
		return;
	r->methods = load_keep(l, value->count, sizeof(*r->methods));
	if (!r->methods)
		return;
	for (const struct node *item = value->first; item; item = item->next) {
		if (!method_check(l, item, item->text))
			continue;
		if (slice_eq(item->text, SLICE("CONNECT"))) {
			node_error(l->errs, item, "CONNECT can't be listed: hosts and ports decide on connections");
			continue;
		}
		struct slice *method = &r->methods[r->n_methods++];
		*method = arena_dup(l->arena, item->text);
		if (!method->ptr) {
			load_no_memory(l);
			return;
		}
	}
}

/* A pattern goes the way that request paths go, so that both are in the same form; it keeps its two readings too. */
static bool read_path(struct loader *l, const struct node *item, struct slice *path, struct slice *loose)
{
	const char *why = "";
	struct target t;
	if (!text_check(l, item, "a path pattern"))
		return false;
	if (item->text.ptr[0] != '/' || item->text.len > LIMIT_PATH_PATTERN) {
		node_error(l->errs, item, "expected a path that starts with '/', of at most %d bytes, got %s",
			   LIMIT_PATH_PATTERN, quote(item->text).text);
		return false;
	}
	if (slice_find(item->text, '?') != item->text.len) {
		node_error(l->errs, item, "a path pattern has no query, got %s", quote(item->text).text);
		return false;
	}
	enum cage_status st = path_parse(item->text, l->arena, &t, &why);
	if (st == CAGE_OK && pattern_fault(t.path)) {
		st = CAGE_EPROTO;
		why = pattern_fault(t.path);
	}
	if (st == CAGE_ENOMEM)
		load_no_memory(l);
	else if (st != CAGE_OK)
		node_error(l->errs, item, "%s, got %s", why, quote(item->text).text);
	*path = t.path;
	*loose = t.loose;
	return st == CAGE_OK;
}

static void read_paths(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	if (!list_check(l, value, "path patterns"))
		return;
	r->paths = load_keep(l, value->count, sizeof(*r->paths));
	r->loose_paths = load_keep(l, value->count, sizeof(*r->loose_paths));
	if (!r->paths || !r->loose_paths)
		return;
	for (const struct node *item = value->first; item; item = item->next)
		if (read_path(l, item, &r->paths[r->n_paths], &r->loose_paths[r->n_paths]))
			r->n_paths++;
}

static void read_addresses(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	if (!list_check(l, value, "address ranges"))
		return;
	r->addresses = load_keep(l, value->count, sizeof(*r->addresses));
	if (!r->addresses)
		return;
	for (const struct node *item = value->first; item; item = item->next) {
		struct addr_range range;
		const char *why = "";
		if (!text_check(l, item, "an address range such as 10.4.0.0/16"))
			continue;
		if (!addr_range_parse(item->text, &range, &why))
			node_error(l->errs, item, "expected an address range such as 10.4.0.0/16: %s, got %s", why,
				   quote(item->text).text);
		else if (addr_range_has_metadata(&range))
			node_error(l->errs, item, "%s holds a cloud metadata address; those can't be allowed",
				   quote(item->text).text);
		else
			r->addresses[r->n_addresses++] = range;
	}
}

static void read_expires(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	if (value->kind != NODE_TEXT || !clock_parse(value->text, &r->expires)) {
		node_error(l->errs, value, "expected a time in UTC such as 2026-12-31T00:00:00Z, got %s",
			   node_describe(value).text);
		return;
	}
	if (r->expires == 0) /* which would mean never */
		r->expires = -1;
}

static void read_mode(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	mode_read(l, value, &r->mode);
}

static void read_body(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	size_read(l, value, INT64_MAX, &r->limit_body);
}

static void read_hold(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	size_read(l, value, LIMIT_HOLD_BUDGET, &r->limit_hold);
}

static void read_rate(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	rate_read(l, value, &r->limit_rate);
}

static void read_burst(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	burst_read(l, value, &r->limit_burst);
}

static void read_out(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	size_rate_read(l, value, LIMIT_LEDGER_SPEND, &r->limit_out);
}

static const struct key limit_keys[] = {
	{WORD("body"), read_body, KEY_OPTIONAL}, {WORD("hold"), read_hold, KEY_OPTIONAL},
	{WORD("rate"), read_rate, KEY_OPTIONAL}, {WORD("burst"), read_burst, KEY_OPTIONAL},
	{WORD("out"), read_out, KEY_OPTIONAL},
};

static void read_limits(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	if (!section_read(l, value, limit_keys, sizeof(limit_keys) / sizeof(limit_keys[0]), r))
		return;
	if (value->count == 0)
		node_error(l->errs, value, "expected limits, got an empty mapping");
	const struct node *burst = node_get(value, SLICE("burst"));
	if (!burst)
		r->limit_burst = r->limit_rate.count;
	else if (!node_get(value, SLICE("rate")))
		node_key_error(l->errs, burst, "a burst needs a rate");
}

static bool has_secret(const struct policy_rule *r, const struct policy_secret *s)
{
	for (size_t i = 0; i < r->n_secrets; i++)
		if (r->secrets[i] == s)
			return true;
	return false;
}

static void read_secrets(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	if (!list_check(l, value, "ids of secrets"))
		return;
	r->secrets = load_keep(l, value->count, sizeof(const struct policy_secret *));
	if (!r->secrets)
		return;
	for (const struct node *item = value->first; item; item = item->next) {
		const struct policy_secret *s = secret_named(l, item);
		if (!s)
			continue;
		if (has_secret(r, s))
			node_error(l->errs, item, "%s is listed twice", quote(s->id).text);
		else
			r->secrets[r->n_secrets++] = s;
	}
}

static void read_plaintext(struct loader *l, const struct node *value, void *out)
{
	struct policy_rule *r = out;
	flag_read(l, value, &r->plaintext);
}

static const struct key rule_keys[] = {
	{WORD("id"), read_id, KEY_REQUIRED},
	{WORD("action"), read_action, KEY_OPTIONAL},
	{WORD("hosts"), read_hosts, KEY_REQUIRED},
	{WORD("ports"), read_ports, KEY_OPTIONAL},
	{WORD("methods"), read_methods, KEY_OPTIONAL},
	{WORD("paths"), read_paths, KEY_OPTIONAL},
	{WORD("addresses"), read_addresses, KEY_OPTIONAL},
	{WORD("expires"), read_expires, KEY_OPTIONAL},
	{WORD("mode"), read_mode, KEY_OPTIONAL},
	{WORD("limits"), read_limits, KEY_OPTIONAL},
	{WORD("secrets"), read_secrets, KEY_OPTIONAL},
	{WORD("plaintext"), read_plaintext, KEY_OPTIONAL},
};

static void refuse_key(struct loader *l, const struct node *rule, struct slice name, const char *why)
{
	const struct node *value = node_get(rule, name);
	if (value)
		node_key_error(l->errs, value, "%s", why);
}

/* Keys that an action can't honour would promise something that nobody does. */
static void check_action(struct loader *l, const struct node *node, const struct policy_rule *r)
{
	const struct node *plaintext = node_get(node, SLICE("plaintext"));
	switch (r->action) {
	case RULE_ALLOW:
		if (plaintext && !node_get(node, SLICE("secrets")))
			node_key_error(l->errs, plaintext, "it is about secrets, and the rule has none");
		return;
	case RULE_DENY:
		refuse_key(l, node, SLICE("addresses"), "a deny rule can't list addresses");
		refuse_key(l, node, SLICE("limits"), "a deny rule can't have limits");
		refuse_key(l, node, SLICE("secrets"), "a deny rule can't have secrets");
		refuse_key(l, node, SLICE("plaintext"), "a deny rule can't have secrets");
		return;
	case RULE_TUNNEL:
		refuse_key(l, node, SLICE("methods"), "nobody looks into a tunnel: it can't list methods");
		refuse_key(l, node, SLICE("paths"), "nobody looks into a tunnel: it can't list paths");
		refuse_key(l, node, SLICE("limits"), "nobody looks into a tunnel: it can't have limits");
		refuse_key(l, node, SLICE("secrets"), "nobody looks into a tunnel: it can't have secrets");
		refuse_key(l, node, SLICE("plaintext"), "nobody looks into a tunnel: it can't have secrets");
		return;
	}
}

static void default_ports(struct loader *l, struct policy_rule *r)
{
	r->ports = load_keep(l, 1, sizeof(*r->ports));
	if (!r->ports)
		return;
	r->ports[0] = 443;
	r->n_ports = 1;
}

/* A deny rule that lists every path denies what has no path (OPTIONS *) as well. */
static void widen_deny(struct policy_rule *r)
{
	for (size_t i = 0; i < r->n_paths; i++)
		if (pattern_weight(r->paths[i]) == 0)
			r->n_paths = 0;
}

static void rule_read(struct loader *l, const struct node *node, struct policy_rule *r)
{
	*r = (struct policy_rule){
		.mode = l->policy->mode, .limit_body = LIMIT_BODY_DEFAULT, .limit_hold = LIMIT_HOLD_DEFAULT};
	if (!section_read(l, node, rule_keys, sizeof(rule_keys) / sizeof(rule_keys[0]), r))
		return;
	check_action(l, node, r);
	if (r->action == RULE_DENY)
		widen_deny(r);
	else if (!node_get(node, SLICE("ports")))
		default_ports(l, r);
}

void rules_read(struct loader *l, const struct node *list)
{
	if (!list_check(l, list, "rules"))
		return;
	struct policy *p = l->policy;
	for (const struct node *node = list->first; node; node = node->next) {
		l->rule_nodes[p->n_rules] = node;
		rule_read(l, node, &p->rules[p->n_rules++]);
	}
}
