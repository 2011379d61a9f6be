/* Verifies chains the way that a connection to a server does, at a time of the caller's choice: with the store, the
 * settings and the expected name that proxy/tls.c makes. Driven by tests/integration/test_corpus_x509.py.
 *
 * In: a line "HOST SECONDS TRUST CHAIN" (SECONDS since 1970, 0 for now), then that many bytes of PEM for what is
 * trusted and for what the server sends, its own certificate first. Out: "accept", or "reject" and why. */
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/limits.h"
#include "proxy/tls.h"

#define ROOM MIB(4)

struct test_case {
	char host[LIMIT_HOST];
	size_t host_len;
	uint64_t seconds;
	struct slice trust, chain;
};

static int ignore_session(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl, (void)session;
	return 0;
}

static STACK_OF(X509) * parse_chain(struct slice pem)
{
	STACK_OF(X509) *chain = sk_X509_new_null();
	BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
	X509 *x;
	while (bio && chain && (x = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL)
		sk_X509_push(chain, x);
	BIO_free(bio);
	return chain;
}

/* The steps with which OpenSSL's handshake verifies a server; then the check of our own that follows it. */
static const char *verify(SSL *ssl, STACK_OF(X509) * chain, X509_STORE_CTX *ctx, struct slice host)
{
	X509 *leaf = sk_X509_value(chain, 0);
	if (!leaf)
		return "the certificate can't be parsed";
	X509_STORE *store = SSL_CTX_get_cert_store(SSL_get_SSL_CTX(ssl));
	if (X509_STORE_CTX_init(ctx, store, leaf, chain) != 1 || X509_STORE_CTX_set_default(ctx, "ssl_server") != 1)
		return "no context";
	X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(ctx);
	X509_VERIFY_PARAM_set_auth_level(param, SSL_get_security_level(ssl));
	if (X509_VERIFY_PARAM_set1(param, SSL_get0_param(ssl)) != 1)
		return "no parameters";
	if (X509_verify_cert(ctx) != 1)
		return X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx));
	return tls_chain_fault(X509_STORE_CTX_get0_chain(ctx), host);
}

static const char *verify_case(SSL *ssl, const struct test_case *c)
{
	STACK_OF(X509) *chain = parse_chain(c->chain);
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	if (c->seconds != 0)
		X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl), (time_t)c->seconds);
	const char *why = chain && ctx ? verify(ssl, chain, ctx, slice_of(c->host, c->host_len)) : "no memory";
	X509_STORE_CTX_free(ctx);
	sk_X509_pop_free(chain, X509_free);
	return why;
}

static const char *run_case(const struct test_case *c, struct arena *arena)
{
	struct policy_trust trust = {.pems = (struct slice[]){c->trust}, .n_pems = 1};
	struct host host;
	const char *why;
	if (host_parse(slice_of(c->host, c->host_len), arena, &host, &why) != CAGE_OK)
		return why;
	SSL_CTX *ctx = tls_client_ctx_new(&trust, ignore_session);
	SSL *ssl = ctx ? tls_client_new(ctx, &host) : NULL;
	why = ssl ? verify_case(ssl, c) : "no TLS context";
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return why;
}

static bool cut_number(struct slice *rest, uint64_t *out)
{
	return slice_to_u64(slice_cut(rest, ' '), INT64_MAX, out);
}

static bool parse_header(struct slice line, struct test_case *c, uint64_t *n_trust, uint64_t *n_chain)
{
	struct slice host = slice_cut(&line, ' ');
	if (host.len == 0 || host.len > LIMIT_HOST)
		return false;
	memcpy(c->host, host.ptr, host.len);
	c->host_len = host.len;
	return cut_number(&line, &c->seconds) && cut_number(&line, n_trust) && cut_number(&line, n_chain);
}

/* False at the end of the input. */
static bool read_case(struct test_case *c, char *room)
{
	char line[LIMIT_HOST + 80];
	uint64_t n_trust, n_chain;
	if (!fgets(line, sizeof(line), stdin))
		return false;
	if (!parse_header(slice_of(line, strcspn(line, "\n")), c, &n_trust, &n_chain))
		return false;
	if (n_trust > ROOM || n_chain > ROOM - n_trust || fread(room, 1, n_trust + n_chain, stdin) != n_trust + n_chain)
		return false;
	c->trust = slice_of(room, n_trust);
	c->chain = slice_of(room + n_trust, n_chain);
	return true;
}

int main(void)
{
	struct test_case c;
	char *room = malloc(ROOM);
	while (room && read_case(&c, room)) {
		struct arena arena;
		arena_init(&arena, KIB(4));
		const char *why = run_case(&c, &arena);
		printf("%s%s\n", why ? "reject " : "accept", why ? why : "");
		arena_free(&arena);
	}
	free(room);
	return 0;
}
