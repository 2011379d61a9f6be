/* Contexts of both sides, on top of core/net/tls_client.c, and what a ClientHello says. */
#include "proxy/tls.h"

#include <openssl/evp.h>

static const unsigned char alpn_h1[] = "\x08http/1.1";
static const unsigned char alpn_both[] = "\x02h2\x08http/1.1";
static const unsigned char alpn_clients[] = "\x02h2\x08http/1.1\x08http/1.0"; /* the first that both know */

/* A client that speaks only something else must hear so now, not from a parser later. */
static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
		       unsigned in_len, void *arg)
{
	(void)ssl, (void)arg;
	unsigned char *chosen;
	if (SSL_select_next_proto(&chosen, out_len, alpn_clients, sizeof(alpn_clients) - 1, in, in_len) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

SSL_CTX *tls_server_ctx_new(const unsigned char ticket_keys[TLS_TICKET_KEYS], SSL_client_hello_cb_fn hello_cb,
			    void *arg)
{
	SSL_CTX *ctx = tls_ctx_new(TLS_server_method());
	unsigned char keys[TLS_TICKET_KEYS];
	if (!ctx)
		return NULL;
	memcpy(keys, ticket_keys, sizeof(keys));
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets only: no memory per session */
	SSL_CTX_set_client_hello_cb(ctx, hello_cb, arg);
	SSL_CTX_set_alpn_select_cb(ctx, select_alpn, NULL);
	SSL_CTX_set_max_early_data(ctx, 0);
	bool ok = SSL_CTX_set_num_tickets(ctx, 1) == 1 && SSL_CTX_set_tlsext_ticket_keys(ctx, keys, sizeof(keys)) == 1;
	OPENSSL_cleanse(keys, sizeof(keys));
	if (ok)
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

SSL_CTX *tls_client_ctx_new(const struct policy_trust *trust, int (*session_cb)(SSL *, SSL_SESSION *))
{
	struct trust whom = {.system = trust->system, .pems = trust->pems, .n_pems = trust->n_pems};
	SSL_CTX *ctx = tls_verifying_ctx_new(&whom, slice_of(alpn_h1, sizeof(alpn_h1) - 1));
	if (!ctx)
		return NULL;
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, session_cb);
	return ctx;
}

SSL *tls_client_new(SSL_CTX *ctx, const struct host *host)
{
	return tls_verifying_new(ctx, host->text, host->kind == HOST_ADDRESS);
}

bool tls_offer_h2(SSL *ssl)
{
	return SSL_set_alpn_protos(ssl, alpn_both, sizeof(alpn_both) - 1) == 0;
}

bool tls_chose_h2(const SSL *ssl)
{
	const unsigned char *name;
	unsigned len;
	SSL_get0_alpn_selected(ssl, &name, &len);
	return slice_eq(slice_of(name, len), SLICE("h2"));
}

enum cage_status tls_sni_parse(struct slice ext, struct slice *name)
{
	/* u16 list length, then one entry: u8 type 0, u16 name length, name (RFC 6066) */
	const unsigned char *p = (const unsigned char *)ext.ptr;
	if (ext.len < 5 || (size_t)(p[0] << 8 | p[1]) != ext.len - 2 || p[2] != 0)
		return CAGE_EPROTO;
	size_t len = (size_t)(p[3] << 8 | p[4]);
	if (len == 0 || len != ext.len - 5)
		return CAGE_EPROTO;
	*name = slice_from(ext, 5);
	return CAGE_OK;
}

enum cage_status tls_hello_name(SSL *ssl, struct slice *name)
{
	const unsigned char *ext;
	size_t len;
	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &ext, &len) != 1)
		return CAGE_EOF;
	return tls_sni_parse(slice_of(ext, len), name);
}

bool tls_bind_sessions(SSL *ssl, struct slice name)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	return EVP_Digest(name.ptr, name.len, digest, &len, EVP_sha256(), NULL) == 1 &&
	       SSL_set_session_id_context(ssl, digest, len) == 1;
}
