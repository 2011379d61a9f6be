/* The request on its way out: the body is held, the upstream reached, the intent logged, then everything is written
 * afresh. */
#include "proxy/txn.h"

/* One head at a time is written here: workers are single-threaded. */
static char head_room[LIMIT_HEAD + LIMIT_TARGET + 4096];

static uint64_t hold_limit(const struct txn *t)
{
	return t->verdict.applies ? t->verdict.applies->limit_hold : LIMIT_HOLD_DEFAULT;
}

bool txn_observes(const struct txn *t)
{
	return t->verdict.applies ? t->verdict.applies->mode == POLICY_OBSERVE : t->verdict.observe;
}

/* Is there enough of the body to send the head? All of it, or more than is ever held. */
static bool is_gathered(const struct txn *t)
{
	if (t->inspect_holds || (h1_body_is_done(&t->body) && !t->inspected))
		return false;
	return h1_body_is_done(&t->body) || t->held.len > hold_limit(t) ||
	       (t->req.framing == BODY_LENGTH && t->req.content_length > hold_limit(t));
}

/* ---- out ---- */

static void send_piece(struct txn *t, struct slice piece)
{
	struct stream *s = t->up->stream;
	if (t->req.framing == BODY_CHUNKED) {
		t->bytes_out += txn_write_chunk(s, piece);
		return;
	}
	stream_write(s, piece);
	t->bytes_out += piece.len;
}

void txn_drop_held(struct txn *t, size_t n)
{
	fifo_drop(&t->held, n);
	worker_count_held(t->worker, -(int64_t)n);
}

static void send_end(struct txn *t)
{
	if (t->req.framing == BODY_CHUNKED) {
		struct text end = text_in(head_room, sizeof(head_room));
		h1_write_chunk_end(&end, t->body.trailers, t->body.n_trailers);
		stream_write(t->up->stream, text_slice(&end));
		t->bytes_out += end.len;
	}
	t->request_done = true;
}

/* Sends a piece of at most max bytes; how many. What is not sent again is moved by whole blocks, 0: all of it may not go
 * yet. */
static size_t send_some(struct txn *t, size_t max)
{
	if (t->req.framing == BODY_LENGTH && !t->replayable) {
		size_t moved = stream_write_block(t->up->stream, &t->held, max);
		worker_count_held(t->worker, -(int64_t)moved);
		t->bytes_out += moved;
		return moved;
	}
	struct slice piece = slice_head(fifo_at(&t->held, t->held_sent), max);
	send_piece(t, piece);
	if (t->replayable)
		t->held_sent += piece.len;
	else
		txn_drop_held(t, piece.len);
	return piece.len;
}

/* Sends what may go: all of a whole body, else everything but the last bytes that inspection may not have decided on. */
static void release(struct txn *t)
{
	size_t may = t->held.len - t->held_sent;
	if (t->request_done || t->inspect_holds)
		return;
	if (!h1_body_is_done(&t->body))
		may = may > t->lag ? may - t->lag : 0;
	while (may > 0 && !stream_is_clogged(t->up->stream)) {
		size_t sent = send_some(t, may);
		if (sent == 0)
			break;
		may -= sent;
	}
	if (h1_body_is_done(&t->body) && t->held_sent == t->held.len)
		send_end(t);
}

static bool is_idempotent(struct slice m)
{
	return slice_eq(m, SLICE("GET")) || slice_eq(m, SLICE("HEAD")) || slice_eq(m, SLICE("OPTIONS")) ||
	       slice_eq(m, SLICE("PUT")) || slice_eq(m, SLICE("DELETE"));
}

static bool offers_trailers(const struct message *m)
{
	const struct field *te = message_field(m, SLICE("te"));
	return te && slice_ieq(slice_trim(te->value), SLICE("trailers"));
}

static void txn_send(struct txn *t)
{
	struct text head = text_in(head_room, sizeof(head_room));
	struct h1_out out = {.target = target_send(&t->target, &t->arena),
			     .host = host_header(&t->target, &t->arena),
			     .framing = t->req.framing,
			     .content_length = t->req.content_length,
			     .declare_length = t->req.has_content_length,
			     .keep_trailer_te = offers_trailers(&t->req)};
	if (out.target.ptr && out.host.ptr && chain_rewrite(t->inspect, &t->req) == CAGE_OK)
		h1_write_request(&head, &t->req, &out);
	if (head.len == 0 || !text_ok(&head)) {
		txn_refuse(t, REASON_INTERNAL, STAGE_HEAD, NULL);
		return;
	}
	if (!txn_log_intent(t, REASON_NONE))
		return;
	txn_enter(t, TXN_SEND);
	t->replayable = t->up->reused && is_idempotent(t->req.method) && h1_body_is_done(&t->body);
	t->bytes_out += head.len;
	stream_set_owner(t->up->stream, &txn_upstream_cb, t);
	stream_set_idle(t->up->stream, LIMIT_RESPONSE_IDLE_MS);
	stream_write(t->up->stream, text_slice(&head));
	txn_pump_request(t);
}

static void send_when_ready(struct txn *t)
{
	if (t->state == TXN_GATHER && t->up && is_gathered(t))
		txn_send(t);
}

/* ---- the upstream ---- */

static void on_reached(void *arg, const struct upstream_result *r)
{
	struct txn *t = arg;
	t->reach = NULL;
	t->reached = *r;
	if (r->reason != REASON_NONE) {
		txn_refuse(t, r->reason, STAGE_UPSTREAM, r->detail);
		return;
	}
	t->up = r->up;
	/* Until the body is gathered the server has nothing to say. */
	stream_set_owner(t->up->stream, &txn_upstream_cb, t);
	send_when_ready(t);
}

static void reach_upstream(struct txn *t)
{
	struct upstream_want want = txn_want(t, t->target.scheme == SCHEME_HTTPS);
	if (t->retries == 0)
		t->up = upstream_take_pooled(t->worker, &want);
	if (t->up) {
		t->reached = (struct upstream_result){.addr = t->up->addr};
		stream_set_owner(t->up->stream, &txn_upstream_cb, t);
		return;
	}
	t->reach = upstream_reach(t->worker, &want, on_reached, t);
	if (!t->reach)
		txn_refuse(t, REASON_INTERNAL, STAGE_UPSTREAM, NULL);
}

void txn_gather(struct txn *t)
{
	struct conn *c = t->conn;
	bool again = t->state != TXN_DECIDE;
	txn_enter(t, TXN_GATHER);
	if (!txn_may_log(t))
		return;
	if (!again && t->req.expect_continue && !h1_body_is_done(&t->body) && t->req.version == HTTP_11)
		stream_write(c->down, SLICE("HTTP/1.1 100 Continue\r\n\r\n"));
	reach_upstream(t);
	if (c->txn == t && t->state == TXN_GATHER)
		txn_pump_request(t);
}

/* Without a body, what there is to look at ends with the head. */
void txn_go_on(struct txn *t)
{
	enum reason r = REASON_NONE;
	if (t->inspect_holds)
		return; /* until txn_inspect_resumed() */
	if (h1_body_is_done(&t->body) && !t->inspected)
		r = txn_inspect_end(t);
	if (r != REASON_NONE)
		txn_refuse(t, r, STAGE_HEAD, txn_finding_detail(t));
	else if (!t->inspect_holds)
		txn_gather(t);
}

void txn_inspect_resumed(void *txn)
{
	struct txn *t = txn;
	enum reason r = txn_inspect_answered(t);
	if (r != REASON_NONE)
		txn_refuse(t, r, t->state == TXN_DECIDE ? STAGE_HEAD : STAGE_BODY, txn_finding_detail(t));
	else if (t->state == TXN_DECIDE)
		txn_go_on(t);
	else
		txn_pump_request(t);
}

/* ---- in ---- */

/* Shows the piece to the inspectors and keeps it. REASON_NONE, or why it can't be taken. */
static enum reason take(struct txn *t, struct slice piece)
{
	t->body_bytes += piece.len;
	enum reason found = txn_inspect_body(t, piece);
	if (found != REASON_NONE)
		return found;
	if (t->worker->held + piece.len > LIMIT_HOLD_BUDGET || fifo_put(&t->held, piece) != CAGE_OK)
		return REASON_LIMIT_HOLD;
	worker_count_held(t->worker, (int64_t)piece.len);
	return REASON_NONE;
}

/* May more of the body be read now? */
static bool wants_body(const struct txn *t)
{
	if (h1_body_is_done(&t->body) || t->unanswered_bytes > LIMIT_LAG)
		return false;
	if (t->state == TXN_GATHER || t->inspect_holds)
		return t->held.len <= hold_limit(t);
	return t->held.len <= t->lag + LIMIT_OUT_LOW;
}

/* A body that is wanted must keep coming. A client that only waits may do so for as long as the server takes, to answer
 * or to take what there is of the body. */
static void time_client(struct txn *t)
{
	bool owes = wants_body(t);
	if (owes == t->client_owes)
		return;
	t->client_owes = owes;
	if (owes)
		stream_set_idle(t->conn->down, LIMIT_BODY_IDLE_MS);
	else
		stream_set_deadline(t->conn->down, 0);
}

/* Takes one piece of input. CAGE_OK: go on; CAGE_AGAIN: wait; anything else: the transaction is over. */
static enum cage_status take_piece(struct txn *t)
{
	struct stream *down = t->conn->down;
	struct slice data;
	size_t used = 0;
	enum cage_status st = h1_body_feed(&t->body, stream_input(down), &t->arena, &used, &data);
	enum reason reason = data.len > 0 ? take(t, data) : REASON_NONE;
	stream_consume(down, used);
	if (reason == REASON_NONE && st != CAGE_OK && st != CAGE_AGAIN && st != CAGE_EOF)
		reason = REASON_BODY_MALFORMED;
	if (reason == REASON_NONE && h1_body_is_done(&t->body) && !t->inspected)
		reason = txn_inspect_end(t);
	if (reason != REASON_NONE) {
		txn_refuse(t, reason, STAGE_BODY, txn_finding_detail(t));
		return CAGE_EPROTO;
	}
	return st == CAGE_EOF ? CAGE_OK : st;
}

void txn_pump_request(struct txn *t)
{
	struct stream *down = t->conn->down;
	enum cage_status st = CAGE_OK;
	while (st == CAGE_OK) {
		if (t->state != TXN_GATHER)
			release(t); /* makes room first */
		if (!wants_body(t) || stream_input(down).len == 0)
			break;
		st = take_piece(t);
	}
	if (st != CAGE_OK && st != CAGE_AGAIN)
		return;
	if (t->state != TXN_GATHER)
		release(t);
	time_client(t);
	if (stream_has_ended(down) && !h1_body_is_done(&t->body) && wants_body(t)) {
		txn_abandon(t, REASON_CLIENT_GONE, STAGE_BODY);
		return;
	}
	send_when_ready(t);
}
