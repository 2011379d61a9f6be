/* One exchange with a token service:
 *
 *	REACH -> HEAD -> BODY -> over
 *
 * It is like any other request: covered by a rule, verified, logged before its first byte leaves; only that nobody but us reads
 * the answer. */
#include <openssl/crypto.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/http/h1.h"
#include "proxy/oauth2_private.h"
#include "proxy/upstream.h"

enum fetch_state { FETCH_REACH, FETCH_HEAD, FETCH_BODY };

struct fetch {
	struct fetch_order order;
	const struct policy_rule *rule;
	fetched *done;
	void *arg;
	enum fetch_state state;
	struct arena arena;
	struct arena secret; /* of the request, until it is sent */
	struct token_request request;
	struct reach *reach;
	struct upstream *up;
	struct upstream_result reached; /* times and address */
	struct event *timer;
	uint64_t id, start_us;
	bool is_logged; /* the intent is in the log, the result not yet */
	struct h1_gate gate;
	struct message head;
	unsigned interim; /* 1xx seen */
	struct h1_body framing;
	char *body;
	size_t body_len;
	uint64_t bytes_out, bytes_in;
};

static const struct target *url_of(const struct fetch *f)
{
	return &f->order.secret->oauth->token_url;
}

uint32_t fetch_slot(const struct fetch *f)
{
	return f->order.gen->slot;
}

/* ---- log ---- */

static void fill_event(struct fetch *f, struct audit_event *e, enum audit_kind kind)
{
	worker_event(e, kind, f->order.gen);
	e->txn = f->id;
	e->method = SLICE("POST");
	e->scheme = SLICE("https");
	e->host = url_of(f)->host.text;
	e->port = url_of(f)->port;
	if (f->rule)
		e->rule = f->rule->id;
	if (f->reached.addr.family)
		e->address = &f->reached.addr;
	if (f->up)
		e->alpn = SLICE("http/1.1");
	if (kind == AUDIT_REQUEST)
		e->path = target_logged(url_of(f), &f->arena);
}

static void add_result(const struct fetch *f, struct audit_event *e)
{
	e->status = f->state == FETCH_BODY ? f->head.status : 0;
	e->has_bytes = e->has_times = true;
	e->bytes_out = f->bytes_out;
	e->bytes_in = f->bytes_in;
	e->us_dns = f->reached.us_dns;
	e->us_connect = f->reached.us_connect;
	e->us_tls = f->reached.us_tls;
	e->us_total = clock_mono_us() - f->start_us;
}

static bool log_intent(struct fetch *f)
{
	struct audit_event e;
	fill_event(f, &e, AUDIT_REQUEST);
	e.decision = DECISION_ALLOW;
	e.stage = STAGE_HEAD;
	e.injected = &f->order.secret->id;
	e.n_injected = 1;
	f->is_logged = worker_log_intent(f->order.worker, &e) == CAGE_OK;
	return f->is_logged;
}

/* The result of what was sent; of what was not, a line that says why. */
static void log_end(struct fetch *f, enum reason reason)
{
	struct audit_event e;
	fill_event(f, &e, f->is_logged ? AUDIT_RESPONSE : AUDIT_REQUEST);
	e.decision = reason == REASON_NONE ? DECISION_ALLOW : DECISION_ERROR;
	e.reason = reason;
	e.stage = f->is_logged ? STAGE_RESPONSE : STAGE_UPSTREAM;
	if (!f->is_logged) {
		worker_log_note(f->order.worker, &e);
		return;
	}
	add_result(f, &e);
	worker_log_result(f->order.worker, &e);
	f->is_logged = false;
}

/* For the operator, who can mend it: the log has reasons only. fault is a text of ours. */
static void say_fault(const struct fetch *f, const char *fault)
{
	say("no token for the secret %.*s: %s", SLICE_FMT(f->order.secret->id), fault);
}

/* ---- the end ---- */

static void fetch_free(struct fetch *f)
{
	reach_cancel(&f->reach);
	upstream_close(&f->up);
	if (f->timer)
		event_free(f->timer);
	if (f->body)
		OPENSSL_cleanse(f->body, LIMIT_TOKEN_RESPONSE);
	free(f->body);
	arena_cleanse(&f->secret);
	arena_free(&f->secret);
	arena_cleanse(&f->arena); /* the head of the reply */
	arena_free(&f->arena);
	generation_unref(&f->order.gen);
	free(f);
}

void fetch_cancel(struct fetch **fp, enum reason reason)
{
	struct fetch *f = *fp;
	if (!f)
		return;
	*fp = NULL;
	log_end(f, reason);
	fetch_free(f);
}

static void finish(struct fetch *f, enum reason reason, const struct token_reply *reply)
{
	fetched *done = f->done;
	void *arg = f->arg;
	fetch_cancel(&f, reason);
	done(arg, reply);
}

static void fail(struct fetch *f, enum reason reason)
{
	finish(f, reason, NULL);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	fail(arg, REASON_UPSTREAM_TIMEOUT);
}

/* ---- the answer ---- */

static void read_answer(struct fetch *f)
{
	struct token_reply reply;
	const char *fault = "the token service did not answer with status 200";
	if (f->head.status == 200)
		fault = token_reply_read(slice_of(f->body, f->body_len), &reply);
	if (fault) {
		say_fault(f, fault);
		fail(f, REASON_SECRET_UNAVAILABLE);
		return;
	}
	finish(f, REASON_NONE, &reply);
	token_reply_free(&reply);
}

/* CAGE_OK: go on; CAGE_AGAIN: wait; else it is over. */
static enum cage_status take_head(struct fetch *f)
{
	struct slice input = stream_input(f->up->stream);
	struct h1_error err;
	size_t len = 0;
	enum cage_status st = h1_gate(&f->gate, input, &len);
	if (st == CAGE_AGAIN)
		return st;
	struct slice head = st == CAGE_OK ? arena_dup(&f->arena, slice_head(input, len)) : SLICE_NONE;
	if (!head.ptr || h1_parse_response(head, SLICE("POST"), &f->arena, &f->head, &err) != CAGE_OK ||
	    f->head.status == 101 || (f->head.status < 200 && ++f->interim > LIMIT_INTERIM)) {
		fail(f, REASON_UPSTREAM_MALFORMED);
		return CAGE_EPROTO;
	}
	stream_consume(f->up->stream, len);
	f->bytes_in += len;
	f->gate = (struct h1_gate){.kind = H1_GATE_RESPONSE};
	if (f->head.status < 200)
		return CAGE_OK;
	h1_body_init(&f->framing, &f->head);
	f->state = FETCH_BODY;
	return CAGE_OK;
}

/* The same. */
static enum cage_status take_body(struct fetch *f)
{
	struct slice data = SLICE_NONE;
	size_t used = 0;
	enum cage_status st = h1_body_feed(&f->framing, stream_input(f->up->stream), &f->arena, &used, &data);
	bool fits = data.len <= LIMIT_TOKEN_RESPONSE - f->body_len;
	if (fits && data.len > 0) {
		memcpy(f->body + f->body_len, data.ptr, data.len);
		f->body_len += data.len;
	}
	stream_consume(f->up->stream, used);
	f->bytes_in += used;
	if (!fits || (st != CAGE_OK && st != CAGE_AGAIN && st != CAGE_EOF)) {
		fail(f, REASON_UPSTREAM_MALFORMED);
		return CAGE_EPROTO;
	}
	if (st == CAGE_EOF)
		read_answer(f);
	return st;
}

static void on_data(struct stream *s, void *arg)
{
	struct fetch *f = arg;
	enum cage_status st = CAGE_OK;
	if (f->state == FETCH_REACH) {
		fail(f, REASON_UPSTREAM_MALFORMED); /* spoke before it was asked */
		return;
	}
	while (st == CAGE_OK) {
		if (f->state == FETCH_BODY && h1_body_is_done(&f->framing)) {
			read_answer(f);
			return;
		}
		if (stream_input(s).len == 0)
			return;
		st = f->state == FETCH_HEAD ? take_head(f) : take_body(f);
	}
}

static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	struct fetch *f = arg;
	if (f->state == FETCH_BODY && why == CAGE_EOF && h1_body_end_of_input(&f->framing) == CAGE_EOF)
		read_answer(f);
	else
		fail(f, why == CAGE_ETIMEOUT ? REASON_UPSTREAM_TIMEOUT : REASON_UPSTREAM_TRUNCATED);
}

static void on_other(struct stream *s, void *arg)
{
	(void)s, (void)arg; /* TLS is made already; the request is written at once */
}

static const struct stream_cb answer_cb = {
	.on_ready = on_other, .on_data = on_data, .on_drained = on_other, .on_end = on_end};

/* ---- the question ---- */

static void write_head(struct text *t, struct fetch *f)
{
	const struct token_request *r = &f->request;
	struct field fields[] = {{.name = SLICE("Content-Type"), .value = SLICE("application/x-www-form-urlencoded")},
				 {.name = SLICE("Accept"), .value = SLICE("application/json")},
				 {.name = SLICE("User-Agent"), .value = SLICE("cage/" CAGE_VERSION)},
				 {.name = SLICE("Authorization"), .value = r->authorization}};
	size_t n = sizeof(fields) / sizeof(fields[0]);
	struct message m = {.method = SLICE("POST"), .fields = fields, .n_fields = r->authorization.len ? n : n - 1};
	struct h1_out out = {.target = target_send(url_of(f), &f->arena),
			     .host = host_header(url_of(f), &f->arena),
			     .framing = BODY_LENGTH,
			     .content_length = r->form.len,
			     .declare_length = true,
			     .close = true};
	h1_write_request(t, &m, &out);
}

/* REASON_NONE, or why nothing was sent. */
static enum reason ask(struct fetch *f)
{
	size_t room = 1024 + LIMIT_TARGET + f->request.authorization.len;
	char *head = arena_alloc(&f->secret, room);
	struct text t = text_in(head, head ? room : 0);
	write_head(&t, f);
	if (!text_ok(&t))
		return REASON_INTERNAL;
	if (!log_intent(f))
		return REASON_LOG_UNAVAILABLE;
	stream_cleanse_input(f->up->stream);
	stream_write_secret(f->up->stream, text_slice(&t));
	stream_write_secret(f->up->stream, f->request.form);
	f->bytes_out = t.len + f->request.form.len;
	f->state = FETCH_HEAD;
	arena_cleanse(&f->secret);
	arena_reset(&f->secret);
	return REASON_NONE;
}

static void on_reached(void *arg, const struct upstream_result *result)
{
	struct fetch *f = arg;
	enum reason r = result->reason;
	f->reach = NULL;
	f->reached = *result;
	if (r == REASON_NONE) {
		f->up = result->up;
		stream_set_owner(f->up->stream, &answer_cb, f);
		r = ask(f);
	}
	if (r != REASON_NONE)
		fail(f, r);
}

/* ---- the beginning ---- */

/* REASON_NONE: f->rule is the one under which we go there. */
static enum reason find_rule(struct fetch *f)
{
	const struct target *url = url_of(f);
	struct policy_verdict v = policy_match_request(f->order.gen->policy, url, SLICE("POST"), clock_wall_s());
	if (v.reason != REASON_NONE)
		return v.reason;
	f->rule = v.rule;
	return upstream_check_name(&url->host, v.rule);
}

static enum reason make_request(struct fetch *f, struct slice value)
{
	const char *fault = token_request_make(f->order.secret, value, clock_wall_s(), &f->secret, &f->request);
	if (!fault)
		return REASON_NONE;
	say_fault(f, fault);
	return REASON_SECRET_UNAVAILABLE;
}

static enum reason begin(struct fetch *f, struct slice value)
{
	struct worker *w = f->order.worker;
	struct timeval limit = loop_ms(LIMIT_TOKEN_MS);
	enum reason r = find_rule(f);
	if (r == REASON_NONE)
		r = make_request(f, value);
	if (r != REASON_NONE)
		return r;
	f->body = malloc(LIMIT_TOKEN_RESPONSE);
	f->timer = evtimer_new(loop_base(w->loop), on_timeout, f);
	if (!f->body || !f->timer || event_add(f->timer, &limit) != 0)
		return REASON_INTERNAL;
	struct upstream_want want = {.gen = f->order.gen,
				     .sandbox = generation_sandbox(f->order.gen),
				     .rule = f->rule,
				     .target = url_of(f),
				     .tls = true};
	f->reach = upstream_reach(w, &want, on_reached, f);
	return f->reach ? REASON_NONE : REASON_INTERNAL;
}

struct fetch *fetch_start(const struct fetch_order *order, struct slice value, fetched *done, void *arg)
{
	struct fetch *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->order = *order;
	f->order.gen = generation_ref(order->gen);
	f->done = done;
	f->arg = arg;
	f->gate.kind = H1_GATE_RESPONSE;
	f->id = worker_new_id(order->worker);
	f->start_us = clock_mono_us();
	arena_init(&f->arena, LIMIT_TXN_ARENA);
	arena_init(&f->secret, LIMIT_TXN_ARENA);
	enum reason r = begin(f, value);
	if (r != REASON_NONE)
		fetch_cancel(&f, r);
	return f;
}
