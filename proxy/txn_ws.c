/* A websocket's handshake, on both sides, and what drives it afterwards. */
#include "proxy/txn_ws.h"

#include <stdlib.h>

/* Payload of clients is unmasked here: of one frame at a time, since workers are single-threaded. */
static char unmasked[FIFO_BLOCK];

/* ---- the handshake ---- */

/* What extensions do to frames nobody here could read. */
static void drop_extensions(struct message *m)
{
	for (size_t i = 0; i < m->n_fields; i++)
		if (slice_ieq(m->fields[i].name, SLICE("sec-websocket-extensions")))
			m->fields[i].id = FIELD_DROPPED;
}

enum reason txn_ws_check(struct txn *t, const char **detail)
{
	struct slice key;
	const char *fault;
	if (t->req.form == TARGET_AUTHORITY)
		return REASON_NONE;
	switch (ws_check_request(&t->req, &key, &fault)) {
	case WS_UPGRADE_NONE:
		return REASON_NONE;
	case WS_UPGRADE_BROKEN:
		*detail = fault;
		return REASON_HEAD_MALFORMED;
	case WS_UPGRADE_GOOD:
		break;
	}
	t->ws = calloc(1, sizeof(*t->ws));
	if (!t->ws)
		return REASON_INTERNAL;
	t->ws->client_key = key;
	arena_init(&t->ws->out.message.arena, LIMIT_TXN_ARENA);
	arena_init(&t->ws->out.control.arena, LIMIT_TXN_ARENA);
	arena_init(&t->ws->batch.arena, LIMIT_TXN_ARENA);
	drop_extensions(&t->req);
	return REASON_NONE;
}

static bool set_field(struct message *m, struct slice name, struct slice value)
{
	for (size_t i = 0; i < m->n_fields; i++) {
		if (!slice_ieq(m->fields[i].name, name))
			continue;
		m->fields[i].value = value;
		return true;
	}
	return false;
}

bool txn_ws_offer(struct txn *t)
{
	struct txn_ws *ws = t->ws;
	return ws_make_nonce(ws->key) &&
	       set_field(&t->req, SLICE("sec-websocket-key"), slice_of(ws->key, sizeof(ws->key)));
}

/* The answer to the key of the client, in place of that to ours. */
static bool set_accept(struct txn *t)
{
	char *accept = arena_alloc(&t->arena, WS_ACCEPT_LEN);
	return accept && ws_make_accept(t->ws->client_key, accept) &&
	       set_field(&t->resp, SLICE("sec-websocket-accept"), slice_of(accept, WS_ACCEPT_LEN));
}

/* ---- the streams ---- */

static void on_ready(struct stream *s, void *arg)
{
	(void)s, (void)arg; /* the handshake was over before */
}

static void on_moved(struct stream *s, void *arg)
{
	(void)s;
	txn_ws_pump(arg);
}

static bool is_closing(const struct txn *t)
{
	return t->ws->out.state == WAY_CLOSED || t->ws->in.state == WAY_CLOSED;
}

/* What a side has still said before its end is read first. */
static void ended(struct txn *t, enum cage_status why, enum reason timeout, enum reason gone)
{
	if (why == CAGE_EOF)
		txn_ws_pump(t);
	else if (is_closing(t))
		txn_ws_end_closed(t);
	else
		txn_ws_end(t, why == CAGE_ETIMEOUT ? timeout : gone, STAGE_RESPONSE);
}

static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	ended(arg, why, REASON_UPSTREAM_TIMEOUT, REASON_UPSTREAM_TRUNCATED);
}

void txn_ws_client_ended(struct txn *t, enum cage_status why)
{
	ended(t, why, REASON_CLIENT_TIMEOUT, REASON_CLIENT_GONE);
}

static const struct stream_cb server_cb = {
	.on_ready = on_ready, .on_data = on_moved, .on_drained = on_moved, .on_end = on_end};

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	txn_ws_pump(arg);
}

static void set_times(struct txn *t)
{
	struct stream *ends[] = {t->conn->down, t->up->stream};
	for (size_t i = 0; i < 2; i++) {
		stream_set_idle(ends[i], LIMIT_WS_IDLE_MS);
		stream_set_stall(ends[i], LIMIT_STALL_MS);
	}
}

void txn_ws_start(struct txn *t)
{
	struct txn_ws *ws = t->ws;
	const char *fault;
	if (!ws_check_response(&t->resp, slice_of(ws->key, sizeof(ws->key)), &t->req, &fault)) {
		txn_refuse(t, REASON_UPSTREAM_MALFORMED, STAGE_RESPONSE, fault);
		return;
	}
	ws->stream = chain_stream_new();
	ws->turn = evtimer_new(loop_base(t->worker->loop), on_turn, t);
	if (!ws->stream || !ws->turn || !set_accept(t) || !txn_relay_upgrade(t)) {
		txn_refuse(t, REASON_INTERNAL, STAGE_RESPONSE, NULL);
		return;
	}
	chain_stream_defer(ws->stream);
	ws_reader_init(&ws->out.reader, WS_CLIENT, unmasked, sizeof(unmasked));
	ws_reader_init(&ws->in.reader, WS_SERVER, NULL, 0);
	txn_enter(t, TXN_WEBSOCKET);
	stream_set_owner(t->up->stream, &server_cb, t);
	set_times(t);
	txn_ws_pump(t);
}

/* ---- afterwards ---- */

/* As far as it goes, but no further than others can wait: the rest is for the next pass. False: the transaction is gone. */
static bool pump_way(struct txn *t, enum ws_step (*take_step)(struct txn *))
{
	const struct timeval at_once = {0};
	enum ws_step step = STEP_ON;
	for (size_t n = 0; step == STEP_ON && n < LIMIT_WS_STEPS; n++)
		step = take_step(t);
	if (step == STEP_ON)
		event_add(t->ws->turn, &at_once);
	return step != STEP_OVER;
}

void txn_ws_pump(struct txn *t)
{
	const struct txn_ws *ws = t->ws;
	bool was_closing = is_closing(t);
	if (evtimer_pending(ws->turn, NULL))
		return; /* others first */
	if (!pump_way(t, ws_step_in) || !pump_way(t, ws_step_out) || ws_release(t) == STEP_OVER)
		return;
	if (ws->out.state == WAY_CLOSED && ws->in.state == WAY_CLOSED) {
		txn_ws_end_closed(t);
	} else if (is_closing(t) && !was_closing) {
		stream_set_deadline(t->conn->down, LIMIT_WS_CLOSE_MS);
		stream_set_deadline(t->up->stream, LIMIT_WS_CLOSE_MS);
	}
}

static void free_item(struct txn *t, struct ws_item *item)
{
	ws_item_drop(t, item);
	arena_free(&item->arena);
}

void txn_ws_free(struct txn *t)
{
	struct txn_ws *ws = t->ws;
	if (!ws)
		return;
	free_item(t, &ws->out.message);
	free_item(t, &ws->out.control);
	free_item(t, &ws->batch);
	free_item(t, &ws->in.message);
	free_item(t, &ws->in.control);
	chain_stream_free(&ws->stream);
	if (ws->turn)
		event_free(ws->turn);
	free(ws);
	t->ws = NULL;
}
