/* From a packet to a decision. */
#include "core/base/clock.h"
#include "dns/query_private.h"

static struct ask ask_of(struct worker *w, const struct dns_client *c, const struct dns_query *q)
{
	return (struct ask){
		.worker = w, .client = c, .query = q, .host = {.kind = HOST_NAME, .text = dns_name_text(&q->q.name)}};
}

/* ---- the name ---- */

/* Always answered without a record: it could lead past the proxy. */
static bool is_service(uint16_t type)
{
	return type == DNS_TYPE_HTTPS || type == DNS_TYPE_SVCB;
}

static bool is_answered(const struct ask *a)
{
	const struct dns_question *q = &a->query->q;
	return q->class == DNS_CLASS_IN && (q->type == DNS_TYPE_A || q->type == DNS_TYPE_AAAA || is_service(q->type) ||
					    policy_lists_type(&a->worker->policy->dns, q->type));
}

/* A name that no host can have, such as one that ends in a number, is nobody's. */
static bool is_host_name(struct ask *a)
{
	struct host parsed;
	const char *why;
	arena_reset(&a->worker->arena);
	return host_parse(a->host.text, &a->worker->arena, &parsed, &why) == CAGE_OK && parsed.kind == HOST_NAME;
}

/* REASON_NONE: a connection to it could be allowed, or the refusal is only observed. */
static enum reason check_name(struct ask *a)
{
	const struct dns_name *name = &a->query->q.name;
	if (!is_answered(a))
		return REASON_QUERY_TYPE;
	if (name->len == 0)
		return REASON_HOST_NOT_ALLOWED; /* the root */
	if (!name->is_plain)
		return REASON_NAME_SUSPICIOUS;
	a->verdict = policy_match_name(a->worker->policy, &a->host, clock_wall_s());
	return a->verdict.observe ? REASON_NONE : a->verdict.reason;
}

uint32_t query_life(const struct policy_verdict *v, uint32_t seconds)
{
	if (!v->applies || v->applies->expires == 0)
		return seconds;
	int64_t left = v->applies->expires - clock_wall_s();
	if (left <= 0)
		return 0;
	return left < (int64_t)seconds ? (uint32_t)left : seconds;
}

/* ---- what is let through ---- */

/* The line about a query that is answered. A refusal in it is one that is only observed. */
static bool log_allowed(struct ask *a, const struct addr *address)
{
	enum reason observed = a->verdict.reason != REASON_NONE ? a->verdict.reason : a->look.reason;
	a->is_observed = observed != REASON_NONE;
	if (a->is_observed)
		return query_log(a, DECISION_BLOCK, observed, address);
	if (a->look.n_findings > 0)
		return query_log(a, DECISION_FLAG, a->look.findings[0].reason, address);
	return query_log(a, DECISION_ALLOW, REASON_NONE, address);
}

/* Logs it; without a log it is answered with that. */
static bool may_go_on(struct ask *a, const struct addr *address)
{
	if (log_allowed(a, address))
		return true;
	query_answer_rcode(a, DNS_RCODE_SERVFAIL, DNS_EXPLAIN_OTHER, REASON_LOG_UNAVAILABLE);
	return false;
}

static bool answer_pinned(struct ask *a)
{
	const struct worker *w = a->worker;
	const struct policy_pin *pin = policy_pin_for(w->policy, &a->host);
	if (!pin)
		return false;
	metric_add(&w->metrics->local, 1);
	if (may_go_on(a, &pin->addr))
		query_answer_address(a, &pin->addr, w->policy->dns.ttl_max);
	return true;
}

static bool answer_from_cache(struct ask *a)
{
	struct worker *w = a->worker;
	struct addr first;
	uint32_t ttl;
	const struct dns_answer *answer =
		dns_cache_find(w->cache, &a->query->q.name, a->query->q.type, loop_now_us(w->loop), &ttl);
	if (!answer)
		return false;
	metric_add(&w->metrics->cached, 1);
	a->hides = answer->hides;
	if (answer->refused != REASON_NONE)
		query_answer_nothing(a, answer->refused);
	else if (may_go_on(a, dns_answer_address(answer, 0, &first) ? &first : NULL))
		query_answer(a, answer, ttl);
	return true;
}

/* ---- what the name carries ---- */

static void refuse_name(struct ask *a, enum reason reason)
{
	metric_add(&a->worker->metrics->local, 1);
	a->hides = a->hides || dns_tunnel_hides(a->worker->tunnel, &a->host);
	query_refuse(a, reason);
}

/* May the name go on? Else it was refused. Only what leaves counts, or gets an address. */
static bool passes_look(struct ask *a, bool is_counted)
{
	const struct worker *w = a->worker;
	if (!is_host_name(a)) {
		refuse_name(a, REASON_TARGET_MALFORMED);
		return false;
	}
	a->look = is_counted ? dns_tunnel_ask(w->tunnel, &a->verdict, &a->host, w->config->sandbox)
			     : dns_tunnel_look(w->tunnel, &a->verdict, &a->host, w->config->sandbox);
	a->hides = a->look.hides;
	if (a->look.reason == REASON_NONE || a->look.observe)
		return true;
	refuse_name(a, a->look.reason);
	return false;
}

/* The same for a name of which nothing leaves: one look will do as long as the policy and the rule hold. That it was looked at is
 * kept as the answer to a query for a service, which has no other place there. */
static bool passes_look_once(struct ask *a)
{
	struct worker *w = a->worker;
	const struct dns_name *name = &a->query->q.name;
	uint64_t now = loop_now_us(w->loop);
	uint32_t ttl;
	const struct dns_answer *before = dns_cache_find(w->cache, name, DNS_TYPE_HTTPS, now, &ttl);
	if (before) {
		a->hides = before->hides;
		return true;
	}
	if (!passes_look(a, true))
		return false;
	struct dns_answer none = {
		.type = DNS_TYPE_HTTPS, .ttl = query_life(&a->verdict, LIMIT_DNS_LOOKED_S), .hides = a->hides};
	dns_cache_put(w->cache, name, &none, w->policy->gen, now);
	return true;
}

/* ---- the decision ---- */

static bool answer_service(struct ask *a)
{
	if (!is_service(a->query->q.type))
		return false;
	if (!passes_look_once(a))
		return true;
	metric_add(&a->worker->metrics->local, 1);
	if (may_go_on(a, NULL))
		query_answer_address(a, NULL, 0);
	return true;
}

/* Nobody is asked: an address of the pool stands for the name, and there are no records but that. */
static void answer_synthetic(struct ask *a)
{
	const struct worker *w = a->worker;
	const struct policy_dns *dns = &w->policy->dns;
	struct addr given;
	bool has_address = a->query->q.type == DNS_TYPE_A;
	if (!passes_look_once(a))
		return;
	enum cage_status st = has_address ? dns_bindings_give(w->bindings, &dns->pool, a->host.text, &given) : CAGE_OK;
	if (st != CAGE_OK) {
		refuse_name(a, st == CAGE_ELIMIT ? REASON_LIMIT_COUNTERS : REASON_INTERNAL);
		return;
	}
	metric_add(&w->metrics->local, 1);
	uint32_t ttl = LIMIT_DNS_GIVEN_TTL_S < dns->ttl_max ? LIMIT_DNS_GIVEN_TTL_S : dns->ttl_max;
	if (may_go_on(a, has_address ? &given : NULL))
		query_answer_address(a, has_address ? &given : NULL, ttl > dns->ttl_min ? ttl : dns->ttl_min);
}

/* What the cache does not have leaves, so it is looked at. Where it finds no room its only line is that. */
static void ask_upstream(struct ask *a)
{
	struct worker *w = a->worker;
	enum dns_join place = query_place(a);
	if (!passes_look(a, place == DNS_JOIN_FIRST))
		return;
	if (place == DNS_JOIN_FULL) {
		metric_add(&w->metrics->local, 1);
		query_answer_nothing(a, REASON_LIMIT_CONNECTIONS);
		return;
	}
	a->txn = w->next_id++;
	metric_add(&w->metrics->forwarded, 1);
	if (may_go_on(a, NULL))
		query_forward(a);
}

static bool is_page(const struct ask *a)
{
	return is_answered(a) && slice_eq(a->host.text, SLICE(POLICY_PAGE_HOST));
}

/* In a room every address leads to the proxy: it is answered with one that is nobody's. */
static void answer_page(struct ask *a)
{
	static const struct addr nobody = {.family = ADDR_V4, .bytes = {192, 0, 2, 1}};
	const struct addr *addr = a->query->q.type == DNS_TYPE_A ? &nobody : NULL;
	metric_add(&a->worker->metrics->local, 1);
	if (may_go_on(a, addr))
		query_answer_address(a, addr, a->worker->policy->dns.ttl_denied);
}

void query_decide(struct ask *a)
{
	struct worker *w = a->worker;
	if (!audit_is_available(w->config->ring)) {
		metric_add(&w->metrics->decisions.n[DECISION_BLOCK][REASON_LOG_UNAVAILABLE], 1);
		query_answer_rcode(a, DNS_RCODE_SERVFAIL, DNS_EXPLAIN_OTHER, REASON_LOG_UNAVAILABLE);
		return;
	}
	if (is_page(a)) {
		answer_page(a);
		return;
	}
	enum reason r = check_name(a);
	if (r != REASON_NONE)
		refuse_name(a, r);
	else if (w->policy->dns.mode == DNS_SYNTHETIC)
		answer_synthetic(a);
	else if (!answer_pinned(a) && !answer_service(a) && !answer_from_cache(a))
		ask_upstream(a);
}

static void answer_broken(struct ask *a, enum dns_parse parse)
{
	metric_add(&a->worker->metrics->local, 1);
	a->hides = dns_tunnel_hides(a->worker->tunnel, &a->host);         /* some have a question that is good */
	(void)query_log(a, DECISION_BLOCK, REASON_QUERY_MALFORMED, NULL); /* nothing is let out, with or without it */
	query_answer_rcode(a, dns_parse_rcode(parse), DNS_EXPLAIN_OTHER, REASON_NONE);
}

void query_arrived(void *worker, const struct dns_client *c, struct slice packet)
{
	struct worker *w = worker;
	struct dns_query q;
	enum dns_parse parse = dns_query_parse(packet, &q);
	if (parse == DNS_PARSE_DROP) {
		metric_add(&w->metrics->dropped, 1);
		dns_drop(c);
		return;
	}
	struct ask a = ask_of(w, c, &q);
	if (parse == DNS_PARSE_OK)
		query_decide(&a);
	else
		answer_broken(&a, parse);
}

/* Where nothing can be written there is nothing to wait for: all are told so. */
bool query_has_room(void *worker)
{
	const struct worker *w = worker;
	const struct audit_ring *ring = w->config->ring;
	return !audit_ring_is_written(ring) || audit_ring_pending(ring) <= LIMIT_LOG_RING / 2;
}

/* ---- what did not become a query ---- */

static void log_refusal(struct worker *w, enum reason why)
{
	static const struct dns_query none;
	struct ask a = {.worker = w, .query = &none};
	(void)query_log(&a, DECISION_BLOCK, why, NULL);
}

void query_connection_refused(void *worker, enum reason why, const struct addr *from)
{
	(void)from; /* clients have no place in the log: the sandbox is known */
	log_refusal(worker, why);
}

void query_rate_limited(struct worker *w)
{
	log_refusal(w, REASON_LIMIT_RATE);
}
