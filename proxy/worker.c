/* The worker process: accepts, serves, follows the master's word, and drains. */
#include "proxy/worker_private.h"

#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/lru.h"
#include "core/base/say.h"
#include "core/proc/control.h"
#include "inspectors/ledger.h"
#include "proxy/bindings.h"
#include "proxy/conn.h"
#include "proxy/oauth2.h"
#include "proxy/pool.h"
#include "proxy/tools.h"
#include "proxy/txn.h"
#include "proxy/watch.h"

/* ---- ids and log ---- */

uint64_t worker_new_id(struct worker *w)
{
	return w->next_id++;
}

void worker_count_held(struct worker *w, int64_t change)
{
	w->held = (size_t)((int64_t)w->held + change);
	metric_set(&w->metrics->held_bytes, w->held);
}

bool worker_spend(struct worker *w, uint64_t bytes)
{
	const struct slice all[] = {SLICE("all"), SLICE("rules")}; /* the id of a rule is one part */
	uint64_t wait_us;
	if (!w->config->out)
		return true;
	uint64_t key = ledger_key(w->config->ledger, w->config->sandbox, LEDGER_OUT, all, 2);
	return ledger_spend(w->config->ledger, key, bytes, *w->config->out, UINT64_MAX, clock_mono_us(), &wait_us) ==
	       CAGE_OK;
}

void worker_event(struct audit_event *e, enum audit_kind kind, const struct generation *g)
{
	*e = (struct audit_event){.ts_us = clock_wall_us(), .kind = kind, .sandbox = generation_sandbox(g)};
	e->policy = audit_policy_text(&g->logged);
}

static void count(struct worker *w, const struct audit_event *e)
{
	metric_add(&w->metrics->decisions.n[e->decision][e->reason], 1);
}

static void wake_writer(struct worker *w)
{
	if (!audit_ring_wants_wakeup(w->config->ring))
		return;
	uint64_t one = 1;
	if (write(w->config->wake, &one, sizeof(one)) < 0)
		return; /* the counter is full: the writer has been woken often enough */
}

enum cage_status worker_log_intent(struct worker *w, const struct audit_event *e)
{
	enum cage_status st = audit_intent(w->config->ring, e);
	if (st != CAGE_OK)
		return st;
	count(w, e);
	wake_writer(w);
	return CAGE_OK;
}

void worker_log_result(struct worker *w, const struct audit_event *e)
{
	audit_result(w->config->ring, e);
	if (e->decision != DECISION_ALLOW)
		count(w, e); /* that it was allowed was counted with the intent */
	wake_writer(w);
}

bool worker_log_note(struct worker *w, const struct audit_event *e)
{
	/* A refusal that finds no place is counted by the ring; it stays a refusal. */
	enum cage_status st = audit_note(w->config->ring, e);
	count(w, e);
	wake_writer(w);
	return st == CAGE_OK;
}

/* While the writer works, a full queue is soon empty: heads wait for that long. When it does not, they are refused. */
bool worker_must_wait_for_log(struct worker *w)
{
	const struct audit_ring *ring = w->config->ring;
	if (audit_ring_pending(ring) < LIMIT_LOG_RING / 2 || !audit_ring_is_written(ring))
		return false;
	struct timeval soon = loop_ms(LIMIT_LOG_WAIT_MS);
	if (!event_pending(w->log_wait, EV_TIMEOUT, NULL))
		event_add(w->log_wait, &soon);
	return true;
}

static void on_log_wait(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct worker *w = arg;
	for (struct conn *c = w->conns; c; c = c->next)
		conn_look_again(c);
}

/* ---- accepting ---- */

static void take_in(struct worker *w, int fd, enum entrance entrance)
{
	if (w->n_conns < LIMIT_CONNS && stream_sockets(w->loop) < LIMIT_STREAMS) {
		conn_new(w, fd, entrance);
		return;
	}
	struct audit_event e;
	worker_event(&e, AUDIT_CONNECT, w->current[0]);
	e.decision = DECISION_BLOCK;
	e.reason = REASON_LIMIT_CONNECTIONS;
	e.stage = STAGE_CONNECT;
	worker_log_note(w, &e);
	close(fd);
}

static void on_accept_proxy(void *arg, int fd)
{
	take_in(arg, fd, ENTRANCE_PROXY);
}

static void on_accept_socks(void *arg, int fd)
{
	take_in(arg, fd, ENTRANCE_SOCKS);
}

static void on_accept_captured(void *arg, int fd)
{
	take_in(arg, fd, ENTRANCE_CAPTURED);
}

static void on_accept_tools(void *arg, int fd)
{
	struct worker *w = arg;
	tools_accept(w->tools, fd);
}

static const accept_cb on_accept[] = {[ENTRANCE_PROXY] = on_accept_proxy,
				      [ENTRANCE_SOCKS] = on_accept_socks,
				      [ENTRANCE_CAPTURED] = on_accept_captured,
				      [ENTRANCE_TOOLS] = on_accept_tools};

/* Closes our ends too, so that clients are refused at once instead of waiting. */
static void stop_accepting(struct worker *w)
{
	for (size_t i = 0; i < w->config->n_listeners; i++) {
		listener_free(&w->listeners[i]);
		close(w->config->listeners[i]);
	}
}

/* ---- a new signer ---- */

/* What the master has sent is lost, as when we are out of descriptors: a successor gets it anew. */
_Noreturn void worker_give_up(const char *what)
{
	say("a worker can't %s and restarts", what);
	_exit(1);
}

/* Without a signer, new names would be refused from now on. */
static void adopt_signer(struct worker *w, int fd)
{
	if (fd < 0)
		worker_give_up("take the new signer");
	leaves_set_signer(w->leaves, fd);
}

/* ---- draining ---- */

/* Ends it at once, with whatever it does. */
void worker_abandon(struct conn *c, enum reason reason)
{
	if (c->state == CONN_TUNNEL)
		tunnel_close(c->txn, reason);
	else if (c->txn)
		txn_abandon(c->txn, reason, reason == REASON_POLICY_CHANGED ? STAGE_POLICY : STAGE_NONE);
	else
		conn_close(c);
}

/* A child is never idle: its request is there when it begins. */
static bool is_idle(const struct conn *c)
{
	return !c->parent && c->state != CONN_BUSY && c->state != CONN_TUNNEL && stream_input(c->down).len == 0 &&
	       stream_unsent(c->down) == 0;
}

/* Ends what is idle, and past the deadline everything. */
static void drain_step(struct worker *w)
{
	bool late = clock_mono_us() > w->drain_deadline_us;
	struct conn *next;
	for (struct conn *c = w->conns; c; c = next) {
		next = c->next;
		if (late)
			worker_abandon(c, REASON_SHUTTING_DOWN);
		else if (c->state == CONN_H2)
			conn_h2_drain(c);
		else if (is_idle(c))
			conn_close(c);
	}
	upstream_h2_expire(w);
	for (size_t i = 0; w->n_conns == 0 && i < w->config->n_seats; i++)
		if (w->current[i])
			generation_hang_up(w->current[i]);
	if (w->n_conns == 0 && (late || stream_count(w->loop) == 0))
		loop_stop(w->loop);
}

static void drain(struct worker *w)
{
	if (w->state == WORKER_DRAINING)
		return;
	w->state = WORKER_DRAINING;
	w->drain_deadline_us = clock_mono_us() + (uint64_t)LIMIT_DRAIN_MS * 1000u;
	stop_accepting(w);
	pool_clear(w->pool);
	struct timeval often = {.tv_usec = 50000};
	event_add(w->tick, &often);
	drain_step(w);
}

/* ---- events ---- */

static void on_control(evutil_socket_t sock, short what, void *arg)
{
	(void)what;
	struct worker *w = arg;
	struct control msg;
	int fd;
	if (!control_from_master(sock, &msg, &fd))
		return;
	if (msg.type == CONTROL_HELPER) {
		adopt_signer(w, fd);
		return;
	}
	if (msg.type == CONTROL_SEAT)
		worker_adopt_seat(w, &msg, fd);
	else if (msg.type == CONTROL_DRAIN)
		drain(w);
	if (fd >= 0)
		close(fd);
}

static bool has_expired(const struct policy_rule *r)
{
	return r && r->expires != 0 && clock_wall_s() >= r->expires;
}

/* Exchanges that take too long, and tunnels and websockets that outlived their rule. */
static void end_overdue(struct worker *w)
{
	uint64_t now = clock_mono_us();
	struct conn *next;
	for (struct conn *c = w->conns; c; c = next) {
		next = c->next;
		if (!c->txn)
			continue;
		if (c->txn->state == TXN_WEBSOCKET) {
			if (has_expired(c->txn->verdict.applies))
				txn_refuse(c->txn, REASON_POLICY_CHANGED, STAGE_POLICY, NULL);
		} else if (c->state == CONN_BUSY && now - c->txn->start_us > (uint64_t)LIMIT_TOTAL_MS * 1000u)
			txn_refuse(c->txn, REASON_UPSTREAM_TIMEOUT, STAGE_RESPONSE, NULL);
		else if (c->state == CONN_TUNNEL && has_expired(c->txn->verdict.applies))
			tunnel_close(c->txn, REASON_POLICY_CHANGED);
	}
}

/* What many slow clients have left in memory is given back once, when it is over: the allocator keeps it otherwise. */
static void give_memory_back(struct worker *w)
{
	size_t waiting = stream_waiting(w->loop);
	if (waiting > w->waited)
		w->waited = waiting;
	if (w->waited < LIMIT_WAITING / 4 || waiting > LIMIT_WAITING / 64)
		return;
	w->waited = 0;
	malloc_trim(0);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct worker *w = arg;
	give_memory_back(w);
	if (w->state == WORKER_DRAINING) {
		drain_step(w);
		return;
	}
	pool_expire(w->pool, loop_now_us(w->loop));
	upstream_h2_expire(w);
	end_overdue(w);
	worker_rest(w);
	metric_set(&w->metrics->log_lost, audit_ring_lost(w->config->ring));
	metric_set(&w->metrics->log_pending, audit_ring_pending(w->config->ring));
}

static void session_free(void *session)
{
	SSL_SESSION_free(session);
}

static bool worker_open(struct worker *w)
{
	const struct worker_config *config = w->config;
	w->loop = loop_new();
	if (!w->loop)
		return false;
	w->pool = pool_new(w->loop, w->metrics);
	w->sessions = lru_new(LIMIT_SESSIONS, session_free);
	w->leaves = leaves_new(w->loop, config->signer, config->leaf_key, w->metrics);
	w->server_ctx = tls_server_ctx_new(config->ticket_keys, conn_on_hello, w);
	w->oauth2 = oauth2_new(w);
	w->tools = tools_new(w);
	if (!w->oauth2 || !w->tools)
		return false;
	if (config->bindings[0] != '\0' && !(w->bindings = bindings_new(w->loop, config->bindings)))
		return false;
	if (config->watch >= 0 && !(w->watch = watch_new(w, config->watch)))
		return false;
	w->seats = config->seats;
	worker_count_seats(w);
	w->current = calloc(config->n_seats, sizeof(struct generation *));
	w->slots = calloc(config->n_seats * LIMIT_POLICY_SLOTS, sizeof(struct generation *));
	if (!w->current || !w->slots || !worker_generation(w, 0))
		return false;
	w->control = event_new(loop_base(w->loop), config->control, EV_READ | EV_PERSIST, on_control, w);
	w->tick = event_new(loop_base(w->loop), -1, EV_PERSIST, on_tick, w);
	w->log_wait = evtimer_new(loop_base(w->loop), on_log_wait, w);
	if (!w->pool || !w->sessions || !w->leaves || !w->server_ctx || !w->control || !w->tick || !w->log_wait)
		return false;
	for (size_t i = 0; i < config->n_listeners; i++) {
		w->listeners[i] = listener_new(w->loop, config->listeners[i], on_accept[config->entrances[i]], w);
		if (!w->listeners[i])
			return false;
	}
	struct timeval second = {.tv_sec = 1};
	return event_add(w->control, NULL) == 0 && event_add(w->tick, &second) == 0;
}

static void worker_close(struct worker *w)
{
	upstream_h2_clear(w);
	pool_free(&w->pool);
	oauth2_free(&w->oauth2);
	bindings_free(&w->bindings);
	watch_free(&w->watch);
	tools_free(&w->tools);
	for (size_t i = 0; i < w->config->n_seats; i++)
		generation_unref(&w->current[i]);
	leaves_free(&w->leaves);
	lru_free(&w->sessions);
	SSL_CTX_free(w->server_ctx);
	if (w->spare_txn) {
		arena_free(&w->spare_txn->arena);
		arena_free(&w->spare_txn->secret_arena);
		free(w->spare_txn);
	}
	event_free(w->control);
	event_free(w->tick);
	event_free(w->log_wait);
	free(w->current);
	free(w->slots);
}

_Noreturn void worker_run(const struct worker_config *config)
{
	struct worker w = {.config = config, .metrics = config->metrics, .next_id = config->first_id};
	audit_ring_adopt(config->ring);
	if (!worker_open(&w)) {
		say("a worker can't start: no memory");
		exit(1);
	}
	struct control ready = {.type = CONTROL_READY, .index = config->index, .gen = config->gen};
	if (control_send(config->control, &ready, -1) != CAGE_OK)
		exit(1);
	loop_run(w.loop);
	worker_close(&w);
	exit(0);
}
