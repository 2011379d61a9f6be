/* TLS 1.2 at least, no renegotiation, no early data, no compression; a server is who its certificate says by its SAN. */
#include "core/net/tls_client.h"

#include <openssl/x509v3.h>

#include "core/base/limits.h"

SSL_CTX *tls_ctx_new(const SSL_METHOD *method)
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

SSL_CTX *tls_verifying_ctx_new(const struct trust *trust, struct slice alpn)
{
	SSL_CTX *ctx = tls_ctx_new(TLS_client_method());
	X509_STORE *store = ctx ? trust_store_new(trust) : NULL;
	if (!store) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_cert_store(ctx, store);
	SSL_CTX_set_security_level(ctx, 2);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)alpn.ptr, (unsigned)alpn.len) ==
	    0) /* success, here alone */
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

static bool expect_name(SSL *ssl, struct slice host, bool is_address)
{
	char name[LIMIT_HOST + 1];
	if (host.len > LIMIT_HOST)
		return false;
	memcpy(name, host.ptr, host.len);
	name[host.len] = '\0';
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
	if (is_address)
		return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
	X509_VERIFY_PARAM_set_hostflags(param,
					X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return X509_VERIFY_PARAM_set1_host(param, name, host.len) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

SSL *tls_verifying_new(SSL_CTX *ctx, struct slice host, bool is_address)
{
	SSL *ssl = SSL_new(ctx);
	if (ssl && expect_name(ssl, host, is_address))
		return ssl;
	SSL_free(ssl);
	return NULL;
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
		return "it is that of a CA (CA:TRUE), not of a server";
	for (int i = 1; i < sk_X509_num(chain); i++)
		if (excludes(sk_X509_value(chain, i), host))
			return "a CA that is excluded from this name";
	return NULL;
}
