/* A websocket from the client to the server: each message is shown to the inspectors as it comes, and goes on when all
 * of it was. Small ones are gathered, since together they are looked at as fast as one of them. */
#include "core/base/clock.h"
#include "proxy/keyring.h"
#include "proxy/txn_ws.h"

/* What came before it, and may leave, does. */
static enum ws_step stop(struct txn *t, const struct ws_item *item, enum reason reason)
{
	if (item != &t->ws->batch && ws_release(t) == STEP_OVER)
		return STEP_OVER;
	txn_ws_stop(t, item, reason, 0);
	return STEP_OVER;
}

/* ---- the inspectors ---- */

static void on_resumed(void *txn)
{
	txn_ws_pump(txn);
}

static enum message_kind kind_of(enum ws_opcode opcode)
{
	switch (opcode) {
	case WS_OP_TEXT:
		return MESSAGE_TEXT;
	case WS_OP_BINARY:
		return MESSAGE_BINARY;
	case WS_OP_CONTINUATION:
	case WS_OP_CLOSE:
	case WS_OP_PING:
	case WS_OP_PONG:
		break;
	}
	return MESSAGE_CONTROL;
}

static struct subject subject_of(struct txn *t, const struct ws_item *item)
{
	return (struct subject){.target = &t->target,
				.method = t->req.method,
				.head = &t->req,
				.rule = t->verdict.applies,
				.sandbox = t->conn->sandbox,
				.txn = t->id,
				.message = kind_of(item->opcode),
				.body_placeholders = t->body_placeholders,
				.n_body_placeholders = t->n_body_placeholders};
}

static bool open_run(struct txn *t, struct ws_item *item)
{
	struct subject s = subject_of(t, item);
	struct chain_owner owner = {.resume = on_resumed, .arg = t};
	if (t->gen->keyring && !keyring_refresh(t->gen->keyring))
		return false;
	item->unanswered = 0;
	item->run = chain_begin(t->gen->chain, &item->arena, &s, txn_observes(t), &owner);
	return item->run != NULL;
}

/* What the inspectors say is in the run; false: they can't be asked. */
static bool begin_run(struct txn *t, struct ws_item *item)
{
	if (!open_run(t, item))
		return false;
	uint64_t since_us = clock_mono_us();
	(void)chain_message(item->run, t->ws->stream);
	t->inspect_us += clock_mono_us() - since_us;
	return true;
}

static enum ws_step judge(struct txn *t, const struct ws_item *item)
{
	if (item->run && chain_verdict(item->run) == CHAIN_BLOCK)
		return stop(t, item, chain_block(item->run)->reason);
	return STEP_ON;
}

static enum ws_step begin(struct txn *t, struct ws_item *item, const struct ws_event *e)
{
	item->opcode = e->opcode;
	item->code = e->code;
	return begin_run(t, item) ? judge(t, item) : stop(t, item, REASON_INTERNAL);
}

static enum ws_step add(struct txn *t, struct ws_item *item, struct slice piece)
{
	uint64_t since_us = clock_mono_us();
	if (!worker_spend(t->worker, piece.len))
		return stop(t, item, REASON_LIMIT_BUDGET);
	t->body_bytes += piece.len;
	item->unanswered += piece.len;
	if (chain_body(item->run, piece) != CHAIN_HOLD)
		item->unanswered = 0;
	t->inspect_us += clock_mono_us() - since_us;
	if (judge(t, item) == STEP_OVER)
		return STEP_OVER;
	return ws_item_put(t, item, piece) == CAGE_OK ? STEP_ON : stop(t, item, REASON_LIMIT_HOLD);
}

/* ---- a whole message ---- */

static struct slice skip_blanks(struct slice s)
{
	size_t i = 0;
	while (i < s.len && (s.ptr[i] == ' ' || s.ptr[i] == '\t' || s.ptr[i] == '\r' || s.ptr[i] == '\n'))
		i++;
	return slice_from(s, i);
}

/* Most messages are JSON: a value must not end the string that it is put into. A placeholder often begins like an
 * object, but not like its first name. */
static enum inject_escape escape_for(const struct ws_item *item)
{
	struct slice start = skip_blanks(fifo_front(&item->held));
	struct slice next = skip_blanks(slice_from(start, 1));
	if (slice_starts(start, SLICE("[")) || slice_starts(start, SLICE("\"")))
		return INJECT_JSON;
	return slice_starts(start, SLICE("{")) && slice_starts(next, SLICE("\"")) ? INJECT_JSON : INJECT_RAW;
}

/* STEP_ON when the values are in it. */
static enum ws_step put_in_secrets(struct txn *t, struct ws_item *item)
{
	const char *detail = NULL;
	if (item != &t->ws->out.message || t->n_body_placeholders == 0)
		return STEP_ON;
	switch (txn_get_secrets(t)) {
	case SECRETS_WAIT:
		return STEP_WAIT;
	case SECRETS_FAILED:
		return stop(t, item, REASON_SECRET_UNAVAILABLE);
	case SECRETS_READY:
		break;
	}
	enum reason r = txn_body_fault(txn_change_message(t, &item->held, escape_for(item)), &detail);
	return r == REASON_NONE ? STEP_ON : stop(t, item, r);
}

static bool is_small(const struct ws_item *item)
{
	return item->held.len <= WS_CONTROL_MAX && item->opcode != WS_OP_CLOSE;
}

/* It may go on: written down if there is something to write, and begun or gathered. */
static enum ws_step pass(struct txn *t, struct ws_item *item)
{
	struct ws_way *w = &t->ws->out;
	if (!txn_ws_log_findings(t, item) || !audit_ring_is_written(t->worker->config->ring))
		return stop(t, item, REASON_LOG_UNAVAILABLE);
	if (w->state == WAY_ASKS)
		ws_way_enter(w, WAY_READS);
	if (is_small(item))
		return ws_gather(t, item) ? STEP_ON : stop(t, item, REASON_INTERNAL);
	t->ws->batch.opcode = item->opcode;
	if (ws_release(t) == STEP_OVER)
		return STEP_OVER;
	bool ok = item == &w->message ? ws_begin_frame(t, w) : ws_pass_control(t, w);
	return ok ? STEP_ON : stop(t, item, REASON_INTERNAL);
}

/* All of it was shown; the answer may still be on its way. */
static enum ws_step settle(struct txn *t, struct ws_item *item)
{
	struct ws_way *w = &t->ws->out;
	enum ws_step step = judge(t, item);
	if (step == STEP_ON && item->run && chain_verdict(item->run) == CHAIN_HOLD)
		step = STEP_WAIT;
	if (step == STEP_ON)
		step = put_in_secrets(t, item);
	if (step == STEP_ON)
		return pass(t, item);
	if (step == STEP_WAIT && w->state != WAY_ASKS) {
		w->whole = item;
		ws_way_enter(w, WAY_ASKS);
	}
	return step;
}

static enum ws_step finish(struct txn *t, struct ws_item *item)
{
	uint64_t since_us = clock_mono_us();
	(void)chain_end(item->run, NULL, 0);
	t->inspect_us += clock_mono_us() - since_us;
	return settle(t, item);
}

/* ---- what was gathered ---- */

enum ws_step ws_release(struct txn *t)
{
	struct ws_item *batch = &t->ws->batch;
	if (!chain_stream_owes(t->ws->stream)) {
		ws_send_batch(t);
		return STEP_ON;
	}
	if (!open_run(t, batch))
		return stop(t, batch, REASON_INTERNAL);
	uint64_t since_us = clock_mono_us();
	(void)chain_settle(batch->run, t->ws->stream);
	t->inspect_us += clock_mono_us() - since_us;
	if (judge(t, batch) == STEP_OVER)
		return STEP_OVER;
	if (!txn_ws_log_findings(t, batch))
		return stop(t, batch, REASON_LOG_UNAVAILABLE);
	ws_send_batch(t);
	return STEP_ON;
}

/* ---- frames ---- */

static enum ws_step take_control(struct txn *t, const struct ws_event *e)
{
	struct ws_item *item = &t->ws->out.control;
	item->opcode = e->opcode;
	item->code = e->code;
	if (e->payload.len == 0)
		return settle(t, item); /* there is nothing to look at */
	enum ws_step step = begin(t, item, e);
	if (step == STEP_ON)
		step = add(t, item, e->payload);
	return step == STEP_ON ? finish(t, item) : step;
}

static enum ws_step take_event(struct txn *t, const struct ws_event *e)
{
	struct ws_item *message = &t->ws->out.message;
	switch (e->kind) {
	case WS_NOTHING:
		return STEP_ON;
	case WS_BEGIN:
		return begin(t, message, e);
	case WS_PIECE:
		return add(t, message, e->payload);
	case WS_END:
		return finish(t, message);
	case WS_PING:
	case WS_PONG:
	case WS_CLOSE:
		return take_control(t, e);
	}
	return STEP_OVER;
}

/* Nothing more can be read, for now or at all. */
static enum ws_step starved(struct txn *t)
{
	if (!stream_has_ended(t->conn->down))
		return STEP_WAIT;
	if (ws_release(t) == STEP_OVER)
		return STEP_OVER;
	if (t->ws->in.state == WAY_CLOSED)
		txn_ws_end_closed(t);
	else
		txn_ws_end(t, REASON_CLIENT_GONE, STAGE_RESPONSE);
	return STEP_OVER;
}

static enum ws_step broken(struct txn *t)
{
	const struct ws_way *w = &t->ws->out;
	unsigned code = w->reader.error.code;
	if (ws_release(t) == STEP_OVER)
		return STEP_OVER;
	txn_ws_stop(t, &w->message, code == WS_CODE_TOO_BIG ? REASON_BODY_TOO_LARGE : REASON_BODY_MALFORMED, code);
	return STEP_OVER;
}

static enum ws_step read_some(struct txn *t)
{
	struct stream *down = t->conn->down;
	struct ws_way *w = &t->ws->out;
	struct ws_event event;
	size_t used = 0;
	if (w->message.unanswered > LIMIT_LAG && chain_verdict(w->message.run) == CHAIN_HOLD) /* there is a run then */
		return STEP_WAIT;
	enum cage_status st = ws_read(&w->reader, stream_input(down), &used, &event);
	if (st != CAGE_OK && st != CAGE_AGAIN)
		return broken(t);
	enum ws_step step = take_event(t, &event);
	if (step == STEP_OVER)
		return step;
	stream_consume(down, used);
	return st == CAGE_AGAIN ? starved(t) : step;
}

enum ws_step ws_step_out(struct txn *t)
{
	struct ws_way *w = &t->ws->out;
	switch (w->state) {
	case WAY_READS:
		return stream_is_clogged(t->up->stream) ? STEP_WAIT : read_some(t);
	case WAY_ASKS:
		return settle(t, w->whole);
	case WAY_SENDS:
		return ws_send_frame(t, w, false) ? STEP_ON : STEP_WAIT;
	case WAY_CLOSED:
		stream_consume(t->conn->down, stream_input(t->conn->down).len);
		return stream_has_ended(t->conn->down) && t->ws->in.state == WAY_CLOSED ? starved(t) : STEP_WAIT;
	}
	return STEP_WAIT;
}
