/* Servers that speak HTTP/2: a connection with one of them is shared by all requests of the same key, each on a stream of
 * its own. While the first of them is on its way, the others wait for it. */
#include <stdlib.h>

#include "proxy/h2_client.h"
#include "proxy/upstream_private.h"

/* A connection that is shared. */
struct h2_origin {
	struct h2_origin *next, *prev; /* in worker->h2_origins, the newest first */
	struct upstream *up;           /* key, address and generation; its stream is the client's now */
	SSL *ssl;                      /* knows up, which gets its sessions */
	struct h2_client *client;
};

static struct slice key_of(const struct h2_origin *o)
{
	return slice_of(o->up->key, o->up->key_len);
}

/* ---- life of a connection ---- */

static void origin_free(struct worker *w, struct h2_origin *o)
{
	if (w->h2_origins == o)
		w->h2_origins = o->next;
	else
		o->prev->next = o->next;
	if (o->next)
		o->next->prev = o->prev;
	w->n_h2_origins--;
	SSL_set_app_data(o->ssl, NULL); /* a late ticket finds nobody */
	SSL_free(o->ssl);
	h2_client_free(&o->client);
	upstream_close(&o->up);
	free(o);
}

static void on_end(struct h2_client *h, void *arg)
{
	(void)h;
	struct h2_origin *o = arg;
	origin_free(o->up->worker, o);
}

static const struct h2_client_cb client_cb = {.on_end = on_end};

/* One that nobody uses makes room: the oldest. Those in use are bounded by the requests. */
static void make_room(struct worker *w)
{
	struct h2_origin *idle = NULL;
	if (w->n_h2_origins < LIMIT_POOL_IDLE)
		return;
	for (struct h2_origin *o = w->h2_origins; o; o = o->next)
		if (h2_client_calls(o->client) == 0)
			idle = o;
	if (idle)
		origin_free(w, idle);
}

static void origin_link(struct worker *w, struct h2_origin *o)
{
	o->next = w->h2_origins;
	if (o->next)
		o->next->prev = o;
	w->h2_origins = o;
	w->n_h2_origins++;
}

static struct h2_origin *origin_new(struct upstream *up)
{
	struct worker *w = up->worker;
	struct h2_origin *o = calloc(1, sizeof(*o));
	SSL *ssl = stream_ssl(up->stream);
	if (!o)
		return NULL;
	o->client = h2_client_new(w->loop, up->stream, &client_cb, o);
	if (!o->client) {
		free(o);
		return NULL;
	}
	SSL_up_ref(ssl);
	o->ssl = ssl;
	o->up = up;
	up->stream = NULL;
	make_room(w);
	origin_link(w, o);
	return o;
}

static bool is_outdated(const struct h2_origin *o)
{
	const struct worker *w = o->up->worker;
	return w->state != WORKER_SERVING || !generation_is_current(o->up->gen);
}

void upstream_h2_expire(struct worker *w)
{
	struct h2_origin *next;
	for (struct h2_origin *o = w->h2_origins; o; o = next) {
		next = o->next;
		if (is_outdated(o) && h2_client_calls(o->client) == 0)
			origin_free(w, o);
	}
}

void upstream_h2_evict(struct worker *w, uint32_t slot)
{
	struct h2_origin *next;
	for (struct h2_origin *o = w->h2_origins; o; o = next) {
		next = o->next;
		if (o->up->gen->slot == slot)
			origin_free(w, o);
	}
}

void upstream_h2_clear(struct worker *w)
{
	while (w->h2_origins)
		origin_free(w, w->h2_origins);
}

/* ---- requests on it ---- */

static struct upstream *open_request(struct h2_origin *o)
{
	struct upstream *up = calloc(1, sizeof(*up));
	if (!up)
		return NULL;
	up->worker = o->up->worker;
	up->gen = generation_ref(o->up->gen);
	up->addr = o->up->addr;
	up->is_h2 = true;
	up->stream = h2_client_open(o->client);
	if (!up->stream)
		upstream_close(&up);
	return up;
}

struct upstream *upstream_h2_take(struct worker *w, const struct upstream_want *want, struct slice key)
{
	for (struct h2_origin *o = w->h2_origins; o; o = o->next) {
		if (!slice_eq(key_of(o), key) || !h2_client_has_room(o->client) ||
		    !upstream_is_bound(w, want, &o->up->addr))
			continue;
		struct upstream *up = open_request(o);
		if (!up)
			return NULL;
		up->reused = true;
		metric_add(&w->metrics->upstream_reused, 1);
		return up;
	}
	return NULL;
}

bool upstream_h2_share(struct reach *r)
{
	struct h2_origin *o = origin_new(r->up);
	if (!o)
		return false;
	r->up = open_request(o);
	return r->up != NULL;
}

/* ---- waiting for one that is on its way ---- */

static bool is_same_way(const struct reach *a, const struct reach *b)
{
	return a != b && slice_eq(slice_of(a->key, a->key_len), slice_of(b->key, b->key_len));
}

static bool has_leader(const struct reach *r)
{
	for (const struct reach *other = r->worker->h2_reaches; other; other = other->next_h2)
		if (other->state != REACH_WAIT && !other->is_alone && is_same_way(other, r))
			return true;
	return false;
}

static void lead_or_wait(struct reach *r)
{
	if (!r->is_alone && has_leader(r))
		return;
	reach_start(r);
}

static void run_wake(struct deferred *d)
{
	struct reach *r = (struct reach *)(void *)((char *)d - offsetof(struct reach, wake));
	r->up = upstream_h2_take(r->worker, &r->want, slice_of(r->key, r->key_len));
	if (!r->up) {
		lead_or_wait(r);
		return;
	}
	r->result.addr = r->up->addr;
	r->result.us_connect = reach_step_time(r);
	reach_finish(r, REASON_NONE);
}

void upstream_h2_join(struct reach *r)
{
	struct worker *w = r->worker;
	r->next_h2 = w->h2_reaches;
	if (r->next_h2)
		r->next_h2->prev_h2 = r;
	w->h2_reaches = r;
	r->wake.run = run_wake;
	r->state = REACH_WAIT;
	lead_or_wait(r);
}

static void unlink_reach(struct reach *r)
{
	if (r->prev_h2)
		r->prev_h2->next_h2 = r->next_h2;
	else
		r->worker->h2_reaches = r->next_h2;
	if (r->next_h2)
		r->next_h2->prev_h2 = r->prev_h2;
}

static void tell(struct reach *waiter, const struct reach *r, enum reach_outcome outcome)
{
	if (outcome == REACH_MISSED) {
		waiter->result.detail = r->result.detail;
		waiter->result.addr = r->result.addr;
		reach_fail_later(waiter, r->result.reason);
		return;
	}
	waiter->is_alone = outcome == REACH_GOT_H1;
	loop_defer(waiter->worker->loop, &waiter->wake);
}

void upstream_h2_part(struct reach *r, enum reach_outcome outcome)
{
	bool was_leading = r->state != REACH_WAIT && !r->is_alone;
	if (!r->wake.run)
		return; /* it has not joined, or has parted already */
	loop_undefer(r->worker->loop, &r->wake);
	r->wake.run = NULL;
	unlink_reach(r);
	if (!was_leading)
		return;
	for (struct reach *other = r->worker->h2_reaches; other; other = other->next_h2)
		if (other->state == REACH_WAIT && is_same_way(other, r))
			tell(other, r, outcome);
}
