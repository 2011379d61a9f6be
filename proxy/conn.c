/* Client connections: accepting, heads, CONNECT, and the handshake with the client. */
#include "proxy/conn.h"

#include <stdlib.h>

#include "proxy/txn.h"

static void on_ready(struct stream *s, void *arg);
static void on_data(struct stream *s, void *arg);
static void on_drained(struct stream *s, void *arg);
static void on_end(struct stream *s, enum cage_status why, void *arg);
static void on_work(struct deferred *d);
static void on_leaf(struct leaf_waiter *w, enum reason why);

static const struct stream_cb conn_cb = {
	.on_ready = on_ready, .on_data = on_data, .on_drained = on_drained, .on_end = on_end};

/* ---- life ---- */

static bool may_enter(enum conn_state from, enum conn_state to)
{
	switch (to) {
	case CONN_SOCKS:
	case CONN_CAPTURED:
		return false; /* there is no way back to the beginning */
	case CONN_HEAD:
	case CONN_TUNNEL:
		return from == CONN_BUSY;
	case CONN_SNIFF:
		return from == CONN_BUSY || from == CONN_CAPTURED;
	case CONN_TLS:
		return from == CONN_SNIFF;
	case CONN_GREETED:
		return from == CONN_TLS;
	case CONN_H2:
		return from == CONN_GREETED;
	case CONN_BUSY:
		return from == CONN_HEAD || from == CONN_GREETED || from == CONN_SOCKS || from == CONN_CAPTURED ||
		       from == CONN_SNIFF; /* plain HTTP inside a CONNECT */
	case CONN_CLOSED:
		return from != CONN_CLOSED;
	}
	return false;
}

void conn_enter(struct conn *c, enum conn_state next)
{
	if (c->magic != CONN_MAGIC || !may_enter(c->state, next))
		abort(); /* a worker that is wrong about its own state must not go on */
	c->state = next;
}

static enum conn_state first_state(enum entrance entrance)
{
	switch (entrance) {
	case ENTRANCE_SOCKS:
		return CONN_SOCKS;
	case ENTRANCE_CAPTURED:
		return CONN_CAPTURED;
	case ENTRANCE_PROXY:
	case ENTRANCE_TOOLS: /* never comes here */
		break;
	}
	return CONN_HEAD;
}

/* What a connection of any kind begins with. */
static void conn_begin(struct conn *c, struct worker *w, struct stream *s)
{
	c->magic = CONN_MAGIC;
	c->worker = w;
	c->down = s;
	c->work.run = on_work;
	c->leaf.done = on_leaf;
	c->next = w->conns;
	if (c->next)
		c->next->prev = c;
	w->conns = c;
	stream_set_deadline(s, LIMIT_IDLE_MS);
	stream_set_stall(s, LIMIT_STALL_MS);
}

void conn_new(struct worker *w, int fd, enum entrance entrance)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct stream *s = stream_new(w->loop, fd, &conn_cb, c);
	if (!c || !s || (entrance == ENTRANCE_CAPTURED && !conn_captured_begin(c, fd))) {
		stream_close(&s);
		if (c)
			conn_captured_free(c);
		free(c);
		return;
	}
	conn_begin(c, w, s);
	c->entrance = entrance;
	c->state = first_state(entrance);
	c->id = worker_new_id(w);
	if (!w->config->has_auth)
		c->sandbox = w->config->sandbox; /* else the client must show which one it is */
	w->n_conns++;
	metric_add(&w->metrics->connections, 1);
	metric_set(&w->metrics->connections_open, w->n_conns);
	conn_socks_begin(c);
	if (entrance != ENTRANCE_PROXY)
		stream_set_deadline(s, LIMIT_HEAD_MS);
}

struct conn *conn_new_child(struct conn *parent, struct stream *inner)
{
	struct conn *c = calloc(1, sizeof(*c));
	if (!c) {
		stream_reset(&inner);
		return NULL;
	}
	conn_begin(c, parent->worker, inner);
	c->id = parent->id;
	c->seat = parent->seat;
	c->sandbox = parent->sandbox;
	c->is_bound = parent->is_bound;
	c->origin = parent->origin;
	c->origin.host.text.ptr = c->origin.text;
	conn_refuse_later(c, parent->refused, parent->refused_txn,
			  slice_of(parent->refused_rule, parent->refused_rule_len));
	c->parent = parent;
	stream_set_owner(inner, &conn_cb, c);
	return c;
}

/* Unhooks it from everything; it is freed at the end of the pass. */
static void conn_leave(struct conn *c)
{
	struct worker *w = c->worker;
	if (c->state == CONN_CLOSED)
		return;
	conn_enter(c, CONN_CLOSED);
	leaf_cancel(w->leaves, &c->leaf);
	conn_captured_free(c);
	conn_h2_leave(c);
	if (c->txn)
		txn_free(c->txn);
	if (c->prev)
		c->prev->next = c->next;
	else
		w->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	if (c->parent) {
		conn_h2_leave_parent(c);
	} else {
		w->n_conns--;
		metric_set(&w->metrics->connections_open, w->n_conns);
	}
	loop_defer(w->loop, &c->work);
}

void conn_close(struct conn *c)
{
	conn_leave(c);
	stream_close(&c->down);
}

void conn_finish(struct conn *c)
{
	conn_leave(c);
	stream_finish(&c->down);
}

void conn_write_refusal(struct conn *c, const struct refusal *r, bool close, bool head_only)
{
	char room[REFUSAL_ROOM];
	struct text t = text_in(room, sizeof(room));
	refusal_write(&t, r, close, head_only);
	if (c->parent && !head_only)
		h1_write_trailers(&t, NULL, 0);
	stream_write(c->down, text_slice(&t));
}

void conn_log(struct conn *c, enum audit_decision decision, enum reason reason, enum audit_stage stage, uint64_t txn)
{
	struct audit_event e;
	worker_event(&e, stage == STAGE_HEAD ? AUDIT_REQUEST : AUDIT_CONNECT, worker_logged(c->worker, c->seat));
	e.sandbox = c->sandbox;
	e.conn = c->id;
	e.txn = txn;
	e.decision = decision;
	e.reason = reason;
	e.stage = stage;
	if (reason == c->refused)
		e.rule = slice_of(c->refused_rule, c->refused_rule_len);
	if (decision == DECISION_BLOCK && txn != 0)
		e.status = refusal_status(reason);
	if (c->is_bound) {
		e.host = c->origin.host.text;
		e.port = c->origin.port;
	}
	worker_log_note(c->worker, &e);
}

/* What was refused before, and logged then, is not refused again: the client is told of the first one. */
void conn_refuse(struct conn *c, enum reason reason, enum audit_stage stage)
{
	struct refusal r = {
		.reason = c->refused, .rule = slice_of(c->refused_rule, c->refused_rule_len), .txn = c->refused_txn};
	if (c->refused == REASON_NONE) {
		r = (struct refusal){.reason = reason, .txn = worker_new_id(c->worker)};
		conn_log(c, DECISION_BLOCK, reason, stage, r.txn);
	}
	if (c->is_bound)
		r.host = c->origin.host.text;
	conn_write_refusal(c, &r, true, false);
	conn_finish(c);
}

void conn_ended_early(struct conn *c, enum cage_status why)
{
	bool said_nothing = stream_input(c->down).len == 0 && c->socks.state == SOCKS5_GREETING;
	if (why == CAGE_ETIMEOUT)
		conn_log(c, DECISION_ERROR, REASON_CLIENT_TIMEOUT, STAGE_CONNECT, 0);
	else if (!said_nothing)
		conn_log(c, DECISION_ERROR, REASON_CLIENT_GONE, STAGE_CONNECT, 0);
	conn_close(c);
}

/* ---- heads ---- */

/* The first bytes inside a CONNECT that are no HTTP are another protocol, not a bad head. So is HTTP/2, which is for those
 * who ask for it by ALPN. */
static enum reason gate_reason(const struct conn *c, enum cage_status st)
{
	if (st == CAGE_ELIMIT)
		return REASON_HEAD_TOO_LARGE;
	bool is_h2 = slice_starts(stream_input(c->down), SLICE("PRI * HTTP/2.0"));
	return c->state == CONN_SNIFF || is_h2 ? REASON_PROTOCOL_UNKNOWN : REASON_HEAD_MALFORMED;
}

static void read_head(struct conn *c)
{
	struct slice input = stream_input(c->down);
	size_t len = 0;
	if (input.len == 0 || stream_is_clogged(c->down))
		return; /* a client that does not read its answers gets no further ones */
	if (worker_must_wait_for_log(c->worker))
		return; /* looked at again when the writer has caught up */
	bool first_look = c->gate.seen == 0;
	enum cage_status st = h1_gate(&c->gate, input, &len);
	if (st == CAGE_AGAIN) {
		if (first_look)
			stream_set_deadline(c->down, LIMIT_HEAD_MS);
		if (stream_has_ended(c->down))
			conn_finish(c); /* half a head, and no more will come */
		return;
	}
	if (st != CAGE_OK) {
		conn_refuse(c, gate_reason(c, st), STAGE_HEAD);
		return;
	}
	c->gate = (struct h1_gate){.kind = H1_GATE_REQUEST};
	stream_set_deadline(c->down, 0);
	txn_start(c, slice_head(input, len));
}

bool conn_has_more(const struct conn *c)
{
	return !c->parent && (!stream_has_ended(c->down) || stream_input(c->down).len > 0);
}

void conn_identify(struct conn *c, size_t seat)
{
	c->seat = seat;
	c->sandbox = seat_id(&c->worker->seats[seat]);
}

void conn_forget(struct conn *c)
{
	if (!c->worker->config->has_auth || c->is_bound || c->entrance == ENTRANCE_SOCKS)
		return;
	c->seat = 0;
	c->sandbox = SLICE_NONE;
}

void conn_next(struct conn *c)
{
	conn_forget(c);
	conn_enter(c, CONN_HEAD);
	stream_set_deadline(c->down, LIMIT_IDLE_MS);
	loop_defer(c->worker->loop, &c->work);
}

/* ---- CONNECT ---- */

void conn_refuse_later(struct conn *c, enum reason reason, uint64_t txn, struct slice rule)
{
	c->refused = reason;
	c->refused_txn = txn;
	rule = slice_head(rule, sizeof(c->refused_rule));
	c->refused_rule_len = rule.len;
	if (rule.len > 0)
		memcpy(c->refused_rule, rule.ptr, rule.len);
}

void conn_bind(struct conn *c, const struct host *host, uint16_t port)
{
	c->is_bound = true;
	c->origin.host = *host;
	c->origin.port = port;
	memcpy(c->origin.text, host->text.ptr, host->text.len);
	c->origin.host.text.ptr = c->origin.text;
}

void conn_sniff(struct conn *c)
{
	conn_enter(c, CONN_SNIFF);
	stream_set_deadline(c->down, LIMIT_HEAD_MS);
	loop_defer(c->worker->loop, &c->work);
}

void conn_intercept(struct conn *c)
{
	conn_bind(c, &c->txn->target.host, c->txn->target.port);
	txn_free(c->txn);
	conn_answer_connected(c);
	conn_sniff(c);
}

static void start_tls(struct conn *c)
{
	/* The answer to CONNECT goes out in plain, before anything else. */
	SSL *ssl = stream_flush(c->down) ? SSL_new(c->worker->server_ctx) : NULL;
	if (!ssl) {
		conn_close(c);
		return;
	}
	conn_enter(c, CONN_TLS);
	c->origin.scheme = SCHEME_HTTPS;
	SSL_set_app_data(ssl, c);
	stream_set_deadline(c->down, LIMIT_HANDSHAKE_MS);
	stream_start_tls(c->down, ssl, true);
}

bool conn_has_hello(const struct conn *c)
{
	struct slice input = stream_input(c->down);
	return input.len > 0 && input.ptr[0] == 0x16;
}

/* TLS begins with a handshake record; anything else must be HTTP. Port 443 is TLS only, port 80 plain only. */
static void sniff(struct conn *c)
{
	if (stream_input(c->down).len == 0)
		return;
	bool is_tls = conn_has_hello(c);
	if (is_tls ? c->origin.port == 80 : c->origin.port == 443) {
		conn_refuse(c, REASON_PROTOCOL_UNKNOWN, STAGE_CONNECT);
		return;
	}
	if (is_tls) {
		start_tls(c);
		return;
	}
	c->origin.scheme = SCHEME_HTTP;
	read_head(c);
}

/* ---- the handshake with the client ---- */

static void refuse_hello(struct conn *c, enum reason reason)
{
	if (c->refused != REASON_NONE)
		return;
	conn_refuse_later(c, reason, worker_new_id(c->worker), SLICE_NONE);
	conn_log(c, DECISION_BLOCK, reason, STAGE_TLS, c->refused_txn);
}

/* The name to make a leaf for: SNI's, so that the client can read a refusal, else CONNECT's. */
static struct slice hello_name(struct conn *c, SSL *ssl)
{
	char room[1024];
	struct arena arena;
	struct slice sni;
	struct host host;
	const char *why;
	enum cage_status st = tls_hello_name(ssl, &sni);
	if (st == CAGE_EOF)
		return c->origin.host.text;
	memset(room, 0, sizeof(room));
	arena_init_region(&arena, room, sizeof(room));
	if (st != CAGE_OK || host_parse(sni, &arena, &host, &why) != CAGE_OK) {
		refuse_hello(c, REASON_TARGET_MALFORMED);
		return c->origin.host.text;
	}
	if (!host_eq(&host, &c->origin.host))
		refuse_hello(c, REASON_AUTHORITY_MISMATCH);
	memcpy(c->leaf_name, host.text.ptr, host.text.len);
	return slice_of(c->leaf_name, host.text.len);
}

int conn_on_hello(SSL *ssl, int *alert, void *arg)
{
	struct worker *w = arg;
	struct conn *c = SSL_get_app_data(ssl);
	if (c->state == CONN_CAPTURED)
		return conn_captured_hello(c, ssl);
	if (c->leaf.waiting)
		return SSL_CLIENT_HELLO_RETRY;
	struct slice name = hello_name(c, ssl);
	X509 *cert = leaf_get(w->leaves, name);
	*alert = SSL_AD_INTERNAL_ERROR;
	if (cert) {
		bool ok = SSL_use_cert_and_key(ssl, cert, w->config->leaf_key, NULL, 1) == 1 &&
			  tls_bind_sessions(ssl, name);
		return ok ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_ERROR;
	}
	c->leaf.name = name;
	enum reason why = leaf_wait(w->leaves, &c->leaf);
	if (why == REASON_NONE)
		return SSL_CLIENT_HELLO_RETRY;
	refuse_hello(c, why);
	return SSL_CLIENT_HELLO_ERROR;
}

static void on_leaf(struct leaf_waiter *w, enum reason why)
{
	struct conn *c = (struct conn *)(void *)((char *)w - offsetof(struct conn, leaf));
	if (why == REASON_NONE) {
		stream_resume_handshake(c->down);
		return;
	}
	refuse_hello(c, why);
	conn_close(c);
}

/* ---- the stream's callbacks ---- */

static void on_ready(struct stream *s, void *arg)
{
	struct conn *c = arg;
	SSL_set_app_data(stream_ssl(s), NULL);
	conn_enter(c, CONN_GREETED);
	stream_set_deadline(s, LIMIT_IDLE_MS);
	if (tls_chose_h2(stream_ssl(s)))
		conn_h2_start(c);
}

static void look_at_input(struct conn *c)
{
	switch (c->state) {
	case CONN_GREETED:
	case CONN_HEAD:
		read_head(c);
		break;
	case CONN_SOCKS:
		conn_socks_look(c);
		break;
	case CONN_CAPTURED:
		conn_captured_look(c);
		break;
	case CONN_SNIFF:
		sniff(c);
		break;
	case CONN_BUSY:
		txn_client_data(c->txn);
		break;
	case CONN_TLS:
	case CONN_H2:
	case CONN_TUNNEL:
	case CONN_CLOSED:
		break;
	}
}

static void on_data(struct stream *s, void *arg)
{
	(void)s;
	struct conn *c = arg;
	if (c->magic != CONN_MAGIC)
		abort();
	look_at_input(c);
}

static void on_drained(struct stream *s, void *arg)
{
	(void)s;
	struct conn *c = arg;
	if (c->state == CONN_BUSY)
		txn_client_drained(c->txn);
	else
		look_at_input(c);
}

/* A client that turns away during or right after the handshake most often does not trust our CA. */
static enum reason handshake_failure(const struct conn *c, enum cage_status why)
{
	if (why == CAGE_ETIMEOUT && c->leaf.waiting)
		return REASON_SIGNER_UNAVAILABLE;
	if (why == CAGE_ETIMEOUT)
		return REASON_CLIENT_TIMEOUT;
	return why == CAGE_EOF ? REASON_CLIENT_GONE : REASON_CLIENT_TLS_FAILED;
}

/* A request over HTTP/2 whose body turned out to be malformed before its head was looked at has no other line. */
static void conn_broken(struct conn *c, enum cage_status why)
{
	if (c->parent && why == CAGE_EPROTO)
		conn_log(c, DECISION_BLOCK, REASON_FRAMING_AMBIGUOUS, STAGE_HEAD, worker_new_id(c->worker));
	conn_close(c);
}

/* The client ended while it owed us a head, or the rest of one. */
static void ended_before_head(struct conn *c, enum cage_status why)
{
	bool has_input = stream_input(c->down).len > 0;
	if (why == CAGE_ETIMEOUT && has_input)
		conn_refuse(c, REASON_CLIENT_TIMEOUT, STAGE_HEAD);
	else if (why == CAGE_EOF)
		loop_defer(c->worker->loop, &c->work); /* there may be a last request, or an answer to be sent */
	else
		conn_broken(c, why);
}

/* The same before it has said where to. */
static void ended_before_target(struct conn *c, enum cage_status why)
{
	if (why == CAGE_EOF)
		loop_defer(c->worker->loop, &c->work); /* all that is needed may be there */
	else if (c->state == CONN_CAPTURED)
		conn_captured_ended(c, why);
	else
		conn_ended_early(c, why);
}

static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	struct conn *c = arg;
	bool before_request = (c->state == CONN_TLS || c->state == CONN_GREETED) && stream_input(s).len == 0;
	if (before_request && c->refused == REASON_NONE) {
		enum reason reason = handshake_failure(c, why);
		conn_log(c, reason == REASON_SIGNER_UNAVAILABLE ? DECISION_BLOCK : DECISION_ERROR, reason, STAGE_TLS,
			 0);
	}
	switch (c->state) {
	case CONN_BUSY:
		txn_client_ended(c->txn, why);
		break;
	case CONN_TLS:
		conn_close(c);
		break;
	case CONN_SOCKS:
	case CONN_CAPTURED:
		ended_before_target(c, why);
		break;
	case CONN_GREETED:
	case CONN_HEAD:
	case CONN_SNIFF:
		ended_before_head(c, why);
		break;
	case CONN_H2:
	case CONN_TUNNEL:
	case CONN_CLOSED:
		break;
	}
}

void conn_look_again(struct conn *c)
{
	loop_defer(c->worker->loop, &c->work);
}

/* The end of a pass: look for the next head, or be freed. */
static void on_work(struct deferred *d)
{
	struct conn *c = (struct conn *)(void *)((char *)d - offsetof(struct conn, work));
	if (c->state == CONN_CLOSED) {
		c->magic = 0;
		free(c);
		return;
	}
	look_at_input(c);
	bool waits = c->state == CONN_HEAD || c->state == CONN_GREETED || c->state == CONN_SNIFF;
	if (waits && stream_has_ended(c->down) && stream_input(c->down).len == 0)
		conn_finish(c);
}
