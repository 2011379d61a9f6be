/* Each exchange belongs to one server at a time. A connection that fails hands its exchanges on: to the same server again if it
 * had answered before, since servers close connections as they like, and else to the next. */
#include "dns/dot.h"

#include <stdlib.h>

#include "core/base/limits.h"
#include "core/net/dial.h"
#include "core/net/stream.h"
#include "core/net/tls_client.h"
#include "dns/octets.h"

#define SLOTS_MASK (LIMIT_DNS_HELD - 1)

enum server_state { SERVER_CLOSED, SERVER_DIALLING, SERVER_HANDSHAKE, SERVER_OPEN };

struct server {
	struct dns_dot *owner;
	enum server_state state;
	struct addr addr;
	uint16_t port;
	struct slice name;
	char name_text[LIMIT_HOST];
	struct dial *dial;
	struct stream *stream;
	struct dns_exchange *exchanges;
	uint64_t heard_us; /* when it said something last */
	bool has_answered; /* on this connection */
};

struct dns_dot {
	struct loop *loop;
	SSL_CTX *ctx;
	size_t first, n; /* server to ask first, and how many there are */
	uint16_t next_id;
	bool is_closing;
	struct dns_exchange *slots[LIMIT_DNS_HELD]; /* by the low bits of the id on the connection */
	struct server servers[LIMIT_DNS_SERVERS];
};

static void exchange_unlink(struct dns_exchange *x)
{
	*x->link = x->next;
	if (x->next)
		x->next->link = x->link;
}

static void exchange_link(struct dns_exchange *x, struct dns_exchange **list)
{
	x->next = *list;
	x->link = list;
	if (x->next)
		x->next->link = &x->next;
	*list = x;
}

/* An id that no other exchange has, and that was not used for long. */
static void take_slot(struct dns_dot *d, struct dns_exchange *x)
{
	while (d->slots[d->next_id & SLOTS_MASK])
		d->next_id++;
	x->id = d->next_id++;
	d->slots[x->id & SLOTS_MASK] = x;
}

static void finish(struct dns_dot *d, struct dns_exchange *x, enum cage_status st, struct slice response)
{
	d->slots[x->id & SLOTS_MASK] = NULL;
	x->done(x, st, response);
}

static void write_message(struct server *s, const struct dns_exchange *x)
{
	char head[4];
	octets_put16(head, (uint16_t)x->packet.len);
	octets_put16(head + 2, x->id);
	stream_write(s->stream, slice_of(head, sizeof(head)));
	stream_write(s->stream, slice_from(x->packet, 2));
}

static void server_fail(struct server *s, enum cage_status st);
static void server_open(struct server *s);

/* From now on that server's. */
static void assign(struct server *s, struct dns_exchange *x)
{
	x->via = s;
	x->sent_us = loop_now_us(s->owner->loop);
	exchange_link(x, &s->exchanges);
	if (s->state == SERVER_OPEN)
		write_message(s, x);
	else if (s->state == SERVER_CLOSED)
		server_open(s);
}

/* It is in no list. */
static void try_again(struct server *s, struct dns_exchange *x, bool same_server, enum cage_status st)
{
	struct dns_dot *d = s->owner;
	size_t next = ((size_t)(s - d->servers) + (same_server ? 0 : 1)) % d->n;
	if (++x->tries >= LIMIT_DNS_TRIES * d->n || d->is_closing) {
		finish(d, x, st, SLICE_NONE);
		return;
	}
	d->slots[x->id & SLOTS_MASK] = NULL;
	take_slot(d, x);
	assign(&d->servers[next], x);
}

/* For what it is expected to do next. */
static unsigned wait_ms(const struct server *s)
{
	return dns_exchange_wait_ms(s->owner->n, s->state == SERVER_OPEN ? LIMIT_DNS_TRY_MS : LIMIT_DNS_TLS_MS);
}

static void server_close(struct server *s)
{
	dial_cancel(&s->dial);
	if (s->stream)
		stream_close(&s->stream);
	s->state = SERVER_CLOSED;
}

static void server_fail(struct server *s, enum cage_status st)
{
	struct dns_dot *d = s->owner;
	struct dns_exchange *list = s->exchanges, *x;
	bool same_server = s->has_answered;
	server_close(s);
	s->exchanges = NULL;
	if (list)
		list->link = &list;
	if (list && !same_server && s == &d->servers[d->first])
		d->first = (d->first + 1) % d->n;
	while ((x = list) != NULL) {
		exchange_unlink(x);
		try_again(s, x, same_server, st);
	}
}

/* NULL, or the exchange of that server that the message answers. */
static struct dns_exchange *exchange_for(const struct server *s, struct slice message)
{
	uint16_t id = octets_get16(message.ptr);
	struct dns_exchange *x = s->owner->slots[id & SLOTS_MASK];
	return x && x->id == id && x->via == s ? x : NULL;
}

/* An answer to what was handed on meanwhile is late, and nothing more. */
static void on_message(struct server *s, struct slice message)
{
	struct dns_exchange *x = exchange_for(s, message);
	if (!x)
		return;
	s->has_answered = true;
	exchange_unlink(x);
	finish(s->owner, x, CAGE_OK, message);
}

static void on_data(struct stream *stream, void *arg)
{
	struct server *s = arg;
	struct slice in;
	s->heard_us = loop_now_us(s->owner->loop);
	while (s->stream == stream && (in = stream_input(stream)).len >= 2) {
		size_t len = octets_get16(in.ptr);
		if (len < DNS_HEADER) {
			server_fail(s, CAGE_EPROTO);
			return;
		}
		if (in.len < 2 + len)
			return;
		on_message(s, slice_of(in.ptr + 2, len));
		stream_consume(stream, 2 + len);
	}
}

static void on_end(struct stream *stream, enum cage_status why, void *arg)
{
	(void)stream;
	server_fail(arg, why == CAGE_EOF || why == CAGE_TRUNCATED ? CAGE_ESYS : why);
}

static void on_ready(struct stream *stream, void *arg)
{
	struct server *s = arg;
	SSL *ssl = stream_ssl(stream);
	if (SSL_get_verify_result(ssl) != X509_V_OK || tls_chain_fault(SSL_get0_verified_chain(ssl), s->name)) {
		server_fail(s, CAGE_EVERIFY);
		return;
	}
	s->state = SERVER_OPEN;
	stream_set_idle(stream, LIMIT_DNS_TLS_IDLE_MS);
	for (struct dns_exchange *x = s->exchanges; x; x = x->next) {
		x->sent_us = loop_now_us(s->owner->loop);
		write_message(s, x);
	}
}

static void on_drained(struct stream *stream, void *arg)
{
	(void)stream, (void)arg;
}

static const struct stream_cb callbacks = {
	.on_ready = on_ready,
	.on_data = on_data,
	.on_drained = on_drained,
	.on_end = on_end,
};

static SSL *ssl_for(const struct server *s)
{
	struct addr a;
	return tls_verifying_new(s->owner->ctx, s->name, addr_parse(s->name, &a));
}

static void on_dialled(void *arg, enum cage_status st, int fd, const struct addr *used)
{
	(void)used;
	struct server *s = arg;
	s->dial = NULL;
	if (st != CAGE_OK) {
		server_fail(s, st);
		return;
	}
	SSL *ssl = ssl_for(s);
	s->stream = stream_new(s->owner->loop, fd, &callbacks, s);
	if (!ssl || !s->stream) {
		SSL_free(ssl);
		server_fail(s, CAGE_ENOMEM);
		return;
	}
	s->state = SERVER_HANDSHAKE;
	stream_start_tls(s->stream, ssl, false);
	stream_set_deadline(s->stream, wait_ms(s));
}

static void server_open(struct server *s)
{
	s->has_answered = false;
	s->dial = dial_start(s->owner->loop, &s->addr, 1, s->port, on_dialled, s);
	if (s->dial)
		s->state = SERVER_DIALLING;
	else
		server_fail(s, CAGE_ENOMEM);
}

void dns_dot_send(struct dns_dot *d, struct dns_exchange *x)
{
	x->tries = 0;
	take_slot(d, x);
	assign(&d->servers[d->first], x);
}

/* A server that has said nothing since it was asked is given up with all that it was asked; of one that talks, only what it does
 * not answer is taken elsewhere. */
static void give_up_late(struct server *s)
{
	uint64_t now_us = loop_now_us(s->owner->loop);
	struct dns_exchange *x = s->exchanges;
	while (x) {
		struct dns_exchange *next = x->next;
		if (x->sent_us + (uint64_t)wait_ms(s) * 1000 <= now_us) {
			if (s->heard_us < x->sent_us) {
				s->has_answered = false;
				server_fail(s, CAGE_ETIMEOUT);
				return;
			}
			exchange_unlink(x);
			try_again(s, x, false, CAGE_ETIMEOUT);
		}
		x = next;
	}
}

void dns_dot_cancel(struct dns_dot *d, struct dns_exchange *x)
{
	exchange_unlink(x);
	d->slots[x->id & SLOTS_MASK] = NULL;
}

void dns_dot_tick(struct dns_dot *d)
{
	for (size_t i = 0; i < d->n; i++)
		give_up_late(&d->servers[i]);
}

static void server_init(struct server *s, struct dns_dot *d, const struct dns_server_spec *spec)
{
	size_t len = spec->tls_name.len < LIMIT_HOST ? spec->tls_name.len : LIMIT_HOST;
	s->owner = d;
	s->addr = spec->addr;
	s->port = spec->port;
	memcpy(s->name_text, spec->tls_name.ptr, len);
	s->name = slice_of(s->name_text, len);
}

struct dns_dot *dns_dot_new(struct loop *l, const struct dns_server_spec *servers, size_t n, const struct trust *trust)
{
	static const unsigned char alpn[] = "\x03"
					    "dot";
	struct dns_dot *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->loop = l;
	d->n = n;
	for (size_t i = 0; i < n; i++)
		server_init(&d->servers[i], d, &servers[i]);
	d->ctx = tls_verifying_ctx_new(trust, slice_of(alpn, sizeof(alpn) - 1));
	if (!d->ctx)
		dns_dot_free(&d);
	return d;
}

void dns_dot_free(struct dns_dot **dp)
{
	struct dns_dot *d = *dp;
	if (!d)
		return;
	*dp = NULL;
	d->is_closing = true;
	for (size_t i = 0; i < d->n; i++)
		server_fail(&d->servers[i], CAGE_ESYS);
	SSL_CTX_free(d->ctx);
	free(d);
}
