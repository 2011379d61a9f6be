/* The request on its way out: the body is held, the upstream reached, the intent logged, then everything is written
 * afresh. */
#include <openssl/crypto.h>

#include "proxy/txn_ws.h"

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

/* Bytes of the body that may go before it is whole: the messages in it that are. 0: there are none, or they can't be told
 * apart. */
static uint64_t whole_messages(const struct txn *t)
{
	return txn_is_signed(t) ? 0 : chain_whole(t->inspect);
}

/* Bytes of the message that has begun. */
static uint64_t open_message(const struct txn *t)
{
	return t->body_bytes - whole_messages(t);
}

/* Is each message held until it is whole? One that is longer than the hold limit is not. */
static bool holds_message(const struct txn *t)
{
	return whole_messages(t) > 0 && open_message(t) <= hold_limit(t);
}

/* Is there enough of the body to send the head? All of it, a whole message, or more than is ever held. */
static bool is_gathered(const struct txn *t)
{
	if (t->inspect_holds || (h1_body_is_done(&t->body) && !t->inspected))
		return false;
	return h1_body_is_done(&t->body) || whole_messages(t) > 0 || t->held.len > hold_limit(t) ||
	       (t->req.framing == BODY_LENGTH && t->req.content_length > hold_limit(t));
}

/* ---- out ---- */

static enum cage_status send_piece(struct txn *t, struct slice piece)
{
	struct stream *s = t->up->stream;
	if (t->body_change == BODY_CHANGES)
		return txn_send_changed(t, piece);
	bool has_secrets = t->body_change == BODY_CHANGED;
	if (t->req_out == BODY_CHUNKED) {
		t->bytes_out += has_secrets ? txn_write_chunk_secret(s, piece) : txn_write_chunk(s, piece);
		return CAGE_OK;
	}
	(has_secrets ? stream_write_secret : stream_write)(s, piece);
	t->bytes_out += piece.len;
	return CAGE_OK;
}

void txn_drop_held(struct txn *t, size_t n)
{
	fifo_drop(&t->held, n);
	worker_count_held(t->worker, -(int64_t)n);
}

static enum cage_status send_end(struct txn *t)
{
	enum cage_status st = t->body_change == BODY_CHANGES ? txn_end_changed(t) : CAGE_OK;
	if (st != CAGE_OK)
		return st;
	struct text end = text_in(head_room, sizeof(head_room));
	txn_write_end(&end, &t->body, t->req_out, t->up->is_h2);
	stream_write(t->up->stream, text_slice(&end));
	t->bytes_out += end.len;
	t->request_done = true;
	return CAGE_OK;
}

/* Sends a piece of at most max bytes; *sent: how many. What is not sent again is moved by whole blocks: 0 when the next one is
 * not to go as a whole yet. */
static enum cage_status send_some(struct txn *t, size_t max, size_t *sent)
{
	if (t->req_out == BODY_LENGTH && !t->replayable && whole_messages(t) == 0) {
		*sent = stream_write_block(t->up->stream, &t->held, max);
		worker_count_held(t->worker, -(int64_t)*sent);
		t->bytes_out += *sent;
		return CAGE_OK;
	}
	struct slice piece = slice_head(fifo_at(&t->held, t->held_sent), max);
	enum cage_status st = send_piece(t, piece);
	if (t->replayable)
		t->held_sent += piece.len;
	else
		txn_drop_held(t, piece.len);
	*sent = piece.len;
	return st;
}

enum reason txn_body_fault(enum cage_status st, const char **detail)
{
	if (st == CAGE_OK)
		return REASON_NONE;
	if (st == CAGE_ELIMIT) {
		*detail = "it has more placeholders than can be replaced";
		return REASON_BODY_TOO_LARGE;
	}
	if (st != CAGE_EPROTO)
		return REASON_LIMIT_HOLD;
	*detail = "a secret can't be put into a body that is not text";
	return REASON_SECRET_SLOT;
}

/* What may go: all of a whole body, else what stands before the message that is not whole, or everything but the last
 * bytes that inspection may not have decided on. */
static size_t may_go(const struct txn *t)
{
	size_t unsent = t->held.len - t->held_sent;
	uint64_t kept = t->lag;
	if (h1_body_is_done(&t->body))
		return unsent;
	if (whole_messages(t) > 0 && (holds_message(t) || open_message(t) < kept))
		kept = open_message(t);
	return unsent > kept ? unsent - (size_t)kept : 0;
}

/* false: the transaction is over. */
static bool release(struct txn *t)
{
	size_t may = may_go(t), sent = 1;
	enum cage_status st = CAGE_OK;
	if (t->request_done || t->inspect_holds)
		return true;
	while (st == CAGE_OK && may > 0 && sent > 0 && !stream_is_clogged(t->up->stream)) {
		st = send_some(t, may, &sent);
		may -= sent;
	}
	if (st == CAGE_OK && h1_body_is_done(&t->body) && t->held_sent == t->held.len)
		st = send_end(t);
	if (st != CAGE_OK) {
		const char *detail = NULL;
		enum reason r = txn_body_fault(st, &detail);
		txn_refuse(t, r, STAGE_BODY, detail);
	}
	return st == CAGE_OK;
}

bool txn_is_idempotent(const struct txn *t)
{
	struct slice m = t->req.method;
	return slice_eq(m, SLICE("GET")) || slice_eq(m, SLICE("HEAD")) || slice_eq(m, SLICE("OPTIONS")) ||
	       slice_eq(m, SLICE("PUT")) || slice_eq(m, SLICE("DELETE"));
}

static bool offers_trailers(const struct message *m)
{
	const struct field *te = message_field(m, SLICE("te"));
	return te && slice_ieq(slice_trim(te->value), SLICE("trailers"));
}

/* The head as it is sent, secrets and all. REASON_NONE, or why it can't be. */
static enum reason write_head(struct txn *t, struct text *head, const char **detail)
{
	if (chain_rewrite(t->inspect, &t->req) != CAGE_OK)
		return REASON_INTERNAL;
	if (t->ws && !txn_ws_offer(t))
		return REASON_INTERNAL;
	struct message req = t->req;
	struct target target = t->target;
	req.framing = t->req_out;
	req.content_length = t->req_out_length;
	enum reason r = txn_put_in_secrets(t, &req, &target, detail);
	struct h1_out out = {.target = target_send(&target, &t->secret_arena),
			     .host = host_header(&target, &t->arena),
			     .framing = t->req_out,
			     .content_length = t->req_out_length,
			     .declare_length = t->req.has_content_length && t->req_out != BODY_CHUNKED,
			     .keep_trailer_te = offers_trailers(&t->req),
			     .websocket = t->ws != NULL};
	if (r != REASON_NONE)
		return r;
	if (out.target.ptr && out.host.ptr)
		h1_write_request(head, &req, &out);
	return head->len == 0 || !text_ok(head) ? REASON_INTERNAL : REASON_NONE;
}

static void put_head(struct txn *t, struct slice head)
{
	t->bytes_out += head.len;
	stream_set_owner(t->up->stream, &txn_upstream_cb, t);
	stream_set_idle(t->up->stream, LIMIT_RESPONSE_IDLE_MS);
	if (t->injected == 0)
		stream_write(t->up->stream, head);
	else
		stream_write_secret(t->up->stream, head);
}

static void txn_send(struct txn *t)
{
	struct text head = text_in(head_room, sizeof(head_room));
	const char *detail = NULL;
	enum reason r = txn_body_fault(txn_change_body(t), &detail);
	if (r == REASON_NONE)
		r = write_head(t, &head, &detail);
	if (r != REASON_NONE) {
		OPENSSL_cleanse(head_room, head.len);
		txn_refuse(t, r, STAGE_HEAD, detail);
		return;
	}
	if (!txn_log_intent(t, REASON_NONE)) {
		OPENSSL_cleanse(head_room, head.len);
		return;
	}
	txn_enter(t, TXN_SEND);
	t->replayable = h1_body_is_done(&t->body) && (t->up->is_h2 || (t->up->reused && txn_is_idempotent(t)));
	put_head(t, text_slice(&head));
	if (t->injected != 0)
		OPENSSL_cleanse(head_room, head.len);
	txn_pump_request(t);
}

/* The values of secrets are the last thing that a request waits for. */
static void send_with_secrets(struct txn *t)
{
	switch (txn_get_secrets(t)) {
	case SECRETS_READY:
		txn_send(t);
		break;
	case SECRETS_WAIT:
		break;
	case SECRETS_FAILED:
		txn_refuse(t, REASON_SECRET_UNAVAILABLE, STAGE_HEAD, NULL);
		break;
	}
}

static void send_when_ready(struct txn *t)
{
	if (t->state == TXN_GATHER && t->up && is_gathered(t))
		send_with_secrets(t);
}

void txn_secrets_came(void *txn)
{
	struct txn *t = txn;
	if (t->state == TXN_WEBSOCKET)
		txn_ws_pump(t);
	else
		send_when_ready(t);
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
	if (!worker_spend(t->worker, piece.len))
		return REASON_LIMIT_BUDGET;
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
	if (t->state == TXN_GATHER || t->inspect_holds || holds_message(t))
		return t->held.len <= hold_limit(t);
	return t->held.len <= t->lag + LIMIT_OUT_LOW;
}

/* A body that is wanted must keep coming, but for what may be a pause between two messages. A client that only waits may do
 * so for as long as the server takes, to answer or to take what there is of the body. */
static void time_client(struct txn *t)
{
	bool pauses = t->state != TXN_GATHER && whole_messages(t) > 0 && open_message(t) == 0;
	bool owes = wants_body(t) && !pauses;
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
	struct slice input = stream_input(down);
	enum cage_status st = h1_body_feed(&t->body, slice_head(input, t->turn), &t->arena, &used, &data);
	if (st == CAGE_AGAIN && used == 0 && input.len > t->turn)
		st = h1_body_feed(&t->body, input, &t->arena, &used, &data); /* trailers are taken as a whole */
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
	bool yields = false;
	while (st == CAGE_OK) {
		if (t->state != TXN_GATHER && !release(t)) /* makes room first */
			return;
		if (!wants_body(t) || stream_input(down).len == 0)
			break;
		yields = stream_input(down).len > t->turn;
		st = take_piece(t);
		if (yields)
			break;
	}
	if (st != CAGE_OK && st != CAGE_AGAIN)
		return;
	if (t->state != TXN_GATHER && !release(t))
		return;
	time_client(t);
	if (yields) {
		stream_tell_again(down);
	} else if (stream_has_ended(down) && !h1_body_is_done(&t->body) && wants_body(t)) {
		txn_abandon(t, txn_client_end(t, stream_end_of(down)), STAGE_BODY);
		return;
	}
	send_when_ready(t);
}
