/* One exchange of the reader:
 *
 *	RESOLVE -> DIAL -> TLS -> HEAD -> BODY -> OVER        pins and addresses start at DIAL; http has no TLS
 *
 * The name in the certificate is what makes the other side the vault; so unlike for an agent's requests private addresses may be
 * dialled (private endpoints have them), but never our own listeners, nor a metadata service by a name. */
#include <unistd.h>

#include "core/http/h1.h"
#include "core/net/dial.h"
#include "core/net/stream.h"
#include "proxy/keyvault_private.h"

enum call_state { CALL_RESOLVE, CALL_DIAL, CALL_TLS, CALL_HEAD, CALL_BODY, CALL_OVER };

struct call {
	struct caller *caller;
	const struct call_request *request;
	struct call_answer answer;
	enum call_state state;
	struct arena arena; /* of what is sent and of the head that comes */
	struct resolve *resolve;
	struct dial *dial;
	struct stream *stream;
	struct h1_gate gate;
	struct message head;
	unsigned interim; /* 1xx seen */
	struct h1_body framing;
	size_t len; /* of the body so far */
};

/* ---- the end ---- */

static void over(struct call *c)
{
	c->state = CALL_OVER;
	loop_stop(c->caller->loop);
}

static void fail(struct call *c, const char *why)
{
	c->answer = (struct call_answer){.why = why};
	over(c);
}

static void fail_for_good(struct call *c, const char *why)
{
	fail(c, why);
	c->answer.is_lasting = true;
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	fail(arg, "did not answer in time");
}

/* ---- the answer ---- */

/* Seconds; a date is not asked of us often enough to be read. */
static uint32_t retry_after(const struct message *m)
{
	const struct field *f = message_field(m, SLICE("retry-after"));
	uint64_t s = 0;
	if (!f || !slice_to_u64(f->value, UINT32_MAX, &s))
		return 0;
	return s < LIMIT_KEYVAULT_WAIT_S ? (uint32_t)s : LIMIT_KEYVAULT_WAIT_S;
}

static void succeed(struct call *c)
{
	c->answer = (struct call_answer){
		.status = c->head.status, .wait_s = retry_after(&c->head), .body = slice_of(c->caller->room, c->len)};
	over(c);
}

static void take_head(struct call *c)
{
	struct slice input = stream_input(c->stream);
	struct h1_error err;
	size_t len = 0;
	enum cage_status st = h1_gate(&c->gate, input, &len);
	if (st == CAGE_AGAIN)
		return;
	struct slice head = st == CAGE_OK ? arena_dup(&c->arena, slice_head(input, len)) : SLICE_NONE;
	struct slice method = c->request->form.ptr ? SLICE("POST") : SLICE("GET");
	if (!head.ptr || h1_parse_response(head, method, &c->arena, &c->head, &err) != CAGE_OK ||
	    c->head.status == 101 || (c->head.status < 200 && ++c->interim > LIMIT_INTERIM)) {
		fail_for_good(c, "answered with what is not HTTP");
		return;
	}
	stream_consume(c->stream, len);
	c->gate = (struct h1_gate){.kind = H1_GATE_RESPONSE};
	if (c->head.status < 200)
		return;
	h1_body_init(&c->framing, &c->head);
	c->state = CALL_BODY;
}

static void take_body(struct call *c)
{
	struct slice data = SLICE_NONE;
	size_t used = 0;
	enum cage_status st = h1_body_feed(&c->framing, stream_input(c->stream), &c->arena, &used, &data);
	if (data.len > LIMIT_KEYVAULT_ANSWER - c->len) {
		fail_for_good(c, "answered with more than is read of it");
		return;
	}
	if (data.len > 0)
		memcpy(c->caller->room + c->len, data.ptr, data.len);
	c->len += data.len;
	stream_consume(c->stream, used);
	if (st == CAGE_EOF)
		succeed(c);
	else if (st != CAGE_OK && st != CAGE_AGAIN)
		fail_for_good(c, "answered with what is not HTTP");
}

/* Each step takes some input, or leaves the state and the input as they are: then more is needed. */
static void on_data(struct stream *s, void *arg)
{
	struct call *c = arg;
	size_t before = 0;
	enum call_state state = CALL_OVER;
	while (c->state != CALL_OVER && (stream_input(s).len != before || c->state != state)) {
		before = stream_input(s).len;
		state = c->state;
		if (state == CALL_HEAD)
			take_head(c);
		else if (state == CALL_BODY && h1_body_is_done(&c->framing))
			succeed(c);
		else if (state == CALL_BODY)
			take_body(c);
		else
			fail_for_good(c, "spoke before it was asked");
	}
}

static const char *verify_fault(struct call *c, SSL *ssl)
{
	long result = SSL_get_verify_result(ssl);
	if (result != X509_V_OK)
		return X509_verify_cert_error_string(result);
	return tls_chain_fault(SSL_get0_verified_chain(ssl), c->request->url.host.text);
}

static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	struct call *c = arg;
	if (c->state == CALL_OVER)
		return;
	if (why == CAGE_EVERIFY)
		fail_for_good(c, "showed a certificate that is not to be trusted (see upstream.trust)");
	else if (c->state == CALL_BODY && why == CAGE_EOF && h1_body_end_of_input(&c->framing) == CAGE_EOF)
		succeed(c);
	else if (c->state == CALL_TLS)
		fail(c, "can't be spoken to in TLS");
	else
		fail(c, "ended before its answer did");
}

/* ---- the question ---- */

static void ask(struct call *c)
{
	const struct call_request *r = c->request;
	struct field fields[] = {{.name = SLICE("Accept"), .value = SLICE("application/json")},
				 {.name = SLICE("User-Agent"), .value = SLICE("cage/" CAGE_VERSION)},
				 {.name = r->field, .value = r->value}};
	struct message m = {.method = r->form.ptr ? SLICE("POST") : SLICE("GET"), .fields = fields, .n_fields = 3};
	struct h1_out out = {.target = target_send(&r->url, &c->arena),
			     .host = host_header(&r->url, &c->arena),
			     .framing = r->form.ptr ? BODY_LENGTH : BODY_NONE,
			     .content_length = r->form.len,
			     .declare_length = r->form.ptr != NULL,
			     .close = true};
	size_t room = 1024 + out.target.len + r->value.len;
	char *head = arena_alloc(&c->arena, room);
	struct text t = text_in(head, head ? room : 0);
	h1_write_request(&t, &m, &out);
	if (!text_ok(&t)) {
		fail(c, "can't be asked: there is no memory");
		return;
	}
	c->state = CALL_HEAD;
	stream_cleanse_input(c->stream);
	stream_write_secret(c->stream, text_slice(&t));
	if (r->form.ptr)
		stream_write_secret(c->stream, r->form);
}

static void on_ready(struct stream *s, void *arg)
{
	struct call *c = arg;
	if (verify_fault(c, stream_ssl(s)))
		fail_for_good(c, "showed a certificate that is not to be trusted (see upstream.trust)");
	else
		ask(c);
}

static void on_drained(struct stream *s, void *arg)
{
	(void)s, (void)arg;
}

static const struct stream_cb call_cb = {
	.on_ready = on_ready, .on_data = on_data, .on_drained = on_drained, .on_end = on_end};

/* ---- the way there ---- */

static void on_dialled(void *arg, enum cage_status st, int fd, const struct addr *used)
{
	(void)used;
	struct call *c = arg;
	c->dial = NULL;
	if (st != CAGE_OK) {
		fail(c, "can't be reached");
		return;
	}
	c->stream = stream_new(c->caller->loop, fd, &call_cb, c);
	bool is_tls = c->request->url.scheme == SCHEME_HTTPS;
	SSL *ssl = c->stream && is_tls ? tls_client_new(c->caller->tls, &c->request->url.host) : NULL;
	if (!c->stream || (is_tls && !ssl)) {
		fail(c, "can't be asked: there is no memory");
	} else if (is_tls) {
		c->state = CALL_TLS;
		stream_start_tls(c->stream, ssl, false);
	} else {
		ask(c);
	}
}

static void dial(struct call *c, const struct addr *addrs, size_t n, uint16_t port)
{
	c->state = CALL_DIAL;
	c->dial = dial_start(c->caller->loop, addrs, n, port, on_dialled, c);
	if (!c->dial)
		fail(c, "can't be asked: there is no memory");
}

/* Those that a name may have. */
static size_t vet_all(const struct call *c, uint16_t port, struct addr *addrs, size_t n)
{
	struct vet vet = {.self = c->caller->self, .n_self = c->caller->n_self};
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		enum reason why;
		if (vet_pin(&vet, port, &addrs[i], &why) == 1)
			addrs[kept++] = addrs[i];
	}
	return kept;
}

static void on_resolved(void *arg, enum cage_status st, struct addr *addrs, size_t n)
{
	struct call *c = arg;
	c->resolve = NULL;
	if (st != CAGE_OK) {
		fail(c, "can't be found: its name has no address");
		return;
	}
	n = vet_all(c, c->request->url.port, addrs, n);
	if (n == 0)
		fail_for_good(c, "has an address that nobody is asked at");
	else
		dial(c, addrs, n, c->request->url.port);
}

static void start(struct call *c)
{
	const struct target *url = &c->request->url;
	const struct policy_pin *pin = policy_pin_for(c->caller->policy, &url->host);
	if (url->host.kind == HOST_ADDRESS) {
		dial(c, &url->host.addr, 1, url->port); /* keyvault_token.c says which */
		return;
	}
	if (pin) {
		struct addr addr = pin->addr;
		uint16_t port = pin->port ? pin->port : url->port;
		if (vet_all(c, port, &addr, 1) == 1)
			dial(c, &addr, 1, port);
		else
			fail_for_good(c, "is pinned to a listener of cage itself");
		return;
	}
	c->state = CALL_RESOLVE;
	c->resolve = c->caller->resolver ? resolver_query(c->caller->resolver, url->host.text, on_resolved, c) : NULL;
	if (!c->resolve)
		fail_for_good(c, "can't be found: with upstream.bound it needs a pin in upstream.resolve");
}

static void clean_up(struct call *c, struct event *timer)
{
	resolve_cancel(&c->resolve);
	dial_cancel(&c->dial);
	stream_close(&c->stream);
	event_free(timer);
	arena_cleanse(&c->arena);
	arena_free(&c->arena);
}

struct call_answer call(struct caller *caller, const struct call_request *r)
{
	struct call c = {.caller = caller, .request = r, .gate = {.kind = H1_GATE_RESPONSE}};
	struct timeval limit = loop_ms(LIMIT_KEYVAULT_CALL_MS);
	struct event *timer = evtimer_new(loop_base(caller->loop), on_timeout, &c);
	if (!timer || event_add(timer, &limit) != 0)
		_exit(1);
	arena_init(&c.arena, LIMIT_TXN_ARENA);
	start(&c);
	if (c.state != CALL_OVER)
		loop_run(caller->loop);
	clean_up(&c, timer);
	return c.answer;
}
