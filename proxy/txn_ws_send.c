/* Frames of a websocket on their way to the other side: each message is one, masked anew on the way out. */
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdlib.h>

#include "inspectors/known/redact.h"
#include "proxy/txn_ws.h"

/* One piece at a time is masked here: workers are single-threaded. */
static char masked[FIFO_BLOCK];

static bool may_enter(enum ws_way_state from, enum ws_way_state to)
{
	switch (to) {
	case WAY_READS:
		return from == WAY_SENDS || from == WAY_ASKS;
	case WAY_ASKS:
		return from == WAY_READS;
	case WAY_SENDS:
		return from == WAY_READS || from == WAY_ASKS;
	case WAY_CLOSED:
		return from != WAY_CLOSED;
	}
	return false;
}

void ws_way_enter(struct ws_way *w, enum ws_way_state next)
{
	if (!may_enter(w->state, next))
		abort(); /* a worker that is wrong about its own state must not go on */
	w->state = next;
}

/* ---- what is held ---- */

enum cage_status ws_item_put(struct txn *t, struct ws_item *item, struct slice bytes)
{
	if (t->worker->held + bytes.len > LIMIT_HOLD_BUDGET || fifo_put(&item->held, bytes) != CAGE_OK)
		return CAGE_ENOMEM;
	worker_count_held(t->worker, (int64_t)bytes.len);
	return CAGE_OK;
}

static void drop_bytes(struct txn *t, struct ws_item *item, size_t n)
{
	fifo_drop(&item->held, n);
	worker_count_held(t->worker, -(int64_t)n);
}

void ws_item_drop(struct txn *t, struct ws_item *item)
{
	drop_bytes(t, item, item->held.len);
	chain_finish(&item->run);
	arena_reset(&item->arena);
	item->unanswered = 0;
	redactor_free(&item->redactor);
	if (item->values)
		known_set_unref(&item->values);
}

/* ---- frames ---- */

static bool is_out(const struct txn *t, const struct ws_way *w)
{
	return w == &t->ws->out;
}

static struct stream *stream_of(const struct txn *t, const struct ws_way *w)
{
	return is_out(t, w) ? t->up->stream : t->conn->down;
}

static bool put_head(struct txn *t, struct ws_way *w, enum ws_opcode opcode, size_t len)
{
	char room[WS_HEAD_MAX];
	struct text head = text_in(room, sizeof(room));
	if (is_out(t, w) && RAND_bytes(w->key, sizeof(w->key)) != 1)
		return false;
	ws_write_head(&head, opcode, true, len, is_out(t, w) ? w->key : NULL);
	stream_write(stream_of(t, w), text_slice(&head));
	w->sent = 0;
	if (is_out(t, w))
		t->bytes_out += head.len;
	return true;
}

static void put_payload(struct txn *t, struct ws_way *w, struct slice piece, bool is_secret)
{
	if (!is_out(t, w)) {
		stream_write(t->conn->down, piece);
		return;
	}
	ws_mask(masked, piece, w->key, w->sent);
	struct slice bytes = slice_of(masked, piece.len);
	(is_secret ? stream_write_secret : stream_write)(t->up->stream, bytes);
	if (is_secret)
		OPENSSL_cleanse(masked, piece.len);
	w->sent += piece.len;
	t->bytes_out += piece.len;
}

bool ws_begin_frame(struct txn *t, struct ws_way *w)
{
	if (!put_head(t, w, w->message.opcode, w->message.held.len))
		return false;
	ws_way_enter(w, WAY_SENDS);
	return true;
}

bool ws_send_frame(struct txn *t, struct ws_way *w, bool force)
{
	struct ws_item *item = &w->message;
	while (item->held.len > 0) {
		struct slice piece = slice_head(fifo_front(&item->held), sizeof(masked));
		if (!force && stream_is_clogged(stream_of(t, w)))
			return false;
		put_payload(t, w, piece, item->held.carries_secrets);
		drop_bytes(t, item, piece.len);
	}
	ws_item_drop(t, item);
	ws_way_enter(w, WAY_READS);
	return true;
}

bool ws_send_control(struct txn *t, struct ws_way *w, enum ws_opcode opcode, struct slice payload)
{
	if (!put_head(t, w, opcode, payload.len))
		return false;
	if (payload.len > 0)
		put_payload(t, w, payload, false);
	return true;
}

bool ws_gather(struct txn *t, struct ws_item *item)
{
	char room[WS_HEAD_MAX + WS_CONTROL_MAX];
	struct text frame = text_in(room, sizeof(room));
	struct ws_way *w = &t->ws->out;
	struct slice payload = fifo_front(&item->held);
	if (RAND_bytes(w->key, sizeof(w->key)) != 1)
		return false;
	ws_write_head(&frame, item->opcode, true, payload.len, w->key);
	ws_mask(masked, payload, w->key, 0);
	text_put(&frame, slice_of(masked, payload.len));
	t->ws->batch.opcode = item->opcode;
	t->ws->batch.held.carries_secrets |= item->held.carries_secrets;
	ws_item_drop(t, item);
	bool ok = ws_item_put(t, &t->ws->batch, text_slice(&frame)) == CAGE_OK;
	OPENSSL_cleanse(masked, payload.len);
	OPENSSL_cleanse(room, sizeof(room));
	return ok;
}

void ws_send_batch(struct txn *t)
{
	struct ws_item *batch = &t->ws->batch;
	while (batch->held.len > 0) {
		struct slice piece = fifo_front(&batch->held);
		(batch->held.carries_secrets ? stream_write_secret : stream_write)(t->up->stream, piece);
		t->bytes_out += piece.len;
		drop_bytes(t, batch, piece.len);
	}
	ws_item_drop(t, batch);
}

bool ws_send_close(struct txn *t, struct ws_way *w, unsigned code, struct slice reason)
{
	char room[WS_CONTROL_MAX];
	struct text payload = text_in(room, sizeof(room));
	ws_write_close(&payload, code, reason);
	w->code = code;
	ws_way_enter(w, WAY_CLOSED);
	return ws_send_control(t, w, WS_OP_CLOSE, text_slice(&payload));
}

/* A placeholder may be longer than the value that it stands for: what does not fit is cut off. */
bool ws_pass_control(struct txn *t, struct ws_way *w)
{
	char room[WS_CONTROL_MAX];
	struct ws_item *item = &w->control;
	struct slice piece = slice_head(fifo_front(&item->held), sizeof(room));
	if (piece.len > 0)
		memcpy(room, piece.ptr, piece.len);
	enum ws_opcode opcode = item->opcode;
	unsigned code = item->code;
	ws_item_drop(t, item);
	if (opcode == WS_OP_CLOSE)
		return ws_send_close(t, w, code, slice_of(room, piece.len));
	return ws_send_control(t, w, opcode, slice_of(room, piece.len));
}
