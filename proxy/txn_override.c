/* Fields that make some origins serve another method or path than the request line names (THREATS T21). The policy must
 * allow the request in every reading that they give it. */
#include "core/base/clock.h"
#include "core/http/chars.h"
#include "proxy/txn.h"

static const struct slice method_fields[] = {WORD("x-http-method-override"), WORD("x-http-method"),
					     WORD("x-method-override")};
static const struct slice path_fields[] = {WORD("x-original-url"), WORD("x-rewrite-url")};

/* What an origin might take for the method and for the target; what the request line says comes first. A method of a
 * field counts as it stands and in upper case. */
struct readings {
	struct slice methods[1 + 2 * LIMIT_OVERRIDES];
	size_t n_methods;
	struct target targets[1 + LIMIT_OVERRIDES];
	size_t n_targets;
};

/* Origins that pass fields on as variables of an environment make '-' and '_' the same. */
static bool is_name(struct slice name, struct slice known)
{
	if (name.len != known.len)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i] == '_' ? '-' : name.ptr[i];
		if (ascii_lower((unsigned char)c) != (unsigned char)known.ptr[i])
			return false;
	}
	return true;
}

static bool is_one_of(struct slice name, const struct slice *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_name(name, list[i]))
			return true;
	return false;
}

static struct slice upper_case(struct slice s, struct arena *arena)
{
	char *copy = arena_alloc(arena, s.len);
	if (!copy)
		return SLICE_NONE;
	for (size_t i = 0; i < s.len; i++)
		copy[i] = s.ptr[i] >= 'a' && s.ptr[i] <= 'z' ? (char)(s.ptr[i] - 'a' + 'A') : s.ptr[i];
	return slice_of(copy, s.len);
}

static enum reason add_method(struct readings *r, struct slice value, struct arena *arena, const char **detail)
{
	if (value.len == 0 || value.len > LIMIT_METHOD || char_span(value, CHAR_TOKEN) != value.len ||
	    r->n_methods == sizeof(r->methods) / sizeof(r->methods[0])) {
		*detail = "A field that overrides the method must name one, and there may be four.";
		return REASON_HEAD_MALFORMED;
	}
	struct slice upper = upper_case(value, arena);
	if (!upper.ptr)
		return REASON_INTERNAL;
	r->methods[r->n_methods++] = value;
	r->methods[r->n_methods++] = upper;
	return REASON_NONE;
}

static enum reason add_path(struct readings *r, struct slice value, struct arena *arena, const char **detail)
{
	struct target target = r->targets[0];
	if (r->n_targets == sizeof(r->targets) / sizeof(r->targets[0])) {
		*detail = "There may be four fields that override the path.";
		return REASON_HEAD_MALFORMED;
	}
	if (path_parse(value, arena, &target, detail) != CAGE_OK)
		return REASON_TARGET_MALFORMED;
	r->targets[r->n_targets++] = target;
	return REASON_NONE;
}

static enum reason collect(struct txn *t, struct readings *r, const char **detail)
{
	enum reason reason = REASON_NONE;
	*r = (struct readings){.methods = {t->req.method}, .n_methods = 1, .targets = {t->target}, .n_targets = 1};
	for (size_t i = 0; reason == REASON_NONE && i < t->req.n_fields; i++) {
		const struct field *f = &t->req.fields[i];
		if (f->id != FIELD_OTHER)
			continue;
		if (is_one_of(f->name, method_fields, sizeof(method_fields) / sizeof(method_fields[0])))
			reason = add_method(r, f->value, &t->arena, detail);
		else if (is_one_of(f->name, path_fields, sizeof(path_fields) / sizeof(path_fields[0])))
			reason = add_path(r, f->value, &t->arena, detail);
	}
	return reason;
}

/* A refusal that is only observed stands in the log, unless the request line itself has one already. */
static enum reason judge(struct txn *t, const struct target *target, struct slice method)
{
	struct policy_verdict v = policy_match_request(t->gen->policy, target, method, clock_wall_s());
	if (v.reason == REASON_NONE)
		return REASON_NONE;
	if (!v.observe)
		return v.reason;
	if (t->verdict.reason == REASON_NONE) {
		t->verdict.reason = v.reason;
		t->verdict.rule = v.rule;
		t->verdict.observe = true;
	}
	return REASON_NONE;
}

enum reason txn_check_overrides(struct txn *t, const char **detail)
{
	struct readings r;
	enum reason reason = collect(t, &r, detail);
	if (reason != REASON_NONE)
		return reason;
	/* The first of all, the request line's own, was judged before. */
	for (size_t i = 1; i < r.n_targets * r.n_methods; i++) {
		reason = judge(t, &r.targets[i / r.n_methods], r.methods[i % r.n_methods]);
		if (reason == REASON_NONE)
			continue;
		*detail = "A field of the request asks for another method or path, which the policy does not allow.";
		return reason;
	}
	return REASON_NONE;
}
