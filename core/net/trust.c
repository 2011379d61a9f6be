/* The system's bundle, parsed once, and stores built from it. */
#include "core/net/trust.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "core/base/say.h"

static const char *const bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
};

static STACK_OF(X509) * system_certs;

static FILE *open_bundle(void)
{
	for (size_t i = 0; i < sizeof(bundles) / sizeof(bundles[0]); i++) {
		FILE *f = fopen(bundles[i], "re");
		if (f)
			return f;
	}
	return NULL;
}

void trust_load_system(void)
{
	if (system_certs)
		return;
	FILE *f = open_bundle();
	system_certs = sk_X509_new_null();
	if (f && system_certs) {
		X509 *x;
		while ((x = PEM_read_X509(f, NULL, NULL, NULL)) != NULL)
			if (!sk_X509_push(system_certs, x))
				X509_free(x);
		ERR_clear_error();
	}
	if (f)
		fclose(f);
	if (sk_X509_num(system_certs) <= 0)
		say("this system has no CA certificates (package ca-certificates): only upstream.trust files of the "
		    "policy are trusted");
}

static bool add_pem(X509_STORE *store, struct slice pem)
{
	BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
	X509 *x;
	if (!bio)
		return false;
	bool ok = true;
	while (ok && (x = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		ok = X509_STORE_add_cert(store, x) == 1;
		X509_free(x);
	}
	ERR_clear_error();
	BIO_free(bio);
	return ok;
}

X509_STORE *trust_store_new(const struct trust *trust)
{
	X509_STORE *store = X509_STORE_new();
	bool ok = store != NULL;
	for (int i = 0; ok && trust->system && i < sk_X509_num(system_certs); i++)
		ok = X509_STORE_add_cert(store, sk_X509_value(system_certs, i)) == 1;
	for (size_t i = 0; ok && i < trust->n_pems; i++)
		ok = add_pem(store, trust->pems[i]);
	if (ok)
		return store;
	X509_STORE_free(store);
	return NULL;
}

bool trust_copy_system(FILE *out)
{
	FILE *f = open_bundle();
	if (!f)
		return true;
	char buf[16384];
	size_t n;
	bool ok = true;
	while (ok && (n = fread(buf, 1, sizeof(buf), f)) > 0)
		ok = fwrite(buf, 1, n, out) == n;
	ok = ok && !ferror(f);
	fclose(f);
	return ok;
}
