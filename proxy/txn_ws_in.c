/* A websocket from the server to the client: values of secrets are taken out of each message and of the payload of
 * control frames. */
#include "inspectors/known/redact.h"
#include "proxy/keyring.h"
#include "proxy/txn_ws.h"

static void put_clean(struct txn *t, struct ws_item *item, struct slice bytes)
{
	if (item->status == CAGE_OK)
		item->status = ws_item_put(t, item, bytes);
}

static void message_clean(void *arg, struct slice bytes)
{
	struct txn *t = arg;
	put_clean(t, &t->ws->in.message, bytes);
}

static void control_clean(void *arg, struct slice bytes)
{
	struct txn *t = arg;
	put_clean(t, &t->ws->in.control, bytes);
}

/* What is known now is what this message is cleaned of. */
static enum cage_status begin(struct txn *t, struct ws_item *item, const struct ws_event *e)
{
	struct keyring *k = t->gen->keyring;
	item->opcode = e->opcode;
	item->code = e->code;
	item->status = CAGE_OK;
	if (!k)
		return CAGE_OK;
	if (!keyring_refresh(k))
		return CAGE_ENOMEM;
	item->values = known_set_ref(keyring_values(k));
	item->redactor = redactor_new(item->values, t->placeholders,
				      item == &t->ws->in.message ? message_clean : control_clean, t);
	return item->redactor ? CAGE_OK : CAGE_ENOMEM;
}

static enum cage_status add(struct txn *t, struct ws_item *item, struct slice piece)
{
	t->resp_bytes += piece.len;
	if (!item->redactor)
		return ws_item_put(t, item, piece);
	enum cage_status st = redactor_feed(item->redactor, piece);
	return st == CAGE_OK ? item->status : st;
}

static enum cage_status finish(struct txn *t, struct ws_item *item)
{
	struct ws_way *w = &t->ws->in;
	enum cage_status st = item->redactor ? redactor_end(item->redactor) : CAGE_OK;
	if (st == CAGE_OK)
		st = item->status;
	if (item->redactor)
		t->redacted |= redactor_found(item->redactor);
	if (st != CAGE_OK)
		return st;
	bool ok = item == &w->message ? ws_begin_frame(t, w) : ws_pass_control(t, w);
	return ok ? CAGE_OK : CAGE_ENOMEM;
}

static enum cage_status take_control(struct txn *t, const struct ws_event *e)
{
	struct ws_item *item = &t->ws->in.control;
	enum cage_status st = begin(t, item, e);
	if (st == CAGE_OK && e->payload.len > 0)
		st = add(t, item, e->payload);
	return st == CAGE_OK ? finish(t, item) : st;
}

static enum cage_status take_event(struct txn *t, const struct ws_event *e)
{
	struct ws_item *message = &t->ws->in.message;
	switch (e->kind) {
	case WS_NOTHING:
		return CAGE_OK;
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
	return CAGE_EPROTO;
}

/* Nothing more can be read, for now or at all. */
static enum ws_step starved(struct txn *t)
{
	if (!stream_has_ended(t->up->stream))
		return STEP_WAIT;
	if (t->ws->out.state == WAY_CLOSED)
		txn_ws_end_closed(t);
	else
		txn_ws_end(t, REASON_UPSTREAM_TRUNCATED, STAGE_RESPONSE);
	return STEP_OVER;
}

static enum ws_step read_some(struct txn *t)
{
	struct stream *up = t->up->stream;
	struct ws_way *w = &t->ws->in;
	struct ws_event event;
	size_t used = 0;
	enum cage_status st = ws_read(&w->reader, stream_input(up), &used, &event);
	if (st != CAGE_OK && st != CAGE_AGAIN) {
		txn_ws_stop(t, &w->message, REASON_UPSTREAM_MALFORMED, w->reader.error.code);
		return STEP_OVER;
	}
	if (take_event(t, &event) != CAGE_OK) {
		txn_ws_stop(t, &w->message, REASON_LIMIT_HOLD, 0);
		return STEP_OVER;
	}
	t->bytes_in += used;
	stream_consume(up, used);
	return st == CAGE_AGAIN ? starved(t) : STEP_ON;
}

enum ws_step ws_step_in(struct txn *t)
{
	struct stream *up = t->up->stream;
	struct ws_way *w = &t->ws->in;
	switch (w->state) {
	case WAY_READS:
		return stream_is_clogged(t->conn->down) ? STEP_WAIT : read_some(t);
	case WAY_SENDS:
		return ws_send_frame(t, w, false) ? STEP_ON : STEP_WAIT;
	case WAY_CLOSED:
		stream_consume(up, stream_input(up).len);
		return stream_has_ended(up) && t->ws->out.state == WAY_CLOSED ? starved(t) : STEP_WAIT;
	case WAY_ASKS:
		break;
	}
	return STEP_WAIT;
}
