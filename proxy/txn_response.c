/* The response on its way in: parsed strictly, written afresh, and passed on as it comes. */
#include "core/http/grpc.h"
#include "proxy/txn_ws.h"

#define DECODE_STEP 4096 /* bytes of a coded response that are undone at once */

static char head_room[LIMIT_HEAD + 4096];

/* Over HTTP/2 it was not we who read the frames. */
static enum reason reason_of_end(const struct txn *t, enum cage_status why)
{
	if (why == CAGE_EPROTO && t->up->is_h2)
		return REASON_UPSTREAM_MALFORMED;
	return why == CAGE_ETIMEOUT ? REASON_UPSTREAM_TIMEOUT : REASON_UPSTREAM_TRUNCATED;
}

static void upstream_failed(struct txn *t, enum cage_status why)
{
	txn_refuse(t, reason_of_end(t, why), STAGE_RESPONSE, NULL);
}

/* How the client gets the body, given how it comes. */
static enum body_framing framing_out(const struct txn *t)
{
	bool client_knows_chunks = t->req.version == HTTP_11;
	switch (t->resp.framing) {
	case BODY_NONE:
		return BODY_NONE;
	case BODY_LENGTH:
		if (!t->redaction || txn_redaction_holds(t))
			return BODY_LENGTH;
		return client_knows_chunks ? BODY_CHUNKED : BODY_CLOSE;
	case BODY_CHUNKED:
	case BODY_CLOSE:
		return client_knows_chunks ? BODY_CHUNKED : BODY_CLOSE;
	}
	return BODY_CLOSE;
}

/* false: it does not fit, since what it got for values is longer than they were. */
static bool write_head(struct txn *t, const struct h1_out *out)
{
	struct text head = text_in(head_room, sizeof(head_room));
	h1_write_response(&head, &t->resp, out);
	if (!text_ok(&head))
		return false;
	stream_write(t->conn->down, text_slice(&head));
	return true;
}

bool txn_relay_head(struct txn *t, uint64_t length)
{
	struct h1_out out = {.framing = t->resp_out,
			     .content_length = length,
			     .declare_length = t->resp.has_content_length &&
					       (t->resp_out == BODY_LENGTH || t->resp_out == BODY_NONE),
			     .close = t->client_close};
	return write_head(t, &out);
}

bool txn_relay_upgrade(struct txn *t)
{
	struct h1_out out = {.framing = BODY_NONE, .websocket = true};
	return write_head(t, &out);
}

/* The response can't go on. Never CAGE_AGAIN or CAGE_OK: the transaction is over. */
static enum cage_status broken(struct txn *t, const char *detail)
{
	txn_refuse(t, REASON_UPSTREAM_MALFORMED, STAGE_RESPONSE, detail);
	return CAGE_EPROTO;
}

/* CAGE_OK, or the transaction is over. */
static enum cage_status begin_relay(struct txn *t)
{
	enum cage_status st = txn_begin_redaction(t);
	if (st == CAGE_EPROTO)
		return broken(
			t,
			"The response has a content coding that can't be undone, or is a part that nobody asked for.");
	if (st != CAGE_OK) {
		txn_refuse(t, REASON_LIMIT_HOLD, STAGE_RESPONSE, NULL);
		return CAGE_ELIMIT;
	}
	t->resp_out = framing_out(t);
	if (!t->req.keep_alive || t->req.version == HTTP_10 || t->resp_out == BODY_CLOSE ||
	    !h1_body_is_done(&t->body) || t->worker->state != WORKER_SERVING || !conn_has_more(t->conn))
		t->client_close = true;
	(t->up->is_h2 ? h1_body_init_inner : h1_body_init)(&t->resp_body, &t->resp);
	if (!txn_redaction_holds(t) && !txn_relay_head(t, t->resp.content_length))
		return broken(t, NULL);
	txn_enter(t, TXN_RELAY);
	return CAGE_OK;
}

/* 100 is between us and the server; the others go on to clients that know them. */
static bool pass_interim(struct txn *t)
{
	if (t->resp.status == 101 || ++t->interim > LIMIT_INTERIM)
		return false;
	if (t->resp.status != 100 && t->req.version == HTTP_11) {
		struct h1_out out = {.framing = BODY_NONE};
		return write_head(t, &out);
	}
	return true;
}

/* CAGE_OK: a head was taken; CAGE_AGAIN: wait for more; else the transaction is over. */
static enum cage_status take_head(struct txn *t)
{
	struct stream *up = t->up->stream;
	struct slice input = stream_input(up);
	struct h1_error err;
	size_t len = 0;
	enum cage_status st = h1_gate(&t->resp_gate, input, &len);
	if (st == CAGE_AGAIN)
		return st;
	struct slice head = st == CAGE_OK ? arena_dup(&t->arena, slice_head(input, len)) : SLICE_NONE;
	if (!head.ptr || h1_parse_response(head, t->req.method, &t->arena, &t->resp, &err) != CAGE_OK) {
		txn_refuse(t, REASON_UPSTREAM_MALFORMED, STAGE_RESPONSE, NULL);
		return CAGE_EPROTO;
	}
	stream_consume(up, len);
	t->bytes_in += len;
	t->resp_gate = (struct h1_gate){.kind = H1_GATE_RESPONSE};
	if (txn_clean_head(t, head) != CAGE_OK) {
		txn_refuse(t, REASON_INTERNAL, STAGE_RESPONSE, NULL);
		return CAGE_EPROTO;
	}
	if (t->resp.status >= 200)
		return begin_relay(t);
	if (t->resp.status == 101 && t->ws) {
		txn_ws_start(t);
		return CAGE_EOF;
	}
	if (pass_interim(t))
		return CAGE_OK;
	txn_refuse(t, REASON_UPSTREAM_MALFORMED, STAGE_RESPONSE,
		   "The server sent an interim response that nobody asked for.");
	return CAGE_EPROTO;
}

void txn_pass_piece(struct txn *t, struct slice data)
{
	struct stream *down = t->conn->down;
	if (data.len == 0)
		return; /* an empty chunk would be the last */
	if (t->resp_out == BODY_CHUNKED)
		txn_write_chunk(down, data);
	else
		stream_write(down, data);
}

/* CAGE_OK, or the response must not go on. */
static enum cage_status pass_clean(struct txn *t, struct slice data)
{
	t->resp_bytes += data.len;
	if (t->redaction)
		return txn_redact_piece(t, data);
	txn_pass_piece(t, data);
	return CAGE_OK;
}

/* What redaction still has. false: the transaction is over. */
static bool finish_redaction(struct txn *t)
{
	bool held = txn_redaction_holds(t);
	if (txn_end_redaction(t) != CAGE_OK || txn_clean_trailers(t) != CAGE_OK) {
		broken(t, NULL);
		return false;
	}
	held = held && txn_redaction_holds(t); /* not if it grew too long meanwhile */
	if (held && !txn_relay_head(t, txn_redaction_length(t))) {
		broken(t, NULL);
		return false;
	}
	if (held)
		txn_release_redacted(t);
	return true;
}

static void response_done(struct txn *t)
{
	if (t->redaction && !finish_redaction(t))
		return;
	struct text end = text_in(head_room, sizeof(head_room));
	txn_write_end(&end, &t->resp_body, t->resp_out, t->conn->parent != NULL);
	if (!text_ok(&end)) {
		broken(t, NULL);
		return;
	}
	stream_write(t->conn->down, text_slice(&end));
	txn_complete(t);
}

/* ---- a refusal behind the head ---- */

bool txn_answers_grpc(const struct txn *t)
{
	const struct field *type = message_field(&t->resp, SLICE("content-type"));
	return type && grpc_kind_of(type->value) == GRPC_NATIVE;
}

bool txn_refuse_in_trailers(struct txn *t, const struct refusal *r)
{
	char words[REFUSAL_ROOM];
	struct text why = text_in(words, sizeof(words));
	struct text end = text_in(head_room, sizeof(head_room));
	if (!t->conn->parent || t->resp_out != BODY_CHUNKED || !txn_answers_grpc(t))
		return false;
	refusal_put_grpc_message(&why, r);
	const struct field trailers[] = {{SLICE("grpc-status"), refusal_grpc_status(r->reason), FIELD_OTHER},
					 {SLICE("grpc-message"), text_slice(&why), FIELD_OTHER}};
	h1_write_chunk_end(&end, trailers, sizeof(trailers) / sizeof(trailers[0]));
	stream_write(t->conn->down, text_slice(&end));
	return true;
}

/* ---- the stream ---- */

/* The next of the body. Much may become of a few coded bytes, so they are not taken all at once: CAGE_OK then, there is more. */
static enum cage_status feed_body(struct txn *t, size_t *used, struct slice *data)
{
	struct slice input = stream_input(t->up->stream);
	struct slice step = txn_redaction_decodes(t) ? slice_head(input, DECODE_STEP) : input;
	enum cage_status st = h1_body_feed(&t->resp_body, step, &t->arena, used, data);
	if (st != CAGE_AGAIN || step.len == input.len)
		return st;
	if (*used > 0)
		return CAGE_OK;
	return h1_body_feed(&t->resp_body, input, &t->arena, used, data); /* trailers want to be whole */
}

/* CAGE_OK: go on; CAGE_AGAIN: wait; else the transaction is over. */
static enum cage_status take_body(struct txn *t)
{
	struct slice data = SLICE_NONE;
	size_t used = 0;
	enum cage_status st = feed_body(t, &used, &data);
	enum cage_status passed = data.len > 0 ? pass_clean(t, data) : CAGE_OK;
	t->bytes_in += used;
	stream_consume(t->up->stream, used);
	if (passed != CAGE_OK || (st != CAGE_OK && st != CAGE_AGAIN && st != CAGE_EOF))
		return broken(t, NULL);
	if (st == CAGE_EOF)
		response_done(t);
	return st;
}

/* All input is used and the server has ended. */
static void at_end(struct txn *t)
{
	if (t->state == TXN_RELAY && t->up_end == CAGE_EOF && h1_body_end_of_input(&t->resp_body) == CAGE_EOF)
		response_done(t);
	else
		upstream_failed(t, t->up_end);
}

void txn_pump_response(struct txn *t)
{
	enum cage_status st = CAGE_OK;
	while (st == CAGE_OK) {
		if (t->state == TXN_RELAY && h1_body_is_done(&t->resp_body)) {
			response_done(t);
			return;
		}
		if (stream_input(t->up->stream).len == 0)
			st = CAGE_AGAIN;
		else if (t->state == TXN_SEND)
			st = take_head(t);
		else if (stream_is_clogged(t->conn->down)) {
			stream_set_deadline(t->up->stream, 0); /* it is the client that is waited for */
			stream_hold(t->up->stream, true);
			return;
		} else
			st = take_body(t);
	}
	if (st == CAGE_AGAIN && t->up_end != CAGE_OK)
		at_end(t);
}

/* The client has read what clogged its stream. */
void txn_resume_response(struct txn *t)
{
	stream_set_idle(t->up->stream, LIMIT_RESPONSE_IDLE_MS);
	stream_hold(t->up->stream, false);
	txn_pump_response(t);
}

static void on_data(struct stream *s, void *arg)
{
	(void)s;
	struct txn *t = arg;
	if (t->state == TXN_GATHER)
		txn_refuse(t, REASON_UPSTREAM_MALFORMED, STAGE_UPSTREAM, "The server spoke before it was asked.");
	else
		txn_pump_response(t);
}

static void on_drained(struct stream *s, void *arg)
{
	(void)s;
	txn_client_data(arg);
}

/* Silence is no close: the server may be at work on the request. Over HTTP/2 a clean end says that it surely is not. */
static bool may_replay(const struct txn *t, enum cage_status why)
{
	bool is_unseen = t->up->is_h2 && why == CAGE_EOF;
	if (t->retries >= (is_unseen ? LIMIT_H2_REFUSED : LIMIT_RETRIES) || (why != CAGE_EOF && why != CAGE_TRUNCATED))
		return false;
	if (t->state == TXN_GATHER)
		return true;
	return t->state == TXN_SEND && t->replayable && t->bytes_in == 0 &&
	       (is_unseen || (t->up->reused && txn_is_idempotent(t)));
}

/* Once more on a new connection: when the server has closed this one before anything was sent on it, or a pooled one
 * while the request crossed its close, or has refused the request. */
static bool replace_stale(struct txn *t, enum cage_status why)
{
	if (!may_replay(t, why) || stream_input(t->up->stream).len > 0)
		return false;
	t->retries++;
	upstream_close(&t->up);
	t->held_sent = 0;
	t->bytes_out = 0;
	t->request_done = false;
	txn_gather(t);
	return true;
}

static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	struct txn *t = arg;
	if (replace_stale(t, why))
		return;
	t->up_end = why;
	if (t->state == TXN_GATHER)
		upstream_failed(t, why);
	else
		txn_pump_response(t);
}

static void on_ready(struct stream *s, void *arg)
{
	(void)s, (void)arg; /* the handshake was over before a transaction owned the stream */
}

const struct stream_cb txn_upstream_cb = {
	.on_ready = on_ready, .on_data = on_data, .on_drained = on_drained, .on_end = on_end};
