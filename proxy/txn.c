/* The life of a transaction: beginning, log, refusal, end. */
#include "proxy/txn.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/http/grpc.h"
#include "proxy/page.h"
#include "proxy/txn_ws.h"

static bool may_enter(enum txn_state from, enum txn_state to)
{
	switch (to) {
	case TXN_DECIDE:
		return false;
	case TXN_GATHER:
		return from == TXN_DECIDE || from == TXN_GATHER ||
		       from == TXN_SEND; /* again, when a stale connection is replaced */
	case TXN_SEND:
		return from == TXN_GATHER;
	case TXN_RELAY:
	case TXN_WEBSOCKET:
		return from == TXN_SEND;
	case TXN_TUNNEL:
		return from == TXN_GATHER;
	case TXN_DONE:
		return from != TXN_DONE;
	}
	return false;
}

void txn_enter(struct txn *t, enum txn_state next)
{
	if (t->magic != TXN_MAGIC || !may_enter(t->state, next))
		abort(); /* a worker that is wrong about its own state must not go on */
	t->state = next;
}

/* ---- log ---- */

void txn_event(struct txn *t, struct audit_event *e, enum audit_kind kind)
{
	struct conn *c = t->conn;
	worker_event(e, kind, t->gen);
	e->sandbox = c->sandbox;
	e->conn = c->id;
	e->txn = t->id;
	e->method = txn_hides(t, PLACE_METHOD) ? SLICE("[redacted]") : t->req.method;
	if (t->verdict.rule)
		e->rule = t->verdict.rule->id;
	if (t->target.host.text.len > 0) {
		e->host = txn_hides(t, PLACE_HOST) ? SLICE("[redacted]") : t->target.host.text;
		e->port = t->target.port;
		if (t->req.form != TARGET_AUTHORITY) {
			e->scheme = scheme_text(t->target.scheme);
			e->path = txn_hides(t, PLACE_PATH) || txn_hides(t, PLACE_QUERY) ? SLICE("/[redacted]")
											: t->logged_path;
		}
	}
	if (t->reached.addr.family)
		e->address = &t->reached.addr;
	if (t->up && t->target.scheme == SCHEME_HTTPS)
		e->alpn = t->up->is_h2 ? SLICE("h2") : SLICE("http/1.1");
}

static void add_result(struct txn *t, struct audit_event *e)
{
	e->path = SLICE_NONE;
	e->has_bytes = true;
	e->bytes_out = t->bytes_out;
	e->bytes_in = t->bytes_in;
	e->inspected_out = t->body_bytes;
	e->inspected_in = t->resp_bytes;
	e->has_times = true;
	e->us_dns = t->reached.us_dns;
	e->us_connect = t->reached.us_connect;
	e->us_tls = t->reached.us_tls;
	e->us_inspect = t->inspect_us;
	e->us_total = clock_mono_us() - t->start_us;
	histogram_add(&t->worker->metrics->request_us, e->us_total);
	metric_add(&t->worker->metrics->bytes_inspected_out, t->body_bytes);
	metric_add(&t->worker->metrics->bytes_inspected_in, t->resp_bytes);
}

/* Refuses when an intent could not be taken now: the writer can't write, or too many exchanges are under way. */
static void refuse_unlogged(struct txn *t)
{
	if (audit_ring_is_written(t->worker->config->ring))
		txn_refuse(t, REASON_LIMIT_CONNECTIONS, STAGE_LOG, NULL);
	else
		txn_refuse(t, REASON_LOG_UNAVAILABLE, STAGE_LOG, NULL);
}

bool txn_may_log(struct txn *t)
{
	if (audit_is_available(t->worker->config->ring))
		return true;
	refuse_unlogged(t);
	return false;
}

static bool put_intent(struct txn *t, enum reason allowed)
{
	struct audit_event e;
	bool is_tunnel = t->req.form == TARGET_AUTHORITY;
	txn_event(t, &e, is_tunnel ? AUDIT_CONNECT : AUDIT_REQUEST);
	e.decision = t->verdict.reason == REASON_NONE ? DECISION_ALLOW : DECISION_BLOCK;
	e.observed = t->verdict.observe;
	e.reason = t->verdict.reason == REASON_NONE ? allowed : t->verdict.reason;
	e.stage = is_tunnel ? STAGE_CONNECT : STAGE_HEAD;
	txn_add_findings(t, &e, LIMIT_FINDINGS);
	struct slice injected[LIMIT_LOG_SECRETS];
	e.injected = injected;
	e.n_injected = txn_secret_ids(t, t->injected, injected);
	if (worker_log_intent(t->worker, &e) != CAGE_OK)
		return false;
	t->logged = LOGGED_INTENT;
	return true;
}

bool txn_log_intent(struct txn *t, enum reason allowed)
{
	if (t->logged != LOGGED_NOTHING || put_intent(t, allowed))
		return true; /* logged before: a replay of the same request */
	refuse_unlogged(t);
	return false;
}

static bool is_failure(enum reason r)
{
	return refusal_is_upstream_failure(r) || r == REASON_CLIENT_GONE || r == REASON_CLIENT_TIMEOUT;
}

/* One line: the refusal itself, or the result that closes an intent. */
void txn_log_end(struct txn *t, enum reason reason, enum audit_stage stage, int status)
{
	struct audit_event e;
	enum audit_kind kind = t->req.form == TARGET_AUTHORITY ? AUDIT_CONNECT : AUDIT_REQUEST;
	if (t->logged == LOGGED_ALL)
		return;
	/* What the policy would have refused is said first, though a failure has ended it now. */
	bool hides_verdict = t->verdict.observe && t->verdict.reason != REASON_NONE && is_failure(reason);
	if (t->logged == LOGGED_NOTHING && hides_verdict)
		put_intent(t, REASON_NONE); /* without a place for it, the failure alone is noted below */
	txn_event(t, &e, t->logged == LOGGED_INTENT ? AUDIT_RESPONSE : kind);
	e.decision = reason == REASON_NONE ? DECISION_ALLOW : is_failure(reason) ? DECISION_ERROR : DECISION_BLOCK;
	e.reason = reason;
	e.stage = stage;
	if (reason == REASON_NONE && t->observed_late != REASON_NONE) {
		e.decision = DECISION_BLOCK;
		e.observed = true;
		e.reason = t->observed_late;
	}
	e.status = status;
	struct slice redacted[LIMIT_LOG_SECRETS], injected[LIMIT_LOG_SECRETS];
	e.injected = injected;
	e.n_injected = txn_secret_ids(t, txn_injected_late(t), injected);
	e.redacted = redacted;
	e.n_redacted = txn_secret_ids(t, t->redacted, redacted);
	txn_add_findings(t, &e, t->logged == LOGGED_INTENT ? LIMIT_FINDINGS_LATE : LIMIT_FINDINGS);
	if (t->logged == LOGGED_INTENT) {
		add_result(t, &e);
		worker_log_result(t->worker, &e);
	} else {
		worker_log_note(t->worker, &e);
	}
	t->logged = LOGGED_ALL;
}

void txn_log_tunnel_end(struct txn *t, enum reason reason)
{
	struct audit_event e;
	txn_event(t, &e, AUDIT_RESPONSE);
	e.decision = reason == REASON_NONE ? DECISION_ALLOW : DECISION_ERROR;
	e.reason = reason == REASON_NONE ? REASON_UNINSPECTED : reason;
	e.stage = STAGE_RESPONSE;
	add_result(t, &e);
	metric_add(&t->worker->metrics->bytes_uninspected_out, t->bytes_out);
	metric_add(&t->worker->metrics->bytes_uninspected_in, t->bytes_in);
	worker_log_result(t->worker, &e);
	t->logged = LOGGED_ALL;
}

/* ---- beginning ---- */

static struct txn *txn_new(struct conn *c)
{
	struct worker *w = c->worker;
	struct txn *t = w->spare_txn;
	struct generation *g = worker_generation(w, c->seat);
	if (!g)
		return NULL;
	struct arena arena, secret_arena;
	if (t) {
		w->spare_txn = NULL;
		arena = t->arena;
		secret_arena = t->secret_arena;
	} else {
		t = malloc(sizeof(*t));
		if (!t)
			return NULL;
		arena_init(&arena, LIMIT_TXN_ARENA);
		arena_init(&secret_arena, LIMIT_TXN_ARENA);
	}
	*t = (struct txn){.magic = TXN_MAGIC, .conn = c, .worker = w, .arena = arena, .secret_arena = secret_arena};
	t->resp_gate.kind = H1_GATE_RESPONSE;
	t->gen = generation_ref(g);
	t->id = worker_new_id(w);
	t->start_us = clock_mono_us();
	c->txn = t;
	conn_enter(c, CONN_BUSY);
	return t;
}

bool txn_take_policy(struct txn *t)
{
	struct generation *g = worker_generation(t->worker, t->conn->seat);
	if (!g)
		return false;
	generation_ref(g);
	generation_unref(&t->gen);
	t->gen = g;
	return true;
}

/* To a handshake of websocket a 200 would say that it is open. */
static enum refusal_form form_of(const struct txn *t)
{
	bool is_call = t->conn->parent && !message_field(&t->req, SLICE("upgrade")) &&
		       grpc_kind_of_message(&t->req) == GRPC_NATIVE;
	return is_call ? REFUSAL_GRPC : REFUSAL_JSON;
}

/* What a connection that was refused at CONNECT or ClientHello gets, whatever it asks. It is in the log already. */
static void tell_earlier_refusal(struct txn *t)
{
	struct conn *c = t->conn;
	struct refusal r = {.form = form_of(t),
			    .reason = c->refused,
			    .host = c->origin.host.text,
			    .rule = slice_of(c->refused_rule, c->refused_rule_len),
			    .txn = c->refused_txn};
	t->logged = LOGGED_ALL;
	conn_write_refusal(c, &r, true, slice_eq(t->req.method, SLICE("HEAD")));
	conn_finish(c);
}

/* A refusal by the policy can be told inside TLS, where the client's own HTTP library shows it, if the port is one that
 * is served at all. On a captured connection there is no other place to tell any. */
static bool is_told_inside(const struct txn *t, enum reason reason)
{
	if (t->req.form != TARGET_AUTHORITY || t->conn->is_bound || reason == REASON_NONE)
		return false;
	if (t->conn->entrance == ENTRANCE_CAPTURED)
		return t->target.host.text.len > 0;
	return reason == t->verdict.reason &&
	       (t->target.port == 443 || policy_lists_port(t->gen->policy, t->target.port));
}

static void refuse_inside(struct txn *t, enum reason reason)
{
	struct conn *c = t->conn;
	const struct policy_rule *rule = t->verdict.rule;
	txn_log_end(t, reason, STAGE_CONNECT, refusal_status(reason));
	conn_refuse_later(c, reason, t->id, rule ? rule->id : SLICE_NONE);
	conn_intercept(c);
}

static void txn_begin(struct txn *t)
{
	const char *detail = NULL;
	enum reason reason = txn_decide(t, &detail);
	if (is_told_inside(t, reason))
		refuse_inside(t, reason);
	else if (reason != REASON_NONE)
		txn_refuse(t, reason, t->req.form == TARGET_AUTHORITY ? STAGE_CONNECT : STAGE_HEAD, detail);
	else if (t->req.form != TARGET_AUTHORITY && page_is_host(&t->target.host))
		page_serve(t);
	else if (t->req.form != TARGET_AUTHORITY)
		txn_go_on(t);
	else if (t->verdict.applies && t->verdict.applies->action == RULE_TUNNEL)
		tunnel_start(t);
	else
		conn_intercept(t->conn);
}

void txn_start(struct conn *c, struct slice head)
{
	struct txn *t = txn_new(c);
	struct h1_error err = {REASON_INTERNAL, NULL};
	if (!t) {
		conn_close(c);
		return;
	}
	struct slice copy = arena_dup(&t->arena, head);
	stream_consume(c->down, head.len);
	if (!copy.ptr || h1_parse_request(copy, &t->arena, &t->req, &err) != CAGE_OK) {
		txn_refuse(t, err.reason, STAGE_HEAD, err.what);
		return;
	}
	(c->parent ? h1_body_init_inner : h1_body_init)(&t->body, &t->req);
	t->req_out = t->req.framing;
	t->req_out_length = t->req.content_length;
	if (c->refused != REASON_NONE)
		tell_earlier_refusal(t);
	else
		txn_begin(t);
}

/* The target's text, in which no host can pass for another one with another port: the last ':' is ours. */
static struct slice write_authority(struct txn *t, struct slice host, uint16_t port)
{
	size_t room = host.len + sizeof(":65535");
	char *buf = arena_alloc(&t->arena, room);
	struct text text = text_in(buf, buf ? room : 0);
	text_put(&text, host);
	text_put_char(&text, ':');
	text_put_u64(&text, port);
	return text_slice(&text);
}

void txn_connect(struct conn *c, struct slice host, uint16_t port)
{
	struct txn *t = txn_new(c);
	if (!t) {
		conn_close(c);
		return;
	}
	t->req = (struct message){.version = HTTP_11, .method = SLICE("CONNECT"), .form = TARGET_AUTHORITY};
	t->req.target = write_authority(t, host, port);
	h1_body_init(&t->body, &t->req);
	stream_set_deadline(c->down, 0);
	if (t->req.target.ptr)
		txn_begin(t);
	else
		txn_refuse(t, REASON_INTERNAL, STAGE_CONNECT, NULL);
}

/* ---- both ways ---- */

/* Each side goes by its own version; a client that came with HTTP/2 is worth offering it. Websockets are spoken over
 * HTTP/1.1. */
static enum upstream_offer offer_for(const struct txn *t)
{
	const struct field *upgrade = message_field(&t->req, SLICE("upgrade"));
	if (upgrade && slice_ieq(slice_trim(upgrade->value), SLICE("websocket")))
		return OFFER_H1_ONLY;
	return t->conn->parent ? OFFER_H2 : OFFER_H1;
}

struct upstream_want txn_want(struct txn *t, bool tls)
{
	return (struct upstream_want){.gen = t->gen,
				      .sandbox = t->conn->sandbox,
				      .rule = t->verdict.applies,
				      .target = &t->target,
				      .tls = tls,
				      .offer = offer_for(t)};
}

/* Negotiate and NTLM authenticate a connection, not a request: it must not serve anybody else. */
static bool has_connection_auth(const struct message *m, enum field_id id)
{
	for (size_t i = 0; i < m->n_fields; i++) {
		struct slice scheme = m->fields[i].value;
		if (m->fields[i].id != id)
			continue;
		scheme = slice_cut(&scheme, ' ');
		if (slice_ieq(scheme, SLICE("negotiate")) || slice_ieq(scheme, SLICE("ntlm")))
			return true;
	}
	return false;
}

/* May the upstream connection serve another request? */
static bool is_reusable(const struct txn *t)
{
	return t->request_done && t->resp.keep_alive && t->resp.framing != BODY_CLOSE && t->up_end == CAGE_OK &&
	       !has_connection_auth(&t->req, FIELD_AUTHORIZATION) &&
	       !has_connection_auth(&t->resp, FIELD_WWW_AUTHENTICATE);
}

void txn_write_end(struct text *end, const struct h1_body *body, enum body_framing out, bool inner)
{
	if (out == BODY_CHUNKED)
		h1_write_chunk_end(end, body->trailers, body->n_trailers);
	else if (out == BODY_LENGTH && inner)
		h1_write_trailers(end, body->trailers, body->n_trailers);
}

static size_t write_chunk(struct stream *s, struct slice piece, void (*write)(struct stream *, struct slice))
{
	char room[H1_CHUNK_HEAD];
	struct text head = text_in(room, sizeof(room));
	h1_write_chunk_head(&head, piece.len);
	stream_write(s, text_slice(&head));
	write(s, piece);
	stream_write(s, SLICE("\r\n"));
	return head.len + piece.len + 2;
}

size_t txn_write_chunk(struct stream *s, struct slice piece)
{
	return write_chunk(s, piece, stream_write);
}

size_t txn_write_chunk_secret(struct stream *s, struct slice piece)
{
	return write_chunk(s, piece, stream_write_secret);
}

/* ---- end ---- */

void txn_free(struct txn *t)
{
	struct worker *w = t->worker;
	if (t->logged == LOGGED_INTENT)
		txn_log_end(t, REASON_INTERNAL, STAGE_NONE, 0); /* every intent has its result, whatever went wrong */
	txn_ws_free(t);
	chain_finish(&t->inspect);
	reach_cancel(&t->reach);
	txn_drop_redaction(t);
	txn_drop_secrets(t);
	if (t->request_done)
		upstream_close(&t->up);
	else
		upstream_abort(&t->up);
	txn_drop_held(t, t->held.len);
	generation_unref(&t->gen);
	t->conn->txn = NULL;
	t->magic = 0;
	arena_reset(&t->arena);
	if (w->spare_txn) {
		arena_free(&t->arena);
		arena_free(&t->secret_arena);
		free(t);
	} else {
		w->spare_txn = t;
	}
}

/* Half a response must not pass for a whole one. */
static void end_response(struct txn *t, const struct refusal *r, enum audit_stage stage)
{
	struct conn *c = t->conn;
	if (is_failure(r->reason) || !txn_refuse_in_trailers(t, r)) {
		txn_abandon(t, r->reason, stage);
		return;
	}
	txn_log_end(t, r->reason, stage, t->resp.status);
	txn_enter(t, TXN_DONE);
	txn_free(t);
	conn_finish(c);
}

void txn_refuse(struct txn *t, enum reason reason, enum audit_stage stage, const char *detail)
{
	struct conn *c = t->conn;
	bool responded = t->state == TXN_RELAY && !txn_redaction_holds(t);
	struct refusal r = {.form = form_of(t),
			    .reason = reason,
			    .host = t->target.host.text,
			    .detail = detail,
			    .txn = t->id,
			    .retry_after_s = txn_retry_after_s(t)};
	if (t->verdict.rule)
		r.rule = t->verdict.rule->id;
	if (t->state == TXN_WEBSOCKET) {
		txn_ws_end(t, reason, stage);
		return;
	}
	if (responded) {
		end_response(t, &r, stage);
		return;
	}
	txn_log_end(t, reason, stage, refusal_status(reason));
	txn_enter(t, TXN_DONE);
	bool reusable = t->req.keep_alive && t->req.version == HTTP_11 && h1_body_is_done(&t->body) &&
			t->req.form != TARGET_AUTHORITY && refusal_status(reason) != 400 &&
			reason != REASON_POLICY_CHANGED && t->worker->state == WORKER_SERVING && conn_has_more(c);
	if (t->req.form == TARGET_AUTHORITY && !c->is_bound)
		conn_answer_refused(c, &r);
	else
		conn_write_refusal(c, &r, !reusable, slice_eq(t->req.method, SLICE("HEAD")));
	txn_free(t);
	if (reusable)
		conn_next(c);
	else
		conn_finish(c);
}

void txn_complete(struct txn *t)
{
	struct conn *c = t->conn;
	bool pooled = is_reusable(t);
	bool close = t->client_close || !t->request_done || !conn_has_more(c);
	txn_log_end(t, REASON_NONE, STAGE_RESPONSE, t->resp.status);
	txn_enter(t, TXN_DONE);
	if (pooled)
		upstream_release(&t->up);
	txn_free(t);
	if (close)
		conn_finish(c);
	else
		conn_next(c);
}

/* ---- the client's stream ---- */

void txn_client_data(struct txn *t)
{
	if (t->state == TXN_WEBSOCKET)
		txn_ws_pump(t);
	else if (t->state == TXN_GATHER || t->state == TXN_SEND || t->state == TXN_RELAY)
		txn_pump_request(t);
}

void txn_client_drained(struct txn *t)
{
	if (t->state == TXN_WEBSOCKET)
		txn_ws_pump(t);
	else if (t->state == TXN_RELAY)
		txn_resume_response(t);
}

void txn_abandon(struct txn *t, enum reason reason, enum audit_stage stage)
{
	struct conn *c = t->conn;
	if (t->state == TXN_WEBSOCKET) {
		txn_ws_end(t, reason, stage);
		return;
	}
	txn_log_end(t, reason, stage, t->resp.status);
	txn_enter(t, TXN_DONE);
	stream_reset(&c->down);
	conn_close(c);
}

/* A body over HTTP/2 can turn out to be malformed while it comes. */
enum reason txn_client_end(const struct txn *t, enum cage_status why)
{
	if (t->conn->parent && why == CAGE_EPROTO)
		return REASON_FRAMING_AMBIGUOUS;
	return why == CAGE_ETIMEOUT ? REASON_CLIENT_TIMEOUT : REASON_CLIENT_GONE;
}

/* A client that has sent its whole request may end its side and still read. Otherwise it is gone. */
void txn_client_ended(struct txn *t, enum cage_status why)
{
	if (t->state == TXN_WEBSOCKET) {
		txn_ws_client_ended(t, why);
		return;
	}
	if (why == CAGE_EOF && h1_body_is_done(&t->body))
		return;
	if (why == CAGE_EOF && stream_input(t->conn->down).len > 0) {
		txn_client_data(t); /* the rest may be there already; when it is not, this finds out */
		return;
	}
	txn_abandon(t, txn_client_end(t, why), t->state == TXN_RELAY ? STAGE_RESPONSE : STAGE_BODY);
}
