/* The intake as a whole: its certificate, its token, and who comes in. */
#include "orchestrator/gateway/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/net/tls_client.h"
#include "orchestrator/gateway/pair.h"

/* ---- who comes ---- */

static struct conn *oldest(const struct intake *in, enum conn_state state)
{
	struct conn *found = NULL;
	for (struct conn *c = in->conns; c; c = c->next)
		if (c->state == state)
			found = c;
	return found;
}

/* Who has shown no token, and stays, can't keep anybody out who has one. Many that come faster than one of these can show it do. */
static bool make_place(struct intake *in)
{
	if (in->n_conns < LIMIT_GATEWAY_CONNS)
		return true;
	struct conn *c = oldest(in, CONN_DISMISSED);
	if (!c)
		c = oldest(in, CONN_STRANGER);
	if (!c)
		return false;
	conn_close(c);
	return true;
}

static void on_accept(void *arg, int fd)
{
	struct intake *in = arg;
	SSL *ssl = make_place(in) ? SSL_new(in->tls) : NULL;
	if (ssl)
		conn_open(in, fd, ssl);
	else
		close(fd);
}

/* ---- its token ---- */

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

/* ---- its certificate ---- */

static bool can_read(const char *option, const char *path)
{
	if (access(path, R_OK) == 0)
		return true;
	say("%s %s: it can't be read: %s", option, path, strerror(errno));
	return false;
}

static bool use_pair(SSL_CTX *ctx, const char *cert, const char *key)
{
	if (!can_read("--intake-cert", cert) || !can_read("--intake-key", key))
		return false;
	switch (pair_use(ctx, cert, key)) {
	case PAIR_GOOD:
		return true;
	case PAIR_NO_CERTIFICATE:
		say("--intake-cert %s: no certificate in PEM form: give the intake's own, and those above it behind it",
		    cert);
		break;
	case PAIR_OTHER_KEY:
		say("--intake-key %s: it is not the key of the first certificate in %s: give the one that this was "
		    "made for",
		    key, cert);
		break;
	case PAIR_NO_KEY:
		say("--intake-key %s: no private key in PEM form without a password: give the one of %s", key, cert);
		break;
	}
	return false;
}

static SSL_CTX *open_tls(const struct gateway_options *o)
{
	SSL_CTX *ctx = tls_ctx_new(TLS_server_method());
	if (!ctx)
		return NULL;
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_early_data(ctx, 0);
	if (SSL_CTX_set_num_tickets(ctx, 0) == 1 && use_pair(ctx, o->cert, o->key))
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

/* ---- all of it ---- */

/* Where it is, as it is bound: that tells the port where 0 was asked for. */
static bool tell_where(struct gateway *g, int fd)
{
	struct listen_spec bound = g->options->at;
	if (!listen_address(fd, &bound.at))
		return false;
	listen_spec_format(&bound, g->intake_at, sizeof(g->intake_at));
	return true;
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
	if (in->fd >= 0 && tell_where(g, in->fd))
		return true;
	say("--intake: %s", strerror(errno));
	return false;
}

bool intake_serve(struct gateway *g)
{
	struct intake *in = g->intake;
	in->listener = listener_new(g->loop, in->fd, on_accept, in);
	if (!in->listener)
		return false;
	say("intake on %s", g->intake_at);
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
