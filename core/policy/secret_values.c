/* What can only be said of a secret once everything else is read: whether some rule has it, whether its value is good, and
 * whether the place that it gets tokens from may be reached. Nothing here shows a byte of a value. */
#include "core/policy/load.h"

/* The key file of a service account is JSON, which has lines. */
static bool may_have_lines(const struct policy_secret *s)
{
	return s->use == SECRET_GOOGLE_JWT;
}

static const char *bytes_fault(const struct policy_secret *s, struct slice value)
{
	for (size_t i = 0; i < value.len; i++) {
		char c = value.ptr[i];
		if (c == '\0')
			return "holds a NUL byte";
		if ((c == '\r' || c == '\n') && !may_have_lines(s))
			return "holds a line break";
	}
	return NULL;
}

#define TEXT(n) #n
#define NUMBER(n) TEXT(n)

const char *policy_value_fault(const struct policy *p, const struct policy_secret *s, struct slice value)
{
	if (value.len == 0)
		return "is empty";
	if (value.len < LIMIT_SECRET_VALUE_MIN)
		return "is shorter than " NUMBER(LIMIT_SECRET_VALUE_MIN) " bytes";
	if (value.len > LIMIT_SECRET_VALUE)
		return "is too long";
	const char *fault = bytes_fault(s, value);
	if (fault)
		return fault;
	if (text_contains(value, SLICE(PLACEHOLDER_PREFIX)))
		return "contains \"" PLACEHOLDER_PREFIX "\", with which placeholders begin";
	for (size_t i = 0; i < p->n_secrets; i++)
		if (p->secrets[i].placeholder.len > 0 && text_contains(value, p->secrets[i].placeholder))
			return "contains a placeholder";
	return NULL;
}

static void check_value(struct loader *l, const struct policy_secret *s, const struct node *from)
{
	const char *why = NULL;
	struct slice value = l->readers.value(l->readers.arg, s, &why);
	if (value.ptr)
		why = policy_value_fault(l->policy, s, value);
	if (why)
		node_error(l->errs, from, "%s %s can't be used: it %s",
			   s->from == SECRET_ENV ? "the variable" : "the file", quote(s->source).text, why);
}

/* Can one host fall under both patterns? */
static bool patterns_meet(struct slice a, struct slice b)
{
	bool a_wild = slice_starts(a, SLICE("*.")), b_wild = slice_starts(b, SLICE("*."));
	struct slice a_tail = slice_from(a, a_wild), b_tail = slice_from(b, b_wild); /* with the dot */
	if (!a_wild && !b_wild)
		return slice_eq(a, b);
	return (a_wild && slice_ends(b_tail, a_tail)) || (b_wild && slice_ends(a_tail, b_tail));
}

static bool rules_meet(const struct policy_rule *a, const struct policy_rule *b)
{
	for (size_t i = 0; i < a->n_hosts; i++)
		for (size_t k = 0; k < b->n_hosts; k++)
			if (patterns_meet(a->hosts[i], b->hosts[k]))
				return true;
	return false;
}

static void mark_neighbours(struct policy *p, const struct policy_rule *with_secrets)
{
	for (size_t i = 0; i < p->n_rules; i++)
		if (p->rules[i].n_secrets == 0 && !p->rules[i].near_secrets)
			p->rules[i].near_secrets = rules_meet(&p->rules[i], with_secrets);
}

void secrets_check(struct loader *l)
{
	struct policy *p = l->policy;
	for (size_t i = 0; i < p->n_rules; i++)
		if (p->rules[i].n_secrets > 0)
			mark_neighbours(p, &p->rules[i]);
	for (size_t i = 0; i < p->n_secrets; i++) {
		const struct policy_secret *s = &p->secrets[i];
		if (s->from == SECRET_KEYVAULT && l->readers.has_vault_variables)
			keyvault_use_variable(l, i);
		if (s->id.len > 0 && !(l->named >> i & 1))
			node_error(l->errs, l->secret_nodes[i], "no rule has it");
		if (s->source.len > 0 && s->from != SECRET_KEYVAULT && l->readers.value)
			check_value(l, s, node_get(l->secret_nodes[i], SLICE("from")));
	}
}

/* The one mapping inside `oauth2` has it, if it is not the default. */
static const struct node *token_url_node(const struct node *secret)
{
	const struct node *oauth2 = node_get(secret, SLICE("oauth2"));
	const struct node *url = node_get(oauth2->first, SLICE("token_url"));
	return url ? url : oauth2;
}

void token_urls_check(struct loader *l)
{
	const struct policy *p = l->policy;
	for (size_t i = 0; i < p->n_secrets; i++) {
		const struct policy_oauth2 *oauth = p->secrets[i].oauth;
		if (oauth && policy_match_request(p, &oauth->token_url, SLICE("POST"), l->now).reason != REASON_NONE)
			node_error(l->errs, token_url_node(l->secret_nodes[i]),
				   "no rule allows POST to the place that tokens come from, https://%.*s:%u%.*s",
				   SLICE_FMT(oauth->token_url.host.text), oauth->token_url.port,
				   SLICE_FMT(oauth->token_url.path));
	}
}
