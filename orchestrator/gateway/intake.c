/* Connections of the intake, from the handshake to the answer. */
#include "orchestrator/gateway/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/wipe.h"
#include "core/net/tls_client.h"

struct intake {
	struct gateway *gateway;
	SSL_CTX *tls;
	int fd;
	struct listener *listener;
	struct conn *conns; /* the newest first */
	size_t n_conns;
	unsigned char token[SHA256_DIGEST_LENGTH]; /* its hash */
};

struct gateway *conn_gateway(const struct conn *c)
{
	return c->intake->gateway;
}

/* ---- ends ---- */

static void take_out(struct conn *c)
{
	struct conn **at = &c->intake->conns;
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	c->intake->n_conns--;
}

static void conn_free(struct conn *c)
{
	take_out(c);
	if (c->change)
		change_forget(c->change);
	arena_cleanse(&c->arena);
	arena_free(&c->arena);
	wipe_free(c->body);
	free(c);
}

static void conn_close(struct conn *c)
{
	stream_close(&c->stream);
	conn_free(c);
}

void conn_answer(struct conn *c, int status, const char *type, const char *fields, struct slice body)
{
	char head[1024];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %d \r\nContent-Type: %s\r\nContent-Length: %zu\r\n%sCache-Control: no-store\r\n"
			 "Connection: close\r\n\r\n",
			 status, type, body.len, fields);
	if (status == 204)
		n = snprintf(head, sizeof(head), "HTTP/1.1 204 \r\nConnection: close\r\n\r\n");
	stream_write(c->stream, slice_of(head, (size_t)n));
	if (status != 204)
		stream_write(c->stream, body);
	c->state = CONN_OVER;
	stream_finish(&c->stream);
	conn_free(c);
}

void conn_answer_json(struct conn *c, int status, const char *type, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	json_decref(value);
	if (text)
		conn_answer(c, status, type, "", slice_str(text));
	else
		conn_answer(c, 503, "text/plain", "", SLICE("no memory\n"));
	free(text);
}

void conn_problem(struct conn *c, int status, const char *detail)
{
	conn_answer_json(c, status, "application/problem+json",
			 json_pack("{s:i, s:s}", "status", status, "detail", detail));
}

/* ---- changes ---- */

static json_t *list_of(const struct words *w)
{
	json_t *list = json_array();
	for (size_t i = 0; i < w->n && list; i++)
		json_array_append_new(list, json_string(w->list[i]));
	return list;
}

static void on_changed(void *arg, const struct change *change)
{
	struct conn *c = arg;
	c->change = NULL;
	if (change->status == 204)
		conn_answer(c, 204, "", "", SLICE_NONE);
	else if (change->status < 300)
		conn_answer_json(
			c, change->status, "application/json",
			json_pack("{s:s, s:O, s:s}", "id", change->id, "env", change->env, "log", change->log));
	else
		conn_answer_json(c, change->status, "application/problem+json",
				 json_pack("{s:i, s:s, s:o}", "status", change->status, "detail", change->detail,
					   "errors", list_of(&change->errors)));
}

void conn_await(struct conn *c, struct change *change)
{
	change->done = on_changed;
	change->arg = c;
	c->change = change;
	c->state = CONN_WAITS;
	stream_set_deadline(c->stream, LIMIT_GATEWAY_ANSWER_MS);
	if (change_ask(change))
		return; /* it may be answered, and gone, already */
	c->change = NULL;
	change_free(change);
	conn_problem(c, 503, "too many changes wait already");
}

/* ---- requests ---- */

static bool token_is_good(const struct conn *c)
{
	unsigned char given[SHA256_DIGEST_LENGTH];
	const struct field *f = message_field(&c->head, SLICE("authorization"));
	if (!f || f->value.len < 7 || !slice_ieq(slice_head(f->value, 7), SLICE("Bearer ")))
		return false;
	struct slice token = slice_from(f->value, 7);
	SHA256((const unsigned char *)token.ptr, token.len, given);
	return slice_eq_secret(slice_of(given, sizeof(given)), slice_of(c->intake->token, sizeof(c->intake->token)));
}

static void take_head(struct conn *c, struct slice head)
{
	struct h1_error why = {0};
	struct slice copy = arena_dup(&c->arena, head);
	stream_consume(c->stream, head.len);
	if (!copy.ptr || h1_parse_request(copy, &c->arena, &c->head, &why) != CAGE_OK) {
		conn_problem(c, 400, why.what ? why.what : "the head can't be read");
		return;
	}
	c->is_known = token_is_good(c);
	if (!c->is_known && !slice_eq(c->head.target, SLICE("/v1/healthz"))) {
		conn_problem(c, 401, "a token is needed: Authorization: Bearer TOKEN");
		return;
	}
	if (c->head.has_content_length && c->head.content_length > LIMIT_GATEWAY_BODY) {
		conn_problem(c, 413, "the body is too large");
		return;
	}
	h1_body_init(&c->framing, &c->head);
	c->state = CONN_BODY;
	if (c->head.expect_continue && !h1_body_is_done(&c->framing))
		stream_write(c->stream, SLICE("HTTP/1.1 100 Continue\r\n\r\n"));
}

/* False: nothing more can be done with what is there, or the connection is gone. */
static bool read_head(struct conn *c)
{
	size_t len = 0;
	struct slice input = stream_input(c->stream);
	enum cage_status st = input.len > 0 ? h1_gate(&c->gate, input, &len) : CAGE_AGAIN;
	if (st == CAGE_OK && len <= LIMIT_GATEWAY_HEAD) {
		take_head(c, slice_head(input, len));
		return true;
	}
	if (st == CAGE_AGAIN && input.len <= LIMIT_GATEWAY_HEAD)
		return false;
	if (st == CAGE_EPROTO)
		conn_problem(c, 400, "the head is malformed");
	else
		conn_problem(c, 431, "the head is too large");
	return false;
}

static bool keep(struct conn *c, struct slice data)
{
	if (!c->body)
		c->body = calloc(1, LIMIT_GATEWAY_BODY + 1);
	if (!c->body || data.len > LIMIT_GATEWAY_BODY - c->len)
		return false;
	memcpy(c->body + c->len, data.ptr, data.len);
	c->len += data.len;
	return true;
}

static bool read_body(struct conn *c)
{
	size_t used = 0;
	struct slice data = SLICE_NONE, input = stream_input(c->stream);
	enum cage_status st =
		h1_body_is_done(&c->framing) ? CAGE_EOF : h1_body_feed(&c->framing, input, &c->arena, &used, &data);
	if (st != CAGE_OK && st != CAGE_AGAIN && st != CAGE_EOF) {
		conn_problem(c, 400, "the body is malformed");
		return false;
	}
	if (data.len > 0 && !keep(c, data)) {
		conn_problem(c, 413, "the body is too large");
		return false;
	}
	stream_consume(c->stream, used);
	if (st == CAGE_EOF) {
		api_handle(c);
		return false;
	}
	return st == CAGE_OK || used > 0;
}

static bool is_there(const struct intake *in, const struct conn *c)
{
	for (const struct conn *at = in->conns; at; at = at->next)
		if (at == c)
			return true;
	return false;
}

static void on_data(struct stream *s, void *arg)
{
	struct conn *c = arg;
	struct intake *in = c->intake;
	bool more = true;
	(void)s;
	while (more && is_there(in, c)) {
		if (c->state == CONN_HEAD)
			more = read_head(c);
		else if (c->state == CONN_BODY)
			more = read_body(c);
		else
			more = false;
	}
}

/* ---- connections ---- */

static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s, (void)why;
	conn_close(arg); /* who ends it does not wait for an answer any more */
}

static void on_nothing(struct stream *s, void *arg)
{
	(void)s, (void)arg;
}

static const struct stream_cb callbacks = {
	.on_ready = on_nothing, .on_data = on_data, .on_drained = on_nothing, .on_end = on_end};

/* Who has shown no token can't keep anybody out who has one. */
static bool make_place(struct intake *in)
{
	struct conn *oldest = NULL;
	if (in->n_conns < LIMIT_GATEWAY_CONNS)
		return true;
	for (struct conn *c = in->conns; c; c = c->next)
		if (!c->is_known)
			oldest = c;
	if (oldest)
		conn_close(oldest);
	return oldest != NULL;
}

static void on_accept(void *arg, int fd)
{
	struct intake *in = arg;
	struct conn *c = make_place(in) ? calloc(1, sizeof(*c)) : NULL;
	SSL *ssl = c ? SSL_new(in->tls) : NULL;
	if (!ssl) {
		free(c);
		close(fd);
		return;
	}
	*c = (struct conn){.intake = in, .gate = {.kind = H1_GATE_REQUEST}, .next = in->conns};
	c->stream = stream_new(in->gateway->loop, fd, &callbacks, c);
	if (!c->stream) {
		SSL_free(ssl);
		free(c);
		return;
	}
	arena_init(&c->arena, LIMIT_GATEWAY_ARENA);
	in->conns = c;
	in->n_conns++;
	stream_cleanse_input(c->stream);
	stream_set_deadline(c->stream, LIMIT_GATEWAY_ASK_MS);
	stream_start_tls(c->stream, ssl, true);
}

/* ---- the intake ---- */

static bool read_token(struct intake *in, const char *path)
{
	char text[LIMIT_GATEWAY_TOKEN];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
	if (fd >= 0)
		close(fd);
	struct slice token = slice_of(text, n > 0 ? (size_t)n : 0);
	while (token.len > 0 && (token.ptr[token.len - 1] == '\n' || token.ptr[token.len - 1] == '\r'))
		token.len--;
	const bool ok = token.len >= LIMIT_GATEWAY_TOKEN_MIN && token.len < sizeof(text);
	if (ok)
		SHA256((const unsigned char *)token.ptr, token.len, in->token);
	else
		say("%s: expected a token of %d to %d characters", path, LIMIT_GATEWAY_TOKEN_MIN,
		    LIMIT_GATEWAY_TOKEN - 1);
	explicit_bzero(text, sizeof(text));
	return ok;
}

static SSL_CTX *open_tls(const struct gateway_options *o)
{
	SSL_CTX *ctx = tls_ctx_new(TLS_server_method());
	if (!ctx)
		return NULL;
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_early_data(ctx, 0);
	if (SSL_CTX_set_num_tickets(ctx, 0) == 1 && SSL_CTX_use_certificate_chain_file(ctx, o->cert) == 1 &&
	    SSL_CTX_use_PrivateKey_file(ctx, o->key, SSL_FILETYPE_PEM) == 1 && SSL_CTX_check_private_key(ctx) == 1)
		return ctx;
	say("%s, %s: no certificate and the key that belongs to it", o->cert, o->key);
	SSL_CTX_free(ctx);
	return NULL;
}

static void say_where(const struct intake *in)
{
	char text[256];
	struct listen_spec bound = in->gateway->options->at;
	listen_address(in->fd, &bound.at);
	listen_spec_format(&bound, text, sizeof(text));
	say("intake on %s", text);
}

bool intake_open(struct gateway *g)
{
	struct intake *in = calloc(1, sizeof(*in));
	if (!in)
		return false;
	g->intake = in;
	in->gateway = g;
	in->fd = -1;
	in->tls = open_tls(g->options);
	if (!in->tls || !read_token(in, g->options->token))
		return false;
	in->fd = listen_open(&g->options->at, false);
	if (in->fd < 0) {
		say("--intake: %s", strerror(errno));
		return false;
	}
	in->listener = listener_new(g->loop, in->fd, on_accept, in);
	if (!in->listener)
		return false;
	say_where(in);
	say("ready");
	return true;
}

void intake_close(struct gateway *g)
{
	struct intake *in = g->intake;
	if (!in)
		return;
	for (struct conn *c = in->conns, *next; c; c = next) {
		next = c->next;
		conn_close(c);
	}
	if (in->listener)
		listener_free(&in->listener);
	if (in->fd >= 0)
		close(in->fd);
	SSL_CTX_free(in->tls);
	free(in);
	g->intake = NULL;
}
