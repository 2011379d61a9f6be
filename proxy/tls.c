/* Contexts and checks. TLS 1.2 at least, no renegotiation, no early data, no compression. */
#include "proxy/tls.h"

#include <openssl/evp.h>
#include <openssl/x509v3.h>

#include "proxy/trust.h"

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

static SSL_CTX *ctx_new(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);
	if (!ctx)
		return NULL;
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1)
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

SSL_CTX *tls_server_ctx_new(const unsigned char ticket_keys[TLS_TICKET_KEYS], SSL_client_hello_cb_fn hello_cb,
			    void *arg)
{
	SSL_CTX *ctx = ctx_new(TLS_server_method());
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
	SSL_CTX *ctx = ctx_new(TLS_client_method());
	X509_STORE *store = ctx ? trust_store_new(trust) : NULL;
	if (!store) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_cert_store(ctx, store);
	SSL_CTX_set_security_level(ctx, 2);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, session_cb);
	if (SSL_CTX_set_alpn_protos(ctx, alpn_h1, sizeof(alpn_h1) - 1) == 0) /* 0 is success, here alone */
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

static bool expect_host(SSL *ssl, const struct host *host)
{
	char name[LIMIT_HOST + 1];
	if (host->text.len > LIMIT_HOST)
		return false;
	memcpy(name, host->text.ptr, host->text.len);
	name[host->text.len] = '\0';
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
	if (host->kind == HOST_ADDRESS)
		return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
	X509_VERIFY_PARAM_set_hostflags(param,
					X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return X509_VERIFY_PARAM_set1_host(param, name, host->text.len) == 1 &&
	       SSL_set_tlsext_host_name(ssl, name) == 1;
}

SSL *tls_client_new(SSL_CTX *ctx, const struct host *host)
{
	SSL *ssl = SSL_new(ctx);
	if (ssl && expect_host(ssl, host))
		return ssl;
	SSL_free(ssl);
	return NULL;
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

/* Is the host the excluded name, or below it? */
static bool is_excluded(const GENERAL_NAME *excluded, struct slice host)
{
	if (excluded->type != GEN_DNS)
		return false;
	struct slice name =
		slice_of(ASN1_STRING_get0_data(excluded->d.dNSName), (size_t)ASN1_STRING_length(excluded->d.dNSName));
	if (name.len > host.len)
		return false;
	struct slice tail = slice_from(host, host.len - name.len);
	bool at_label =
		tail.len == host.len || name.len == 0 || name.ptr[0] == '.' || host.ptr[host.len - name.len - 1] == '.';
	return at_label && slice_ieq(tail, name);
}

static bool excludes(X509 *ca, struct slice host)
{
	bool found = false;
	NAME_CONSTRAINTS *nc = X509_get_ext_d2i(ca, NID_name_constraints, NULL, NULL);
	for (int i = 0; nc && !found && i < sk_GENERAL_SUBTREE_num(nc->excludedSubtrees); i++)
		found = is_excluded(sk_GENERAL_SUBTREE_value(nc->excludedSubtrees, i)->base, host);
	NAME_CONSTRAINTS_free(nc);
	return found;
}

const char *tls_chain_fault(STACK_OF(X509) * chain, struct slice host)
{
	if (sk_X509_num(chain) < 1)
		return "no chain";
	X509 *leaf = sk_X509_value(chain, 0);
	if (X509_check_ca(leaf) != 0 || (X509_get_extension_flags(leaf) & EXFLAG_CA))
		return "a CA as a server";
	for (int i = 1; i < sk_X509_num(chain); i++)
		if (excludes(sk_X509_value(chain, i), host))
			return "a CA that is excluded from this name";
	return NULL;
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
