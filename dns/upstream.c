/* Lookups. Each has a state that says who still holds it, since what was handed to c-ares can't be taken back. The oldest
 * ends first: all have the same time. */
#include "dns/upstream.h"

#include <stddef.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "dns/dot.h"
#include "dns/octets.h"
#include "dns/plain.h"
#include "dns/random.h"

#define OPT_SIZE 11
#define PAD_OPTION 12
#define PAD_TO 128 /* bytes: RFC 8467 */
#define MESSAGE_MAX ((DNS_HEADER + DNS_NAME_WIRE + 4 + OPT_SIZE + 4 + PAD_TO) / PAD_TO * PAD_TO)

enum lookup_state {
	LOOKUP_ASKING,   /* the transport is being called */
	LOOKUP_ASKED,    /* the transport holds it, the caller waits */
	LOOKUP_FAILED,   /* it failed while being asked, which waits for the end of the pass */
	LOOKUP_FORGOTTEN /* the caller is gone, the transport holds it still */
};

struct dns_lookup {
	struct dns_exchange exchange; /* first: the transport knows nothing else */
	struct deferred report;
	enum lookup_state state;
	enum cage_status failure; /* of LOOKUP_FAILED */
	struct dns_upstream *owner;
	struct dns_lookup *newer, *older; /* ring through upstream.oldest, unless forgotten */
	uint64_t deadline_us;
	dns_lookup_cb cb;
	void *arg;
	unsigned asked;    /* times */
	uint16_t question; /* bytes of it */
	char message[MESSAGE_MAX];
};

struct ring {
	struct dns_lookup *newest, *oldest;
};

struct dns_upstream {
	struct loop *loop;
	struct dns_plain *plain; /* either this ... */
	struct dns_dot *dot;     /* ... or this */
	struct event *tick;
	struct ring ring;
	size_t count, forgotten; /* the first with the second */
	bool is_closing;
};

/* ---- the list of those that wait ---- */

static void ring_add(struct ring *r, struct dns_lookup *q)
{
	q->older = r->newest;
	q->newer = NULL;
	*(r->newest ? &r->newest->newer : &r->oldest) = q;
	r->newest = q;
}

static void ring_remove(struct ring *r, struct dns_lookup *q)
{
	*(q->newer ? &q->newer->older : &r->newest) = q->older;
	*(q->older ? &q->older->newer : &r->oldest) = q->newer;
}

/* What was told is not in the ring any more, which the analyzer can't see. */
static struct dns_lookup *lookup_of(struct deferred *d)
{
	// NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
	return (struct dns_lookup *)((char *)d - offsetof(struct dns_lookup, report));
}

static void lookup_free(struct dns_lookup *q)
{
	struct dns_upstream *u = q->owner;
	u->forgotten -= q->state == LOOKUP_FORGOTTEN;
	free(q);
	if (--u->count == 0)
		event_del(u->tick);
}

static void forget(struct dns_lookup *q)
{
	ring_remove(&q->owner->ring, q);
	q->state = LOOKUP_FORGOTTEN;
	q->owner->forgotten++;
}

/* Tells the caller, who knows nothing of it from then on. */
static void tell(struct dns_lookup *q, enum cage_status st, struct slice response)
{
	forget(q);
	q->cb(q->arg, st, response);
}

/* ---- the message ---- */

/* An OPT record, over TLS with as much padding as hides the length of the name. */
static size_t put_opt(char *message, size_t at, bool pads)
{
	size_t pad = 0;
	if (pads)
		pad = 4 + (PAD_TO - (at + OPT_SIZE + 4) % PAD_TO) % PAD_TO;
	char *p = message + at;
	memset(p, 0, OPT_SIZE + pad);
	octets_put16(p + 1, DNS_TYPE_OPT);
	octets_put16(p + 3, LIMIT_DNS_UDP);
	octets_put16(p + 9, (uint16_t)pad);
	if (pads) {
		octets_put16(p + OPT_SIZE, PAD_OPTION);
		octets_put16(p + OPT_SIZE + 2, (uint16_t)(pad - 4));
	}
	return at + OPT_SIZE + pad;
}

static void put_header(char *p)
{
	memset(p, 0, DNS_HEADER);
	octets_put16(p, dns_random_u16());
	octets_put16(p + 2, DNS_BIT_RD);
	octets_put16(p + 4, 1);
	octets_put16(p + 10, 1);
}

static bool write_message(struct dns_lookup *q, const struct dns_name *name, uint16_t type)
{
	char *p = q->message + DNS_HEADER;
	size_t n = dns_name_write(name, p, DNS_NAME_WIRE);
	if (n == 0)
		return false;
	octets_put16(p + n, type);
	octets_put16(p + n + 2, DNS_CLASS_IN);
	q->question = (uint16_t)(n + 4);
	put_header(q->message);
	size_t len = put_opt(q->message, DNS_HEADER + n + 4, q->owner->dot != NULL);
	q->exchange.packet = slice_of(q->message, len);
	return true;
}

/* A new id and another spelling: what was learnt from an earlier one is worth nothing. */
static void respell(struct dns_lookup *q)
{
	octets_put16(q->message, dns_random_u16());
	dns_random_case(q->message + DNS_HEADER, (size_t)q->question - 4);
}

static bool is_to_our_question(const struct dns_lookup *q, struct slice response)
{
	struct slice ours = slice_of(q->message + DNS_HEADER, q->question);
	return response.len >= DNS_HEADER + ours.len && octets_get16(response.ptr + 2) & DNS_BIT_QR &&
	       octets_get16(response.ptr + 4) == 1 && slice_starts(slice_from(response, DNS_HEADER), ours);
}

/* ---- a lookup's life ---- */

static void ask(struct dns_lookup *q)
{
	struct dns_upstream *u = q->owner;
	q->state = LOOKUP_ASKING;
	q->asked++;
	respell(q);
	if (u->dot)
		dns_dot_send(u->dot, &q->exchange);
	else
		dns_plain_send(u->plain, &q->exchange);
	if (q->state == LOOKUP_ASKING)
		q->state = LOOKUP_ASKED;
}

static void run_report(struct deferred *d)
{
	struct dns_lookup *q = lookup_of(d);
	tell(q, q->failure, SLICE_NONE);
	lookup_free(q);
}

static void fail_later(struct dns_lookup *q, enum cage_status st)
{
	q->state = LOOKUP_FAILED;
	q->failure = st;
	loop_defer(q->owner->loop, &q->report);
}

static void answered(struct dns_lookup *q, enum cage_status st, struct slice response)
{
	if (st == CAGE_OK && !is_to_our_question(q, response)) {
		if (q->asked < LIMIT_DNS_ASKS) {
			ask(q);
			return;
		}
		st = CAGE_EPROTO;
	}
	tell(q, st, st == CAGE_OK ? response : SLICE_NONE);
	lookup_free(q);
}

static void on_done(struct dns_exchange *x, enum cage_status st, struct slice response)
{
	struct dns_lookup *q = (struct dns_lookup *)x;
	switch (q->state) {
	case LOOKUP_ASKING:
		fail_later(q, st == CAGE_OK ? CAGE_EPROTO : st);
		break;
	case LOOKUP_ASKED:
		answered(q, st, response);
		break;
	case LOOKUP_FORGOTTEN:
		lookup_free(q);
		break;
	case LOOKUP_FAILED:
		break;
	}
}

/* Those whose time is over hear so; c-ares holds them on. What was told is not in the ring any more, here neither. */
static void end_overdue(struct dns_upstream *u)
{
	uint64_t now = loop_now_us(u->loop);
	struct dns_lookup *q;
	// NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
	while ((q = u->ring.oldest) && q->deadline_us <= now && q->state == LOOKUP_ASKED) {
		tell(q, CAGE_ETIMEOUT, SLICE_NONE);
		if (!u->dot)
			continue;
		dns_dot_cancel(u->dot, &q->exchange);
		lookup_free(q);
	}
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct dns_upstream *u = arg;
	if (u->dot)
		dns_dot_tick(u->dot);
	else
		dns_plain_tick(u->plain);
	end_overdue(u);
}

bool dns_upstream_has_room(const struct dns_upstream *u)
{
	return u->count - u->forgotten < LIMIT_DNS_LOOKUPS && u->count < LIMIT_DNS_HELD;
}

static bool count_in(struct dns_upstream *u)
{
	struct timeval tv = loop_ms(LIMIT_DNS_TICK_MS);
	if (u->is_closing || !dns_upstream_has_room(u) || (u->count == 0 && event_add(u->tick, &tv) != 0))
		return false;
	u->count++;
	return true;
}

struct dns_lookup *dns_upstream_query(struct dns_upstream *u, const struct dns_name *name, uint16_t type,
				      dns_lookup_cb cb, void *arg)
{
	if (!name->is_plain || !count_in(u))
		return NULL;
	struct dns_lookup *q = malloc(sizeof(*q));
	if (!q) {
		if (--u->count == 0)
			event_del(u->tick);
		return NULL;
	}
	memset(q, 0, offsetof(struct dns_lookup, message));
	q->exchange.done = on_done;
	q->report.run = run_report;
	q->owner = u;
	q->deadline_us = loop_now_us(u->loop) + LIMIT_DNS_LOOKUP_MS * 1000;
	q->cb = cb;
	q->arg = arg;
	if (!write_message(q, name, type)) {
		lookup_free(q);
		return NULL;
	}
	ring_add(&u->ring, q);
	ask(q);
	return q;
}

void dns_lookup_cancel(struct dns_lookup **qp)
{
	struct dns_lookup *q = *qp;
	*qp = NULL;
	if (!q || q->state == LOOKUP_FORGOTTEN)
		return;
	bool is_ours = q->state == LOOKUP_FAILED;
	forget(q);
	if (is_ours) {
		loop_undefer(q->owner->loop, &q->report);
		lookup_free(q);
	}
}

size_t dns_upstream_count(const struct dns_upstream *u)
{
	return u->count;
}

/* ---- its owner ---- */

static bool open_plain(struct dns_upstream *u, const struct dns_server_spec *servers, size_t n)
{
	struct addr_port at[LIMIT_DNS_SERVERS];
	for (size_t i = 0; i < n; i++)
		at[i] = (struct addr_port){servers[i].addr, servers[i].port};
	u->plain = dns_plain_new(u->loop, at, n);
	return u->plain != NULL;
}

/* Those that are over TLS, as many as there may be. */
static size_t pick_tls(const struct dns_server_spec *servers, size_t n, struct dns_server_spec out[LIMIT_DNS_SERVERS])
{
	size_t kept = 0;
	for (size_t i = 0; i < n && kept < LIMIT_DNS_SERVERS; i++)
		if (servers[i].tls_name.len > 0)
			out[kept++] = servers[i];
	return kept;
}

static bool open_transport(struct dns_upstream *u, const struct dns_server_spec *servers, size_t n,
			   const struct trust *trust)
{
	struct dns_server_spec tls[LIMIT_DNS_SERVERS];
	size_t n_tls = pick_tls(servers, n, tls);
	if (n_tls == 0)
		return open_plain(u, servers, n < LIMIT_DNS_SERVERS ? n : LIMIT_DNS_SERVERS);
	u->dot = dns_dot_new(u->loop, tls, n_tls, trust);
	return u->dot != NULL;
}

struct dns_upstream *dns_upstream_new(struct loop *l, const struct dns_server_spec *servers, size_t n,
				      const struct trust *trust)
{
	struct dns_upstream *u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->loop = l;
	u->tick = event_new(loop_base(l), -1, EV_PERSIST, on_tick, u);
	if (!u->tick || !open_transport(u, servers, n, trust))
		dns_upstream_free(&u);
	return u;
}

void dns_upstream_free(struct dns_upstream **up)
{
	struct dns_upstream *u = *up;
	if (!u)
		return;
	*up = NULL;
	u->is_closing = true;
	dns_plain_free(&u->plain);
	dns_dot_free(&u->dot);
	while (u->ring.oldest) { /* failed while being asked, not yet told */
		loop_undefer(u->loop, &u->ring.oldest->report);
		run_report(&u->ring.oldest->report);
	}
	if (u->tick)
		event_free(u->tick);
	free(u);
}
