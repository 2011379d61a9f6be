/* The policy's own tests: requests with the decision that their author expects. They run at every load, so that a
 * change that opens or closes too much is refused before it decides on anything. */
#include "core/policy/load.h"

struct test {
	const struct node *request, *rule; /* NULL when absent */
	bool expects_allow;
};

static void read_request(struct loader *l, const struct node *value, void *out)
{
	struct test *t = out;
	if (text_check(l, value, "a request such as GET https://example.com/"))
		t->request = value;
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
	if (!text_check(l, value, "the id of a rule"))
		return;
	t->rule = value;
	if (map_get(&l->ids, value->text))
		return;
	struct near near = {.text = value->text};
	for (size_t i = 0; i < l->policy->n_rules; i++)
		near_try(&near, l->policy->rules[i].id);
	node_error(l->errs, value, "there is no rule %s%s", quote(value->text).text, near_hint(&near).text);
}

static const struct key test_keys[] = {
	{WORD("request"), read_request, KEY_REQUIRED},
	{WORD("expect"), read_expect, KEY_REQUIRED},
	{WORD("rule"), read_rule, KEY_OPTIONAL},
};

/* "CONNECT host:port" asks for a connection, as a tunnel needs it; everything else is "METHOD URL". */
static bool ask(struct loader *l, const struct node *request, struct policy_verdict *out)
{
	struct slice url = request->text;
	struct slice method = slice_cut(&url, ' ');
	struct target t;
	const char *why = "";
	enum cage_status st;
	if (!method_check(l, request, method))
		return false;
	if (slice_eq(method, SLICE("CONNECT"))) {
		st = authority_parse(url, 0, &l->scratch, &t.host, &t.port, &why);
		if (st == CAGE_OK)
			*out = policy_match_connect(l->policy, &t.host, t.port, l->now);
	} else {
		st = url_parse(url, &l->scratch, &t, &why);
		if (st == CAGE_OK)
			*out = policy_match_request(l->policy, &t, method, l->now);
	}
	if (st != CAGE_OK)
		node_error(l->errs, request, "expected a method and a URL: %s, got %s", why, quote(request->text).text);
	return st == CAGE_OK;
}

static void judge(struct loader *l, const struct node *node, const struct test *t, const struct policy_verdict *v)
{
	bool is_allowed = v->reason == REASON_NONE;
	struct quoted by = v->rule ? quote(v->rule->id) : (struct quoted){"no rule"};
	if (is_allowed && !t->expects_allow)
		node_error(l->errs, node, "the test failed: expected deny, got allow by rule %s", by.text);
	else if (!is_allowed && t->expects_allow)
		node_error(l->errs, node, "the test failed: expected allow, got deny (%.*s)",
			   SLICE_FMT(reason_code(v->reason)));
	else if (t->rule && !(v->rule && slice_eq(v->rule->id, t->rule->text)))
		node_error(l->errs, node, "the test failed: expected a decision by rule %s, got one by %s",
			   quote(t->rule->text).text, by.text);
}

static void run(struct loader *l, const struct node *node)
{
	struct test t = {0};
	struct policy_verdict v;
	size_t errors_before = l->errs->n;
	section_read(l, node, test_keys, sizeof(test_keys) / sizeof(test_keys[0]), &t);
	if (l->errs->n == errors_before && ask(l, t.request, &v))
		judge(l, node, &t, &v);
}

void tests_run(struct loader *l, const struct node *list)
{
	if (!list_check(l, list, "tests"))
		return;
	for (const struct node *node = list->first; node && l->errs->n < LIMIT_POLICY_ERRORS; node = node->next)
		run(l, node);
}
