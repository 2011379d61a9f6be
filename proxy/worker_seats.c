/* The seats of a worker: which policy holds at each, and what becomes of those who are there when it changes. */
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/proc/policy_store.h"
#include "proxy/conn.h"
#include "proxy/oauth2.h"
#include "proxy/pool.h"
#include "proxy/txn.h"
#include "proxy/worker_private.h"

/* The seat whose policy holds at a seat. */
static size_t policy_seat(const struct worker *w, size_t seat)
{
	return w->seats[seat].policy ? seat : 0;
}

struct generation *worker_generation(struct worker *w, size_t seat)
{
	size_t at = policy_seat(w, seat);
	if (!w->current[at])
		w->current[at] = generation_new(w, at);
	if (w->current[at])
		w->current[at]->used_us = loop_now_us(w->loop);
	return w->current[at];
}

const struct generation *worker_logged(struct worker *w, size_t seat)
{
	const struct generation *g = worker_generation(w, seat);
	return g ? g : w->current[0];
}

/* ---- connections that live ---- */

static bool still_allowed(struct worker *w, const struct conn *c)
{
	const struct policy *p = w->seats[policy_seat(w, c->seat)].policy;
	const struct txn *t = c->txn;
	struct policy_verdict v;
	if (t && t->req.form != TARGET_AUTHORITY)
		v = policy_match_request(p, &t->target, t->req.method, clock_wall_s());
	else if (t)
		v = policy_match_connect(p, &t->target.host, t->target.port, clock_wall_s());
	else
		v = policy_match_connect(p, &c->origin.host, c->origin.port, clock_wall_s());
	bool is_tunnel = t && t->req.form == TARGET_AUTHORITY; /* or on its way to be one */
	if (is_tunnel && !(v.applies && v.applies->action == RULE_TUNNEL))
		return false;
	return v.reason == REASON_NONE || v.observe;
}

/* Live connections that the new policy no longer allows end now. */
static void recheck(struct conn *c)
{
	bool has_target = c->is_bound || (c->txn && c->txn->target.host.text.len > 0);
	if (c->refused != REASON_NONE || !has_target || still_allowed(c->worker, c))
		return;
	if (c->state == CONN_TUNNEL) {
		tunnel_close(c->txn, REASON_POLICY_CHANGED);
	} else if (c->txn) {
		txn_refuse(c->txn, REASON_POLICY_CHANGED, STAGE_POLICY, NULL);
	} else {
		conn_log(c, DECISION_BLOCK, REASON_POLICY_CHANGED, STAGE_POLICY, 0);
		if (c->state == CONN_H2)
			conn_h2_drain_after(c);
		else
			conn_finish(c);
	}
}

/* The slot of a generation is needed again: who still lives under the one in it has seen seven reloads. */
static void evict_slot(struct worker *w, uint32_t slot)
{
	struct conn *next;
	for (struct conn *c = w->conns; c; c = next) {
		next = c->next;
		if (!c->txn || c->txn->gen->slot != slot)
			continue;
		if (c->state == CONN_TUNNEL)
			tunnel_close(c->txn, REASON_POLICY_CHANGED);
		else
			txn_refuse(c->txn, REASON_POLICY_CHANGED, STAGE_POLICY, NULL);
	}
	upstream_h2_evict(w, slot);
	oauth2_evict(w->oauth2, slot);
}

/* ---- a seat has changed ---- */

/* Who sat there has left, or what he showed is no longer good. */
static void end_seat(struct worker *w, size_t seat)
{
	struct conn *next;
	for (struct conn *c = w->conns; c; c = next) {
		next = c->next;
		if (c->seat != seat)
			continue;
		if (!c->txn && !c->parent)
			conn_log(c, DECISION_BLOCK, REASON_POLICY_CHANGED, STAGE_POLICY, 0);
		worker_abandon(c, REASON_POLICY_CHANGED);
	}
}

static bool is_same_person(const struct seat *a, const struct seat *b)
{
	return slice_eq(seat_id(a), seat_id(b)) && memcmp(a->proof, b->proof, SEAT_PROOF) == 0;
}

/* The policy that was there holds no longer; it stays while somebody lives under it. */
static void leave_policy(struct worker *w, size_t seat)
{
	if (w->current[seat])
		generation_unref(&w->current[seat]);
	else if (w->seats[seat].policy)
		policy_store_unmap(w->seats[seat].slot);
}

static void take_policy(struct worker *w, size_t i, const struct seat *now, int fd)
{
	if (now->policy)
		evict_slot(w, now->slot);
	leave_policy(w, i);
	w->seats[i] = *now;
	if (!now->policy)
		return;
	bool is_free = !w->slots[now->slot]; /* not so when we have slept through seven reloads */
	if (!is_free || policy_store_map(now->slot, fd, now->size) != CAGE_OK || (i == 0 && !worker_generation(w, 0)))
		worker_give_up("take the new policy");
}

static void recheck_seat(struct worker *w, size_t seat)
{
	struct conn *next;
	for (struct conn *c = w->conns; c; c = next) {
		next = c->next;
		if (c->seat == seat || policy_seat(w, c->seat) == seat)
			recheck(c);
	}
}

void worker_count_seats(struct worker *w)
{
	w->n_taken = w->config->n_seats;
	while (w->n_taken > 1 && w->seats[w->n_taken - 1].id_len == 0)
		w->n_taken--;
}

void worker_adopt_seat(struct worker *w, const struct control *msg, int fd)
{
	size_t i = msg->index;
	if (i > 0 && !is_same_person(&w->seats[i], &msg->seat))
		end_seat(w, i);
	if (w->seats[i].policy_gen != msg->seat.policy_gen)
		take_policy(w, i, &msg->seat, fd);
	else
		w->seats[i] = msg->seat;
	worker_count_seats(w);
	pool_expire(w->pool, loop_now_us(w->loop));
	upstream_h2_expire(w);
	recheck_seat(w, i);
	struct control ready = {.type = CONTROL_READY, .index = w->config->index, .gen = msg->gen};
	if (control_send(w->config->control, &ready, -1) != CAGE_OK)
		exit(1);
}

/* Of many sandboxes few are at work: what the others need is built again when they come back. */
void worker_rest(struct worker *w)
{
	uint64_t now = loop_now_us(w->loop), n = 0;
	for (size_t i = 0; i < w->config->n_seats; i++) {
		struct generation **g = &w->current[i];
		if (i > 0 && *g && (*g)->refs == 1 && now - (*g)->used_us > (uint64_t)LIMIT_POLICY_REST_MS * 1000u)
			generation_put_away(g);
		n += *g != NULL;
	}
	metric_set(&w->metrics->policies, n);
}
