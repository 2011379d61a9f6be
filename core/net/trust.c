/* The system's bundle, read once, and stores built from it. */
#include "core/net/trust.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "core/base/say.h"
#include "core/net/trust_index.h"

static const char *const bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
};

static struct trust_index *system_certs;

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
	system_certs = f ? trust_index_read(f) : NULL;
	if (f)
		fclose(f);
	if (!system_certs || trust_index_count(system_certs) == 0)
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
	if (ok && trust->system && system_certs)
		ok = trust_index_offer(system_certs, store);
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
