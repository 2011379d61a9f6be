/* The words about a query: its line in the log, and the answer that its client gets. */
#include <unistd.h>

#include "core/base/clock.h"
#include "dns/query_private.h"

/* ---- log ---- */

static void wake_writer(const struct worker *w)
{
	if (!audit_ring_wants_wakeup(w->config->ring))
		return;
	uint64_t one = 1;
	if (write(w->config->wake, &one, sizeof(one)) < 0)
		return; /* the counter is full: the writer has been woken often enough */
}

static void add_time(const struct ask *a, struct audit_event *e)
{
	if (a->start_us == 0)
		return;
	e->has_times = true;
	e->us_dns = e->us_total = clock_mono_us() - a->start_us;
}

bool query_log(const struct ask *a, enum audit_decision decision, enum reason reason, const struct addr *address)
{
	const struct worker *w = a->worker;
	const struct policy_rule *rule = a->verdict.rule;
	char type[DNS_TYPE_TEXT];
	struct audit_event e = {.ts_us = clock_wall_us(),
				.kind = AUDIT_DNS,
				.sandbox = w->config->sandbox,
				.policy = audit_policy_text(&w->logged),
				.txn = a->txn,
				.decision = decision,
				.observed = a->is_observed,
				.reason = reason,
				.stage = STAGE_DNS,
				.rule = rule ? rule->id : SLICE_NONE,
				.method = a->query->q.type ? dns_type_text(a->query->q.type, type) : SLICE_NONE,
				.host = a->hides ? SLICE("[redacted]") : dns_name_text(&a->query->q.name),
				.address = address,
				.findings = a->look.findings,
				.n_findings = a->look.n_findings};
	add_time(a, &e);
	metric_add(&w->metrics->decisions.n[decision][reason], 1);
	bool taken = audit_note(w->config->ring, &e) == CAGE_OK;
	wake_writer(w);
	return taken;
}

/* ---- answers ---- */

static void begin(const struct ask *a, struct dns_writer *out)
{
	struct worker *w = a->worker;
	dns_write_begin(out, w->out, a->client->is_udp ? a->query->udp_size : sizeof(w->out), a->query);
}

static void explain(const struct ask *a, struct dns_writer *out, enum dns_explain code, enum reason reason)
{
	dns_write_explain(out, code, reason_code(reason), a->client->is_verified);
}

void query_answer_rcode(const struct ask *a, enum dns_rcode rcode, enum dns_explain code, enum reason reason)
{
	struct dns_writer out;
	begin(a, &out);
	dns_write_rcode(&out, rcode);
	if (reason != REASON_NONE)
		explain(a, &out, code, reason);
	dns_reply(a->client, dns_write_end(&out));
}

void query_answer(const struct ask *a, const struct dns_answer *answer, uint32_t ttl)
{
	struct dns_writer out;
	begin(a, &out);
	dns_answer_write(answer, ttl, &out);
	dns_reply(a->client, dns_write_end(&out));
}

/* The address, when it is of the type that was asked for. */
static void put_address(const struct ask *a, struct dns_writer *out, const struct addr *addr, uint32_t ttl)
{
	const struct dns_question *q = &a->query->q;
	if (q->type == DNS_TYPE_A && addr->family == ADDR_V4)
		dns_write_a(out, &q->name, ttl, addr->bytes);
	else if (q->type == DNS_TYPE_AAAA && addr->family == ADDR_V6)
		dns_write_aaaa(out, &q->name, ttl, addr->bytes);
}

void query_answer_address(const struct ask *a, const struct addr *addr, uint32_t ttl)
{
	struct dns_writer out;
	begin(a, &out);
	if (addr)
		put_address(a, &out, addr, ttl);
	dns_reply(a->client, dns_write_end(&out));
}

/* ---- refusals ---- */

/* A name whose labels can't be written has no record to write either. */
static const struct addr *sinkhole(const struct ask *a)
{
	const struct policy_dns *dns = &a->worker->policy->dns;
	uint16_t type = a->query->q.type;
	if (dns->denied != DNS_SINKHOLE || !a->query->q.name.is_plain || (type != DNS_TYPE_A && type != DNS_TYPE_AAAA))
		return NULL;
	return policy_sinkhole(dns, type == DNS_TYPE_A ? ADDR_V4 : ADDR_V6);
}

static void answer_denied(const struct ask *a, enum reason reason)
{
	const struct policy_dns *dns = &a->worker->policy->dns;
	const struct addr *addr = sinkhole(a);
	struct dns_writer out;
	begin(a, &out);
	if (dns->denied != DNS_SINKHOLE)
		dns_write_rcode(&out, dns->denied == DNS_NXDOMAIN ? DNS_RCODE_NXDOMAIN : DNS_RCODE_REFUSED);
	else if (!a->query->q.name.is_plain)
		dns_write_rcode(&out, DNS_RCODE_REFUSED);
	if (addr)
		put_address(a, &out, addr, dns->ttl_denied);
	explain(a, &out, DNS_EXPLAIN_BLOCKED, reason);
	dns_reply(a->client, dns_write_end(&out));
}

static bool is_limit(enum reason reason)
{
	return reason == REASON_LIMIT_RATE || reason == REASON_LIMIT_BUDGET || reason == REASON_LIMIT_COUNTERS;
}

void query_refuse(const struct ask *a, enum reason reason)
{
	bool is_type = reason == REASON_QUERY_TYPE;
	const struct addr *addr = is_type || is_limit(reason) ? NULL : sinkhole(a);
	if (!query_log(a, DECISION_BLOCK, reason, addr))
		query_answer_rcode(a, DNS_RCODE_SERVFAIL, DNS_EXPLAIN_OTHER, REASON_LOG_UNAVAILABLE);
	else if (reason == REASON_INTERNAL)
		query_answer_rcode(a, DNS_RCODE_SERVFAIL, DNS_EXPLAIN_OTHER, reason);
	else if (reason == REASON_QUERY_MALFORMED)
		query_answer_rcode(a, DNS_RCODE_FORMERR, DNS_EXPLAIN_OTHER, reason);
	else if (is_type || is_limit(reason))
		query_answer_rcode(a, DNS_RCODE_REFUSED, is_type ? DNS_EXPLAIN_FILTERED : DNS_EXPLAIN_BLOCKED, reason);
	else
		answer_denied(a, reason);
}
