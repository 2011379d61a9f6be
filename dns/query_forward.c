/* Questions that leave: who waits for them, and what becomes of the answer. */
#include <stdlib.h>

#include "core/base/clock.h"
#include "dns/query_private.h"

/* One question to the upstreams. */
struct flight {
	struct worker *worker;
	struct dns_group *group;
	uint64_t start_us;
};

/* ---- waiting ---- */

static struct dns_asked *asked_new(const struct ask *a)
{
	struct dns_asked *x = malloc(sizeof(*x));
	struct slice raw = a->query->q.raw_name;
	if (!x || raw.len > sizeof(x->raw_name)) {
		free(x);
		return NULL;
	}
	x->next = NULL;
	x->client = *a->client;
	x->query = *a->query;
	x->txn = a->txn;
	x->hides = a->hides;
	x->start_us = clock_mono_us();
	memcpy(x->raw_name, raw.ptr, raw.len);
	x->query.q.raw_name = slice_of(x->raw_name, raw.len);
	return x;
}

/* The verdict is that of now: a policy can't change while somebody waits, but a rule's time can end. */
static struct ask ask_of(struct worker *w, const struct dns_asked *x)
{
	struct ask a = {.worker = w,
			.client = &x->client,
			.query = &x->query,
			.host = {.kind = HOST_NAME, .text = dns_name_text(&x->query.q.name)},
			.hides = x->hides,
			.txn = x->txn,
			.start_us = x->start_us};
	a.verdict = policy_match_name(w->policy, &a.host, clock_wall_s());
	return a;
}

/* ---- failing ---- */

static enum reason reason_of(enum cage_status st)
{
	switch (st) {
	case CAGE_ETIMEOUT:
		return REASON_UPSTREAM_TIMEOUT;
	case CAGE_EVERIFY:
		return REASON_UPSTREAM_UNVERIFIED;
	case CAGE_EPROTO:
		return REASON_UPSTREAM_MALFORMED;
	case CAGE_ELIMIT:
	case CAGE_ENOMEM:
		return REASON_LIMIT_CONNECTIONS;
	case CAGE_OK:
		return REASON_NONE;
	case CAGE_AGAIN:
	case CAGE_EOF:
	case CAGE_TRUNCATED:
	case CAGE_ESYS:
	default:
		return REASON_UPSTREAM_UNREACHABLE;
	}
}

static void fail(const struct ask *a, enum reason reason)
{
	(void)query_log(a, DECISION_ERROR, reason, NULL); /* that it was asked is in the log */
	query_answer_rcode(a, DNS_RCODE_SERVFAIL, DNS_EXPLAIN_NO_REACHABLE, reason);
}

/* What an upstream does wrong is an error; what it says that may not be heard is refused. */
static bool is_failure(enum reason reason)
{
	return reason == REASON_UPSTREAM_MALFORMED || reason == REASON_UPSTREAM_TRUNCATED ||
	       reason == REASON_UPSTREAM_TIMEOUT || reason == REASON_UPSTREAM_UNREACHABLE ||
	       reason == REASON_UPSTREAM_UNVERIFIED || reason == REASON_LIMIT_CONNECTIONS;
}

void query_answer_nothing(const struct ask *a, enum reason reason)
{
	if (is_failure(reason))
		fail(a, reason);
	else
		query_refuse(a, reason);
}

/* ---- the answer ---- */

/* By whom an answer is vetted, and for how many seconds at most that holds: until the first of the rules ends. */
struct vetting {
	const struct worker *worker;
	uint32_t life;
};

static enum reason check_alias(void *arg, const struct dns_name *name)
{
	struct vetting *x = arg;
	const struct worker *w = x->worker;
	struct host host = {.kind = HOST_NAME, .text = dns_name_text(name)};
	struct policy_verdict v = policy_match_name(w->policy, &host, clock_wall_s());
	x->life = query_life(&v, x->life);
	if (v.observe || (w->policy->dns.aliases == DNS_ALIASES_ANY && v.reason == REASON_HOST_NOT_ALLOWED))
		return REASON_NONE;
	return v.reason;
}

/* life: how long it may be used, whatever its TTL. */
static enum reason read_answer(const struct worker *w, const struct dns_group *g, struct slice response,
			       union dns_answer_room *room, uint32_t *life)
{
	struct host host = {.kind = HOST_NAME, .text = dns_name_text(&g->name)};
	struct policy_verdict v = policy_match_name(w->policy, &host, clock_wall_s());
	if (v.reason != REASON_NONE && !v.observe)
		return v.reason; /* the rule has expired meanwhile */
	struct vetting vetting = {.worker = w, .life = query_life(&v, LIMIT_BINDING_LIFE_S)};
	struct dns_answer_rules rules = {.vet = {.self = w->config->self, .n_self = w->config->n_self},
					 .ttl_min = w->policy->dns.ttl_min,
					 .ttl_max = w->policy->dns.ttl_max,
					 .check = check_alias,
					 .arg = &vetting};
	if (v.applies) {
		rules.vet.ranges = v.applies->addresses;
		rules.vet.n_ranges = v.applies->n_addresses;
	}
	enum reason why = dns_answer_read(response, &g->name, g->type, &rules, room);
	*life = vetting.life;
	if (why == REASON_NONE && room->answer.ttl > vetting.life)
		room->answer.ttl = vetting.life; /* also when it is less than ttl.min */
	return why;
}

/* Before any client hears of it. False: no memory. */
static bool tell_proxies(struct worker *w, const struct dns_group *g, const struct dns_answer *answer, uint32_t life)
{
	uint32_t with_grace = answer->ttl + LIMIT_BINDING_GRACE_S;
	struct addr addrs[LIMIT_ANSWERS];
	size_t n = 0;
	if (!w->bindings)
		return true;
	while (n < LIMIT_ANSWERS && dns_answer_address(answer, n, &addrs[n]))
		n++;
	return dns_bindings_tell(w->bindings, dns_name_text(&g->name), addrs, n, with_grace < life ? with_grace : life);
}

static void answer_one(struct worker *w, const struct dns_asked *x, enum reason reason, const struct dns_answer *answer)
{
	struct ask a = ask_of(w, x);
	if (reason == REASON_NONE)
		query_answer(&a, answer, answer->ttl);
	else
		query_answer_nothing(&a, reason);
}

static void answer_all(struct worker *w, struct dns_waiter *first, enum reason reason, const struct dns_answer *answer)
{
	while (first) {
		struct dns_asked *x = (struct dns_asked *)(void *)first;
		first = first->next;
		answer_one(w, x, reason, answer);
		free(x);
	}
}

static void keep_for_later(struct worker *w, struct dns_waiter *first)
{
	for (; first; first = first->next) {
		struct dns_asked *x = (struct dns_asked *)(void *)first;
		x->next = NULL;
		*w->again_last = x;
		w->again_last = &x->next;
	}
}

static void count_flight(struct worker *w, const struct flight *f)
{
	histogram_add(&w->metrics->upstream_us, clock_mono_us() - f->start_us);
	metric_set(&w->metrics->waiting, dns_waiting_count(w->waiting));
}

/* What failed or is refused is kept, too: else a client that asks again and again could make as many questions leave as it
 * likes, and when each comes would tell something. What is our own lack never left. */
static void keep(struct worker *w, const struct dns_group *g, struct dns_answer *answer)
{
	answer->hides = ((struct dns_asked *)(void *)g->first)->hides; /* it is the same name for all of them */
	if (answer->refused != REASON_LIMIT_CONNECTIONS)
		dns_cache_put(w->cache, &g->name, answer, g->generation, loop_now_us(w->loop));
}

static void on_response(void *arg, enum cage_status st, struct slice response)
{
	struct flight *f = arg;
	struct worker *w = f->worker;
	struct dns_group *g = f->group;
	union dns_answer_room room;
	uint32_t life = 0;
	dns_waiting_take(w->waiting, g);
	count_flight(w, f);
	free(f);
	if (w->state == WORKER_CHANGING) {
		keep_for_later(w, g->first);
		free(g);
		return;
	}
	enum reason reason = st == CAGE_OK ? read_answer(w, g, response, &room, &life) : reason_of(st);
	if (reason == REASON_NONE && !tell_proxies(w, g, &room.answer, life))
		reason = REASON_INTERNAL;
	if (reason != REASON_NONE)
		room.answer = (struct dns_answer){.type = g->type, .ttl = LIMIT_DNS_FAILED_S, .refused = reason};
	keep(w, g, &room.answer);
	answer_all(w, g->first, reason, &room.answer);
	free(g);
}

/* ---- asking ---- */

static void give_up(struct worker *w, struct dns_group *g)
{
	dns_waiting_take(w->waiting, g);
	answer_all(w, g->first, REASON_LIMIT_CONNECTIONS, NULL);
	free(g);
}

static void ask_for(struct worker *w, struct dns_group *g)
{
	struct flight *f = malloc(sizeof(*f));
	if (f) {
		*f = (struct flight){.worker = w, .group = g, .start_us = clock_mono_us()};
		if (dns_upstream_query(w->upstream, &g->name, g->type, on_response, f))
			return;
	}
	free(f);
	give_up(w, g);
}

enum dns_join query_place(const struct ask *a)
{
	const struct worker *w = a->worker;
	enum dns_join place = dns_waiting_place(w->waiting, &a->query->q.name, a->query->q.type, w->policy->gen);
	return place == DNS_JOIN_FIRST && !dns_upstream_has_room(w->upstream) ? DNS_JOIN_FULL : place;
}

void query_forward(const struct ask *a)
{
	struct worker *w = a->worker;
	struct dns_group *g = NULL;
	struct dns_asked *x = asked_new(a);
	enum dns_join joined =
		x ? dns_waiting_join(w->waiting, &a->query->q.name, a->query->q.type, w->policy->gen, &x->waiter, &g)
		  : DNS_JOIN_FULL;
	metric_set(&w->metrics->waiting, dns_waiting_count(w->waiting));
	switch (joined) {
	case DNS_JOIN_FIRST:
		ask_for(w, g);
		break;
	case DNS_JOIN_MORE:
		metric_add(&w->metrics->joined, 1);
		break;
	case DNS_JOIN_FULL:
		free(x);
		fail(a, REASON_LIMIT_CONNECTIONS);
		break;
	}
}

void query_ask_again(struct worker *w)
{
	struct dns_asked *x = w->again;
	w->again = NULL;
	w->again_last = &w->again;
	while (x) {
		struct dns_asked *next = x->next;
		struct ask a = {.worker = w,
				.client = &x->client,
				.query = &x->query,
				.host = {.kind = HOST_NAME, .text = dns_name_text(&x->query.q.name)}};
		query_decide(&a);
		free(x);
		x = next;
	}
}
