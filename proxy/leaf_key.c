/* A key in the form that can be put into a certificate without a search: one that OpenSSL holds itself, not in a
 * provider. */
#define OPENSSL_SUPPRESS_DEPRECATED /* that form is only made by these calls */
#include "proxy/leaf_key.h"

#include <openssl/ec.h>
#include <openssl/provider.h>

EVP_PKEY *leaf_key_new(void)
{
	EC_KEY *ec = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
	EVP_PKEY *key = EVP_PKEY_new();
	if (ec && key && EC_KEY_generate_key(ec) == 1 && EVP_PKEY_assign_EC_KEY(key, ec) == 1)
		return key;
	EC_KEY_free(ec);
	EVP_PKEY_free(key);
	return NULL;
}

/* Where there is nothing to search. */
static OSSL_LIB_CTX *empty_library(void)
{
	static OSSL_LIB_CTX *library;
	if (library)
		return library;
	library = OSSL_LIB_CTX_new();
	if (library && !OSSL_PROVIDER_load(library, "null")) {
		OSSL_LIB_CTX_free(library);
		library = NULL;
	}
	return library;
}

/* The key is written into the certificate anew: that must not have changed a byte. */
static bool is_unchanged(X509 *leaf, struct slice der)
{
	unsigned char *again = NULL;
	int len = i2d_X509(leaf, &again);
	bool same = len > 0 && slice_eq(slice_of(again, (size_t)len), der);
	OPENSSL_free(again);
	return same;
}

X509 *leaf_parse(struct slice der, EVP_PKEY *leaf_key)
{
	const unsigned char *p = (const unsigned char *)der.ptr;
	OSSL_LIB_CTX *library = empty_library();
	X509 *leaf = library ? X509_new_ex(library, NULL) : NULL;
	if (leaf && d2i_X509(&leaf, &p, (long)der.len) && X509_set_pubkey(leaf, leaf_key) == 1 &&
	    is_unchanged(leaf, der))
		return leaf;
	X509_free(leaf);
	return NULL;
}
