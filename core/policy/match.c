/* Deciding. A host is looked up once as it is and once for each domain it lies under; what is said there about it is
 * already in order, so the first allow rule that fits is the one that wins. A deny rule wins over all of them. */
#include "core/policy/compile.h"

#include <stdlib.h>

/* What is asked: a connection (no target) or a request. */
struct question {
	uint16_t port;
	int64_t now;
	const struct target *target;
	struct slice method;
};

/* How far a rule went along with a question. */
enum fit { FIT_NOT_HOST, FIT_NOT_PORT, FIT_NOT_METHOD, FIT_NOT_PATH, FIT_ALL };

static int compare_ports(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

static bool has_port(const uint16_t *ports, size_t n, uint16_t port)
{
	return n > 0 && bsearch(&port, ports, n, sizeof(*ports), compare_ports);
}

static bool rule_has_port(const struct policy_rule *r, uint16_t port)
{
	return has_port(r->ports, r->n_ports, port);
}

bool policy_lists_port(const struct policy *p, uint16_t port)
{
	return has_port(p->listed_ports, p->n_listed_ports, port);
}

const struct policy_pin *policy_pin_for(const struct policy *p, const struct host *host)
{
	return map_get(&p->pins, host->text);
}

static void add_entry(struct host_entries *out, const struct host_rules *entry, struct slice name)
{
	if (!entry || out->n >= HOST_ENTRIES)
		return;
	out->names[out->n] = name;
	out->list[out->n++] = entry;
}

void host_entries_add_parents(const struct policy *p, struct slice name, struct host_entries *out)
{
	for (slice_cut(&name, '.'); name.len > 0; slice_cut(&name, '.'))
		add_entry(out, map_get(&p->wildcard, name), name);
}

void host_entries_find(const struct policy *p, const struct host *host, struct host_entries *out)
{
	out->n = 0;
	add_entry(out, map_get(&p->exact, host->text), host->text);
	if (host->kind == HOST_NAME)
		host_entries_add_parents(p, host->text, out);
}

static bool is_expired(const struct policy_rule *r, int64_t now)
{
	return r->expires != 0 && now >= r->expires;
}

/* Methods are case-sensitive, but some origins don't know that: an allow rule means what it lists, a deny rule also what
 * could be taken for it. */
static bool allows_method(const struct policy_rule *r, struct slice method)
{
	for (size_t i = 0; i < r->n_methods; i++)
		if (slice_eq(r->methods[i], method))
			return true;
	return r->n_methods == 0;
}

static bool denies_method(const struct policy_rule *r, struct slice method)
{
	for (size_t i = 0; i < r->n_methods; i++)
		if (slice_ieq(r->methods[i], method))
			return true;
	return r->n_methods == 0;
}

static bool any_matches(const struct slice *patterns, size_t n, struct slice path)
{
	for (size_t i = 0; i < n; i++)
		if (policy_path_matches(patterns[i], path))
			return true;
	return false;
}

/* Both readings of the path must be allowed. */
static bool candidate_has_path(const struct candidate *c, const struct target *t)
{
	return c->rule->n_paths == 0 || (policy_path_matches(c->pattern, t->path) &&
					 any_matches(c->rule->loose_paths, c->rule->n_paths, t->loose));
}

static enum fit candidate_fit(const struct candidate *c, const struct question *q)
{
	if (!rule_has_port(c->rule, q->port))
		return FIT_NOT_PORT;
	if (!q->target)
		return FIT_ALL;
	if (!allows_method(c->rule, q->method))
		return FIT_NOT_METHOD;
	return candidate_has_path(c, q->target) ? FIT_ALL : FIT_NOT_PATH;
}

/* Either reading of the path is enough. Where nobody will see method and path (a connection), only a deny rule that
 * asks for neither counts; when the connection would be a tunnel, every one. */
static bool deny_fits(const struct policy_rule *r, const struct question *q, bool is_tunnel)
{
	if (is_expired(r, q->now) || (r->n_ports > 0 && !rule_has_port(r, q->port)))
		return false;
	if (!q->target)
		return is_tunnel || (r->n_methods == 0 && r->n_paths == 0);
	if (!denies_method(r, q->method))
		return false;
	return r->n_paths == 0 || any_matches(r->paths, r->n_paths, q->target->path) ||
	       any_matches(r->loose_paths, r->n_paths, q->target->loose);
}

/* A deny rule that fits, one that is enforced before one that is not; or NULL. */
static const struct policy_rule *find_deny(const struct host_entries *entries, const struct question *q, bool is_tunnel)
{
	const struct policy_rule *observed = NULL;
	for (size_t e = 0; e < entries->n; e++) {
		const struct host_rules *entry = entries->list[e];
		for (size_t i = 0; i < entry->n_denies; i++) {
			if (!deny_fits(entry->denies[i], q, is_tunnel))
				continue;
			if (entry->denies[i]->mode == POLICY_ENFORCE)
				return entry->denies[i];
			if (!observed)
				observed = entry->denies[i];
		}
	}
	return observed;
}

static enum reason fit_reason(enum fit fit)
{
	switch (fit) {
	case FIT_NOT_HOST:
		return REASON_HOST_NOT_ALLOWED;
	case FIT_NOT_PORT:
		return REASON_PORT_NOT_ALLOWED;
	case FIT_NOT_METHOD:
		return REASON_METHOD_NOT_ALLOWED;
	case FIT_NOT_PATH:
		return REASON_PATH_NOT_ALLOWED;
	case FIT_ALL:
		return REASON_NONE;
	}
	return REASON_INTERNAL;
}

/* The live rules of the nearest entry speak for a host; their refusal is only observed when all of them say so. */
struct speaker {
	const struct host_rules *entry;
	bool observe;
};

static void speaker_hear(struct speaker *s, const struct host_rules *entry, const struct policy_rule *r)
{
	if (!s->entry)
		*s = (struct speaker){entry, true};
	if (s->entry == entry && r->mode != POLICY_OBSERVE)
		s->observe = false;
}

static struct policy_verdict allowed_by(const struct policy_rule *r, const struct question *q)
{
	if (q->target && r->action == RULE_TUNNEL)
		return (struct policy_verdict){.reason = REASON_TUNNEL_ONLY};
	return (struct policy_verdict){.reason = REASON_NONE, .rule = r, .applies = r};
}

static struct policy_verdict find_allow(const struct policy *p, const struct host_entries *entries,
					const struct question *q)
{
	enum fit best = FIT_NOT_HOST;
	struct speaker speaker = {NULL, p->mode == POLICY_OBSERVE};
	for (size_t e = 0; e < entries->n; e++) {
		const struct host_rules *entry = entries->list[e];
		for (size_t i = 0; i < entry->n_allows; i++) {
			const struct candidate *c = &entry->allows[i];
			if (is_expired(c->rule, q->now))
				continue;
			speaker_hear(&speaker, entry, c->rule);
			enum fit fit = candidate_fit(c, q);
			if (fit == FIT_ALL)
				return allowed_by(c->rule, q);
			if (fit > best)
				best = fit;
		}
	}
	return (struct policy_verdict){.reason = fit_reason(best), .observe = speaker.observe};
}

static struct policy_verdict decide(const struct policy *p, const struct host *host, const struct question *q)
{
	struct host_entries entries;
	host_entries_find(p, host, &entries);
	struct policy_verdict v = find_allow(p, &entries, q);
	const struct policy_rule *deny = find_deny(&entries, q, v.rule && v.rule->action == RULE_TUNNEL);
	if (!deny)
		return v;
	/* A deny rule that only observes must not open what would be refused without it. */
	bool is_refused_anyway = v.reason != REASON_NONE && !v.observe;
	if (deny->mode == POLICY_OBSERVE && is_refused_anyway)
		return v;
	return (struct policy_verdict){.reason = REASON_RULE_DENIED,
				       .rule = deny,
				       .applies = v.applies,
				       .observe = deny->mode == POLICY_OBSERVE};
}

struct policy_verdict policy_match_connect(const struct policy *p, const struct host *host, uint16_t port, int64_t now)
{
	struct question q = {.port = port, .now = now};
	return decide(p, host, &q);
}

struct policy_verdict policy_match_request(const struct policy *p, const struct target *t, struct slice method,
					   int64_t now)
{
	struct question q = {.port = t->port, .now = now, .target = t, .method = method};
	return decide(p, &t->host, &q);
}

/* ---- names ---- */

/* An address as a name is nobody's name, though a rule may list that address. */
static bool is_name(const struct host *host)
{
	struct addr addr;
	return host->kind == HOST_NAME && !addr_parse(host->text, &addr);
}

/* What the ports of one rule say: a verdict of RULE_DENIED holds when all of them are denied, an observed one before an
 * enforced one, since the traffic would go. */
static struct policy_verdict match_ports(const struct host_entries *entries, const struct policy_rule *r, int64_t now)
{
	struct policy_verdict v = {.reason = REASON_RULE_DENIED, .applies = r};
	for (size_t i = 0; i < r->n_ports; i++) {
		struct question q = {.port = r->ports[i], .now = now};
		const struct policy_rule *deny = find_deny(entries, &q, r->action == RULE_TUNNEL);
		if (!deny)
			return (struct policy_verdict){.reason = REASON_NONE, .rule = r, .applies = r};
		if (!v.rule || (deny->mode == POLICY_OBSERVE && !v.observe))
			v.rule = deny;
		v.observe = v.rule->mode == POLICY_OBSERVE;
	}
	return v;
}

/* No live rule allows it. A deny rule of every port tells why, if it is one that is enforced or nothing else refuses. */
static struct policy_verdict refuse_name(const struct policy *p, const struct host_entries *entries, int64_t now)
{
	struct question q = {.now = now};
	const struct policy_rule *deny = find_deny(entries, &q, false);
	bool observe = p->mode == POLICY_OBSERVE;
	if (!deny || (deny->mode == POLICY_OBSERVE && !observe))
		return (struct policy_verdict){.reason = REASON_HOST_NOT_ALLOWED, .observe = observe};
	return (struct policy_verdict){
		.reason = REASON_RULE_DENIED, .rule = deny, .observe = deny->mode == POLICY_OBSERVE};
}

static bool has_rule(const struct host_rules *entry, const struct policy_rule *r)
{
	for (size_t i = 0; i < entry->n_allows; i++)
		if (entry->allows[i].rule == r)
			return true;
	return false;
}

/* The entry of the host itself has its whole name; those of wildcards, from long to short, a part of it. */
static struct host_match match_of(const struct host_entries *entries, struct slice host, const struct policy_rule *r)
{
	struct host_match m = {.is_listed = false};
	for (size_t e = 0; e < entries->n; e++) {
		if (!has_rule(entries->list[e], r))
			continue;
		if (entries->names[e].len == host.len)
			m.is_listed = true;
		else
			m.wildcard = entries->names[e];
	}
	return m;
}

/* The first rule that leaves a port open, or else the first whose denial is only observed, or else the first. */
static struct policy_verdict match_entries(const struct host_entries *entries, int64_t now)
{
	struct policy_verdict best = {.reason = REASON_HOST_NOT_ALLOWED};
	for (size_t e = 0; e < entries->n; e++) {
		for (size_t i = 0; i < entries->list[e]->n_allows; i++) {
			const struct policy_rule *r = entries->list[e]->allows[i].rule;
			if (is_expired(r, now))
				continue;
			struct policy_verdict v = match_ports(entries, r, now);
			if (v.reason == REASON_NONE)
				return v;
			if (!best.rule || (v.observe && !best.observe))
				best = v;
		}
	}
	return best;
}

struct policy_verdict policy_match_name(const struct policy *p, const struct host *host, int64_t now)
{
	struct host_entries entries;
	if (!is_name(host))
		return (struct policy_verdict){.reason = REASON_HOST_NOT_ALLOWED};
	host_entries_find(p, host, &entries);
	struct policy_verdict v = match_entries(&entries, now);
	if (!v.rule)
		return refuse_name(p, &entries, now);
	v.match = match_of(&entries, host->text, v.applies);
	return v;
}
