/* Captured connections (THREATS T09, T11, T36): the client believes that it speaks to its server, so nobody says where
 * to. The name is what the first bytes say, SNI or Host, and the port is that of the original destination. With both it
 * goes on as if it had asked for a CONNECT. The original address itself is the target only where there is no name and a
 * rule lists that address: else an agent could put any address behind a name that is allowed. An address that cage-dns has
 * given for a name (dns.mode: synthetic) is that name, and what the first bytes say must agree with it.
 *
 * The first bytes are looked at and left where they are, for whoever serves them then. */
#include <openssl/err.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/net/original.h"
#include "proxy/bindings.h"
#include "proxy/conn.h"
#include "proxy/txn.h"

struct captured {
	struct addr_port to; /* the original destination */
	/* Reads the ClientHello ahead of the real handshake, by the same code, so that both see the same name. */
	SSL *peek;
	size_t fed;             /* bytes of the input that it was given */
	enum cage_status found; /* CAGE_AGAIN: no whole hello yet; CAGE_EOF: no name in it; CAGE_EPROTO: a bad one */
	struct host host;       /* with CAGE_OK */
	char text[LIMIT_HOST];  /* the host's bytes */
};

bool conn_captured_begin(struct conn *c, int fd)
{
	c->captured = calloc(1, sizeof(*c->captured));
	if (!c->captured)
		return false;
	c->captured->found = CAGE_AGAIN;
	return original_destination(fd, &c->captured->to);
}

void conn_captured_free(struct conn *c)
{
	if (!c->captured)
		return;
	SSL_free(c->captured->peek);
	free(c->captured);
	c->captured = NULL;
}

/* ---- where to ---- */

#define HOST_ROOM (LIMIT_HOST + 3)

/* The host as it stands in the target of a CONNECT. */
static struct slice host_text(const struct host *host, char room[HOST_ROOM])
{
	struct text t = text_in(room, HOST_ROOM);
	bool bracketed = host->kind == HOST_ADDRESS && host->addr.family == ADDR_V6;
	if (bracketed)
		text_put_char(&t, '[');
	text_put(&t, host->text);
	if (bracketed)
		text_put_char(&t, ']');
	return text_slice(&t);
}

static void connect_to(struct conn *c, const struct host *host)
{
	char room[HOST_ROOM];
	struct slice text = host_text(host, room);
	uint16_t port = c->captured->to.port;
	conn_captured_free(c);
	txn_connect(c, text, port);
}

/* ---- addresses that stand for a name ---- */

static bool is_of_pool(const struct conn *c)
{
	const struct policy_dns *dns = &c->worker->current[0]->policy->dns;
	return dns->mode == DNS_SYNTHETIC && addr_range_contains(&dns->pool, &c->captured->to.addr);
}

/* Does the name that the client says agree with where it goes? */
static enum reason check_name(struct conn *c, const struct host *said)
{
	if (!is_of_pool(c))
		return REASON_NONE;
	struct slice name = bindings_name(c->worker->bindings, &c->captured->to.addr);
	if (name.len == 0)
		return REASON_NAME_UNBOUND;
	return said->kind == HOST_NAME && slice_eq(said->text, name) ? REASON_NONE : REASON_AUTHORITY_MISMATCH;
}

/* REASON_NONE: it goes there. */
static enum reason connect_to_given(struct conn *c)
{
	struct slice name = bindings_name(c->worker->bindings, &c->captured->to.addr);
	struct host host = {.kind = HOST_NAME, .text = name};
	if (name.len == 0)
		return REASON_NAME_UNBOUND;
	connect_to(c, &host);
	return REASON_NONE;
}

/* ---- the original destination ---- */

static struct host original_host(const struct conn *c, char room[ADDR_TEXT])
{
	struct host host = {.kind = HOST_ADDRESS, .addr = c->captured->to.addr};
	host.text = addr_format(&host.addr, room);
	return host;
}

/* Takes the original destination for what the connection is about, for the log and for a leaf. */
static void bind_original(struct conn *c)
{
	char room[ADDR_TEXT];
	struct host host = original_host(c, room);
	conn_bind(c, &host, c->captured->to.port);
}

/* The same for a refusal: when names disagree, the one that the destination stands for says more than its address. */
static void bind_refused(struct conn *c, enum reason reason)
{
	struct slice name = SLICE_NONE;
	if (reason == REASON_AUTHORITY_MISMATCH && is_of_pool(c))
		name = bindings_name(c->worker->bindings, &c->captured->to.addr);
	struct host host = {.kind = HOST_NAME, .text = name};
	if (name.len > 0)
		conn_bind(c, &host, c->captured->to.port);
	else
		bind_original(c);
}

void conn_captured_ended(struct conn *c, enum cage_status why)
{
	bind_original(c);
	conn_ended_early(c, why);
}

/* ---- without a name ---- */

static bool is_listed(const struct conn *c, const struct host *host)
{
	const struct policy *p = c->worker->current[0]->policy;
	struct policy_verdict v = policy_match_connect(p, host, c->captured->to.port, clock_wall_s());
	return v.reason != REASON_HOST_NOT_ALLOWED;
}

/* Goes to the name that the original address stands for, or to that itself if a rule lists it: then REASON_NONE. */
static enum reason connect_without_name(struct conn *c, enum reason otherwise)
{
	char room[ADDR_TEXT];
	if (is_of_pool(c))
		return connect_to_given(c);
	struct host host = original_host(c, room);
	if (!is_listed(c, &host))
		return otherwise;
	connect_to(c, &host);
	return REASON_NONE;
}

/* The client is told inside TLS, with a leaf for the address. */
static void refuse_inside(struct conn *c, enum reason reason)
{
	uint64_t txn = worker_new_id(c->worker);
	bind_refused(c, reason);
	conn_log(c, DECISION_BLOCK, reason, STAGE_CONNECT, txn);
	conn_refuse_later(c, reason, txn, SLICE_NONE);
	conn_captured_free(c);
	conn_sniff(c);
}

static void refuse_plain(struct conn *c, enum reason reason)
{
	bind_refused(c, reason);
	conn_refuse(c, reason, STAGE_CONNECT);
}

/* What begins like TLS and is not: there is nothing that the client would understand. */
static void refuse_mute(struct conn *c, enum reason reason)
{
	bind_original(c);
	conn_log(c, DECISION_BLOCK, reason, STAGE_CONNECT, worker_new_id(c->worker));
	conn_finish(c);
}

/* ---- TLS ---- */

static enum cage_status keep_name(struct captured *cap, struct slice sni)
{
	char room[1024] = {0};
	struct arena arena;
	const char *why;
	arena_init_region(&arena, room, sizeof(room));
	if (host_parse(sni, &arena, &cap->host, &why) != CAGE_OK)
		return CAGE_EPROTO;
	memcpy(cap->text, cap->host.text.ptr, cap->host.text.len);
	cap->host.text.ptr = cap->text;
	return CAGE_OK;
}

int conn_captured_hello(struct conn *c, SSL *ssl)
{
	struct slice sni;
	enum cage_status st = tls_hello_name(ssl, &sni);
	c->captured->found = st == CAGE_OK ? keep_name(c->captured, sni) : st;
	return SSL_CLIENT_HELLO_RETRY; /* no more than that: the handshake itself is another's */
}

static bool open_peek(struct conn *c)
{
	struct captured *cap = c->captured;
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_null());
	cap->peek = SSL_new(c->worker->server_ctx);
	if (!in || !out || !cap->peek) {
		BIO_free(in);
		BIO_free(out);
		return false;
	}
	SSL_set_bio(cap->peek, in, out);
	SSL_set_app_data(cap->peek, c);
	SSL_set_accept_state(cap->peek);
	return true;
}

/* Gives what is new of the input to the peek. CAGE_OK: the hello was seen; CAGE_AGAIN; CAGE_EPROTO: there will be none.
 */
static enum cage_status feed_peek(struct captured *cap, struct slice input)
{
	struct slice fresh = slice_from(input, cap->fed);
	if (fresh.len > 0 && BIO_write(SSL_get_rbio(cap->peek), fresh.ptr, (int)fresh.len) != (int)fresh.len)
		return CAGE_ENOMEM;
	cap->fed = input.len;
	ERR_clear_error();
	int error = SSL_get_error(cap->peek, SSL_do_handshake(cap->peek));
	ERR_clear_error();
	if (cap->found != CAGE_AGAIN)
		return CAGE_OK;
	return error == SSL_ERROR_WANT_READ ? CAGE_AGAIN : CAGE_EPROTO;
}

static void take_hello(struct conn *c)
{
	const struct captured *cap = c->captured;
	enum reason reason = REASON_TARGET_MALFORMED;
	if (cap->found == CAGE_EOF) {
		reason = connect_without_name(c, REASON_AUTHORITY_MISSING);
	} else if (cap->found == CAGE_OK) {
		reason = check_name(c, &cap->host);
		if (reason == REASON_NONE)
			connect_to(c, &cap->host);
	}
	if (reason != REASON_NONE)
		refuse_inside(c, reason);
}

static void read_hello(struct conn *c, struct slice input)
{
	struct captured *cap = c->captured;
	if (!cap->peek && !open_peek(c)) {
		refuse_mute(c, REASON_INTERNAL);
		return;
	}
	enum cage_status st = feed_peek(cap, slice_head(input, LIMIT_HELLO));
	if (st == CAGE_OK)
		take_hello(c);
	else if (st != CAGE_AGAIN)
		refuse_mute(c, st == CAGE_ENOMEM ? REASON_INTERNAL : REASON_PROTOCOL_UNKNOWN);
	else if (input.len >= LIMIT_HELLO)
		refuse_mute(c, REASON_HEAD_TOO_LARGE);
}

/* ---- HTTP ---- */

/* The host that the head names. The port that it may have is compared with the connection's when the request is served.
 */
static enum reason find_host(struct slice head, struct arena *arena, struct host *host)
{
	struct message m;
	struct h1_error err = {REASON_INTERNAL, NULL};
	uint16_t port;
	const char *why;
	if (h1_parse_request(head, arena, &m, &err) != CAGE_OK)
		return err.reason;
	if (!m.has_host)
		return REASON_AUTHORITY_MISSING;
	return authority_parse(m.host, 80, arena, host, &port, &why) == CAGE_OK ? REASON_NONE : REASON_TARGET_MALFORMED;
}

static void take_head(struct conn *c, struct slice head)
{
	struct arena arena;
	struct host host = {.kind = HOST_NAME};
	arena_init(&arena, LIMIT_TXN_ARENA);
	enum reason reason = find_host(head, &arena, &host);
	if (reason == REASON_AUTHORITY_MISSING) {
		reason = connect_without_name(c, reason);
	} else if (reason == REASON_NONE) {
		reason = check_name(c, &host);
		if (reason == REASON_NONE)
			connect_to(c, &host);
	}
	if (reason != REASON_NONE)
		refuse_plain(c, reason);
	arena_free(&arena);
}

static void read_first_head(struct conn *c, struct slice input)
{
	size_t len = 0;
	enum cage_status st = h1_gate(&c->gate, input, &len);
	if (st == CAGE_AGAIN)
		return;
	c->gate = (struct h1_gate){.kind = H1_GATE_REQUEST}; /* who serves it looks at all of it again */
	if (st == CAGE_OK) {
		take_head(c, slice_head(input, len));
		return;
	}
	enum reason reason =
		st == CAGE_ELIMIT ? REASON_HEAD_TOO_LARGE : connect_without_name(c, REASON_PROTOCOL_UNKNOWN);
	if (reason != REASON_NONE)
		refuse_plain(c, reason);
}

/* ---- both ---- */

void conn_captured_look(struct conn *c)
{
	struct slice input = stream_input(c->down);
	if (worker_must_wait_for_log(c->worker))
		return;
	if (conn_has_hello(c))
		read_hello(c, input);
	else if (input.len > 0)
		read_first_head(c, input);
	if (c->state == CONN_CAPTURED && stream_has_ended(c->down))
		conn_captured_ended(c, CAGE_EOF);
}
