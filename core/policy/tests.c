/* The policy's own tests: requests, and names asked for, with the decision that their author expects. They are read with
 * everything else and run at every load, so that a change that opens or closes too much is refused before it decides on
 * anything. */
#include "core/policy/load.h"

struct test {
	const struct node *node, *rule; /* rule: NULL when absent */
	struct slice method;            /* empty: a name is asked for */
	struct target target;           /* host and port alone for CONNECT, host alone for a name */
	bool expects_allow;
};

static bool is_connect(const struct test *t)
{
	return slice_eq(t->method, SLICE("CONNECT"));
}

/* "CONNECT host:port" asks for a connection, as a tunnel needs it; everything else is "METHOD URL". */
static void read_request(struct loader *l, const struct node *value, void *out)
{
	struct test *t = out;
	const char *why = "";
	enum cage_status st;
	if (!text_check(l, value, "a request such as GET https://example.com/"))
		return;
	struct slice url = value->text;
	t->method = slice_cut(&url, ' ');
	if (!method_check(l, value, t->method))
		return;
	if (is_connect(t))
		st = authority_parse(url, 0, &l->scratch, &t->target.host, &t->target.port, &why);
	else
		st = url_parse(url, &l->scratch, &t->target, &why);
	if (st != CAGE_OK)
		node_error(l->errs, value, "expected a method and a URL: %s, got %s", why, quote(value->text).text);
}

static void read_dns(struct loader *l, const struct node *value, void *out)
{
	struct test *t = out;
	const char *why = "it is an address";
	if (!text_check(l, value, "a name such as example.com"))
		return;
	if (host_parse(value->text, &l->scratch, &t->target.host, &why) != CAGE_OK || t->target.host.kind != HOST_NAME)
		node_error(l->errs, value, "expected a name: %s, got %s", why, quote(value->text).text);
}

static void read_expect(struct loader *l, const struct node *value, void *out)
{
	static const struct slice words[] = {WORD("allow"), WORD("deny")};
	struct test *t = out;
	size_t i;
	if (choice_read(l, value, words, 2, &i))
		t->expects_allow = i == 0;
}

static void read_rule(struct loader *l, const struct node *value, void *out)
{
	struct test *t = out;
	if (text_check(l, value, "the id of a rule"))
		t->rule = value;
}

static const struct key test_keys[] = {
	{WORD("request"), read_request, KEY_OPTIONAL},
	{WORD("dns"), read_dns, KEY_OPTIONAL},
	{WORD("expect"), read_expect, KEY_REQUIRED},
	{WORD("rule"), read_rule, KEY_OPTIONAL},
};

static void test_read(struct loader *l, const struct node *node, struct test *t)
{
	t->node = node;
	if (!section_read(l, node, test_keys, sizeof(test_keys) / sizeof(test_keys[0]), t))
		return;
	bool has_request = node_get(node, SLICE("request")), has_dns = node_get(node, SLICE("dns"));
	if (has_request == has_dns)
		node_error(l->errs, node,
			   has_dns ? "expected request or dns, got both" : "missing key \"request\" or \"dns\"");
}

void tests_read(struct loader *l, const struct node *list)
{
	if (!list_check(l, list, "tests"))
		return;
	l->tests = load_scratch(l, list->count, sizeof(*l->tests));
	if (!l->tests)
		return;
	for (const struct node *node = list->first; node; node = node->next)
		test_read(l, node, &l->tests[l->n_tests++]);
}

/* Only once all rules are known: a file that can't be read must not make its rules look misspelt. */
static bool rule_exists(struct loader *l, const struct node *rule)
{
	if (map_get(&l->ids, rule->text))
		return true;
	struct near near = {.text = rule->text};
	for (size_t i = 0; i < l->policy->n_rules; i++)
		near_try(&near, l->policy->rules[i].id);
	node_error(l->errs, rule, "there is no rule %s%s", quote(rule->text).text, near_hint(&near).text);
	return false;
}

static struct policy_verdict ask(const struct loader *l, const struct test *t)
{
	if (t->method.len == 0)
		return policy_match_name(l->policy, &t->target.host, l->now);
	if (is_connect(t))
		return policy_match_connect(l->policy, &t->target.host, t->target.port, l->now);
	return policy_match_request(l->policy, &t->target, t->method, l->now);
}

static void judge(struct loader *l, const struct test *t, const struct policy_verdict *v)
{
	bool is_allowed = v->reason == REASON_NONE;
	struct quoted by = v->rule ? quote(v->rule->id) : (struct quoted){"no rule"};
	if (is_allowed && !t->expects_allow)
		node_error(l->errs, t->node, "the test failed: expected deny, got allow by rule %s", by.text);
	else if (!is_allowed && t->expects_allow)
		node_error(l->errs, t->node, "the test failed: expected allow, got deny (%.*s)",
			   SLICE_FMT(reason_code(v->reason)));
	else if (t->rule && !(v->rule && slice_eq(v->rule->id, t->rule->text)))
		node_error(l->errs, t->node, "the test failed: expected a decision by rule %s, got one by %s",
			   quote(t->rule->text).text, by.text);
}

void tests_run(struct loader *l)
{
	for (size_t i = 0; i < l->n_tests; i++) {
		const struct test *t = &l->tests[i];
		if (t->rule && !rule_exists(l, t->rule))
			continue;
		struct policy_verdict v = ask(l, t);
		judge(l, t, &v);
	}
}
