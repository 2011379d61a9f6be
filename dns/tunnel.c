/* The inspectors on names, and what is counted of them beyond that. */
#include "dns/tunnel.h"

#include <stdlib.h>

#include "core/base/clock.h"

struct dns_tunnel {
	const struct policy *policy;
	struct ledger *ledger;
	struct chain *chain;
	struct arena arena; /* of one name, and its findings */
	struct arena aside; /* of one that may be hidden, which leaves those findings alone */
	struct audit_finding findings[LIMIT_FINDINGS];
	uint64_t seed;
	uint32_t seen[LIMIT_DNS_HARMLESS]; /* by the low bits of a name's hash: its high bits */
};

/* ---- life ---- */

/* The placeholders of the policy's secrets; cage-dns has no values. */
static bool set_known(struct dns_tunnel *t)
{
	const struct policy *p = t->policy;
	struct known_item items[LIMIT_SECRETS + 1];
	size_t n = 0;
	if (p->n_secrets == 0)
		return true;
	for (unsigned i = 0; i < p->n_secrets; i++)
		if (p->secrets[i].placeholder.len > 0)
			items[n++] = (struct known_item){KNOWN_PLACEHOLDER, i, p->secrets[i].placeholder};
	items[n++] = (struct known_item){KNOWN_RANDOM_PLACEHOLDER, 0, SLICE(PLACEHOLDER_PREFIX)};
	struct known_set *known = known_set_new(items, n, KNOWN_IN_VIEWS);
	if (!known)
		return false;
	chain_set_known(t->chain, known);
	known_set_unref(&known);
	return true;
}

struct dns_tunnel *dns_tunnel_new(const struct policy *p, struct ledger *ledger, const unsigned char key[CHAIN_KEY])
{
	struct dns_tunnel *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->policy = p;
	t->ledger = ledger;
	t->seed = map_seed();
	arena_init(&t->arena, LIMIT_TXN_ARENA);
	arena_init(&t->aside, LIMIT_TXN_ARENA);
	t->chain = chain_new(p, ledger, key);
	if (!t->chain || !set_known(t))
		dns_tunnel_free(&t);
	return t;
}

void dns_tunnel_free(struct dns_tunnel **tp)
{
	struct dns_tunnel *t = *tp;
	if (!t)
		return;
	*tp = NULL;
	chain_free(&t->chain);
	arena_free(&t->arena);
	arena_free(&t->aside);
	free(t);
}

/* ---- counting ---- */

/* Queries that leave for one domain. */
static enum reason count_query(struct dns_tunnel *t, const struct subject *s)
{
	const struct policy_rate *rate = &t->policy->dns.tunnel_rate;
	struct slice domain = subject_domain(s);
	uint64_t wait, key = ledger_key(t->ledger, s->sandbox, LEDGER_RATE, &domain, 1);
	enum cage_status st =
		ledger_take(t->ledger, key, rate->count, rate->period_us, rate->count, clock_mono_us(), &wait);
	if (st == CAGE_OK)
		return REASON_NONE;
	return st == CAGE_ELIMIT ? REASON_LIMIT_RATE : REASON_LIMIT_COUNTERS;
}

/* And bytes of their names, but of those that a rule spells out. */
static enum reason count(struct dns_tunnel *t, const struct subject *s)
{
	const struct policy_rate *bytes = &t->policy->dns.tunnel_bytes;
	struct slice domain = subject_domain(s);
	uint64_t wait, key = ledger_key(t->ledger, s->sandbox, LEDGER_OUT, &domain, 1);
	enum reason r = count_query(t, s);
	if (r != REASON_NONE || s->match->is_listed)
		return r;
	enum cage_status st = ledger_spend(t->ledger, key, s->target->host.text.len - domain.len, bytes->count,
					   bytes->period_us, clock_mono_us(), &wait);
	if (st == CAGE_OK)
		return REASON_NONE;
	return st == CAGE_ELIMIT ? REASON_LIMIT_BUDGET : REASON_LIMIT_COUNTERS;
}

/* ---- looking ---- */

static void no_resume(void *arg)
{
	(void)arg; /* names are judged at once */
}

/* Without memory the view is not told. */
static struct audit_finding to_log(struct dns_tunnel *t, const struct finding *f)
{
	char *buf = arena_alloc(&t->arena, CHAIN_VIEW);
	struct text view = text_in(buf, buf ? CHAIN_VIEW : 0);
	chain_put_view(&view, &f->spot.view);
	return (struct audit_finding){.inspector = f->by->name,
				      .action = f->action == ACTION_BLOCK ? DECISION_BLOCK : DECISION_FLAG,
				      .reason = f->reason,
				      .id = f->id,
				      .where = SLICE("host"),
				      .view = text_slice(&view),
				      .offset = f->spot.offset,
				      .fingerprint = f->fingerprint};
}

static void tell_findings(struct dns_tunnel *t, const struct chain_run *run, struct dns_look *look)
{
	const struct finding *list = chain_findings(run, &look->n_findings);
	for (size_t i = 0; i < look->n_findings; i++)
		t->findings[i] = to_log(t, &list[i]);
	look->findings = t->findings;
}

/* What the inspectors say. */
static struct dns_look inspect(struct dns_tunnel *t, const struct subject *s, bool observe)
{
	struct dns_look look = {.reason = REASON_INTERNAL, .hides = true};
	struct chain_owner owner = {.resume = no_resume};
	struct chain_run *run = chain_begin(t->chain, &t->arena, s, observe, &owner);
	if (!run)
		return look;
	bool is_stopped = chain_name(run) != CHAIN_PASS;
	const struct finding *block = chain_block(run);
	look.reason = block ? block->reason : is_stopped ? REASON_INTERNAL : REASON_NONE;
	look.observe = look.reason != REASON_NONE && !is_stopped;
	look.hides = chain_hides(run, PLACE_HOST);
	tell_findings(t, run, &look);
	chain_finish(&run);
	return look;
}

/* A name that spells an address inside is for whoever turns it back into one; only a rule with addresses knows that. */
static bool is_spelled(const struct policy_rule *rule, const struct host *host)
{
	return (!rule || rule->n_addresses == 0) && addr_spelled_in_name(host->text);
}

/* A look at a name, and by what it is done. */
struct looking {
	struct target target;
	struct subject subject;
	bool observe;
};

static void looking_begin(struct looking *l, const struct policy_verdict *v, const struct host *host,
			  struct slice sandbox)
{
	l->target = (struct target){.host = *host};
	l->subject = (struct subject){.target = &l->target, .rule = v->applies, .match = &v->match, .sandbox = sandbox};
	l->observe = v->applies ? v->applies->mode == POLICY_OBSERVE : v->observe;
}

static struct dns_look look_at(struct dns_tunnel *t, const struct looking *l)
{
	const struct subject *s = &l->subject;
	if (is_spelled(s->rule, &s->target->host))
		return (struct dns_look){.reason = REASON_NAME_SUSPICIOUS,
					 .hides = dns_tunnel_hides(t, &s->target->host)};
	arena_reset(&t->arena);
	return s->match->is_listed ? (struct dns_look){.reason = REASON_NONE} : inspect(t, s, l->observe);
}

struct dns_look dns_tunnel_look(struct dns_tunnel *t, const struct policy_verdict *v, const struct host *host,
				struct slice sandbox)
{
	struct looking l;
	looking_begin(&l, v, host, sandbox);
	return look_at(t, &l);
}

struct dns_look dns_tunnel_ask(struct dns_tunnel *t, const struct policy_verdict *v, const struct host *host,
			       struct slice sandbox)
{
	struct looking l;
	looking_begin(&l, v, host, sandbox);
	struct dns_look look = look_at(t, &l);
	if (look.reason != REASON_NONE && !look.observe)
		return look;
	enum reason counted = count(t, &l.subject);
	if (counted != REASON_NONE && look.reason == REASON_NONE) {
		look.reason = counted;
		look.observe = l.observe;
	}
	return look;
}

bool dns_tunnel_hides(struct dns_tunnel *t, const struct host *host)
{
	uint64_t hash = slice_hash(host->text, t->seed);
	uint32_t *seen = &t->seen[hash % LIMIT_DNS_HARMLESS], tag = (uint32_t)(hash >> 32) | 1;
	if (*seen == tag)
		return false;
	if (chain_name_is_harmless(t->chain, host->text)) {
		*seen = tag;
		return false;
	}
	struct target target = {.host = *host};
	struct subject s = {.target = &target};
	arena_reset(&t->aside);
	bool hides = (chain_places_to_hide(t->chain, &t->aside, &s) >> PLACE_HOST & 1) != 0;
	if (!hides)
		*seen = tag;
	return hides;
}
