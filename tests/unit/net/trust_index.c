/* Certificates that are parsed when a chain leads to them: what is trusted is what a store of all of them would trust. */
#include "core/net/trust_index.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct pair {
	EVP_PKEY *key;
	X509 *cert;
};

static void add_ext(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(ext);
	assert_int_equal(X509_add_ext(x, ext, -1), 1);
	X509_EXTENSION_free(ext);
}

static struct pair make(const char *name, const struct pair *issuer)
{
	struct pair p = {EVP_EC_gen("P-256"), X509_new()};
	X509_NAME *subject = X509_get_subject_name(p.cert);
	X509_set_version(p.cert, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(p.cert), 7);
	X509_gmtime_adj(X509_getm_notBefore(p.cert), -60);
	X509_gmtime_adj(X509_getm_notAfter(p.cert), 3600);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(p.cert, X509_get_subject_name(issuer ? issuer->cert : p.cert));
	X509_set_pubkey(p.cert, p.key);
	X509 *by = issuer ? issuer->cert : p.cert;
	add_ext(p.cert, by, NID_basic_constraints, issuer ? "CA:FALSE" : "critical,CA:TRUE");
	add_ext(p.cert, by, NID_subject_key_identifier, "hash");
	add_ext(p.cert, by, NID_authority_key_identifier, "keyid"); /* tells issuers of the same name apart */
	assert_true(X509_sign(p.cert, issuer ? issuer->key : p.key, EVP_sha256()) > 0);
	return p;
}

static void drop(struct pair *p)
{
	EVP_PKEY_free(p->key);
	X509_free(p->cert);
}

static bool verifies(X509_STORE *store, X509 *leaf)
{
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	assert_int_equal(X509_STORE_CTX_init(ctx, store, leaf, NULL), 1);
	bool ok = X509_verify_cert(ctx) == 1;
	X509_STORE_CTX_free(ctx);
	return ok;
}

/* The first, its like with the same name, and one that is in no bundle. */
struct world {
	struct pair first, like, stranger;
	struct pair of_first, of_like, of_stranger;
	struct trust_index *index;
	X509_STORE *store;
};

static void put_junk(FILE *f)
{
	const unsigned char not_der[] = {0x30, 0x82, 0xff, 0xff, 0x00};
	const unsigned char no_subject[] = {0x30, 0x04, 0x30, 0x02, 0x02, 0x00};
	PEM_write(f, PEM_STRING_X509, "", not_der, sizeof(not_der));
	PEM_write(f, PEM_STRING_X509, "", no_subject, sizeof(no_subject));
	PEM_write(f, "SOMETHING ELSE", "", not_der, sizeof(not_der));
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	FILE *f = tmpfile();
	assert_non_null(w);
	assert_non_null(f);
	w->first = make("a root", NULL);
	w->like = make("a root", NULL);
	w->stranger = make("a stranger", NULL);
	w->of_first = make("leaf 1", &w->first);
	w->of_like = make("leaf 2", &w->like);
	w->of_stranger = make("leaf 3", &w->stranger);
	put_junk(f);
	PEM_write_X509(f, w->first.cert);
	PEM_write_X509(f, w->first.cert);
	put_junk(f);
	PEM_write_X509(f, w->like.cert);
	rewind(f);
	w->index = trust_index_read(f);
	fclose(f);
	w->store = X509_STORE_new();
	assert_non_null(w->index);
	assert_true(trust_index_offer(w->index, w->store));
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	X509_STORE_free(w->store);
	trust_index_free(&w->index);
	drop(&w->first);
	drop(&w->like);
	drop(&w->stranger);
	drop(&w->of_first);
	drop(&w->of_like);
	drop(&w->of_stranger);
	free(w);
	return 0;
}

static void junk_is_left_out(void **state)
{
	const struct world *w = *state;
	assert_int_equal(trust_index_count(w->index), 3);
}

static void issuers_are_found_also_by_a_name_that_two_have(void **state)
{
	const struct world *w = *state;
	for (int again = 0; again < 2; again++) {
		assert_true(verifies(w->store, w->of_like.cert));
		assert_true(verifies(w->store, w->of_first.cert));
	}
}

static void nobody_else_is_trusted(void **state)
{
	const struct world *w = *state;
	struct pair self = make("a root", NULL); /* the right name, another key */
	struct pair of_self = make("leaf 4", &self);
	assert_false(verifies(w->store, w->of_stranger.cert));
	assert_false(verifies(w->store, of_self.cert));
	assert_false(verifies(w->store, self.cert));
	drop(&of_self);
	drop(&self);
}

static void a_root_that_the_store_has_itself(void **state)
{
	const struct world *w = *state;
	assert_int_equal(X509_STORE_add_cert(w->store, w->stranger.cert), 1);
	assert_true(verifies(w->store, w->of_stranger.cert));
	assert_true(verifies(w->store, w->of_first.cert));
}

static void an_empty_file(void **state)
{
	(void)state;
	FILE *f = tmpfile();
	struct trust_index *index = trust_index_read(f);
	assert_int_equal(trust_index_count(index), 0);
	trust_index_free(&index);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(junk_is_left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(issuers_are_found_also_by_a_name_that_two_have, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nobody_else_is_trusted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_root_that_the_store_has_itself, set_up, tear_down),
		cmocka_unit_test(an_empty_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
