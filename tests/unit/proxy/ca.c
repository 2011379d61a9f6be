/* The CA and its leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/ca.h"

static char dir[] = "/tmp/cage-ca-XXXXXX";

static void path_in(char out[256], const char *name)
{
	snprintf(out, 256, "%s/%s", dir, name);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	const char *const names[] = {"ca.pem", "ca.key", "bundle.pem"};
	for (size_t i = 0; i < 3; i++) {
		char path[256];
		path_in(path, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

static void is_made_once_and_kept(void **state)
{
	(void)state;
	struct ca first, second;
	struct stat st;
	char path[256];
	assert_true(ca_open(&first, dir));
	assert_true(ca_open(&second, dir));
	assert_int_equal(X509_cmp(first.cert, second.cert), 0);
	path_in(path, "ca.key");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	path_in(path, "bundle.pem");
	assert_int_equal(stat(path, &st), 0);
	ca_close(&first);
	ca_close(&second);
}

static X509 *mint(const struct ca *ca, EVP_PKEY *key, const char *name)
{
	struct arena arena;
	struct host host;
	const char *why;
	arena_init(&arena, 4096);
	assert_int_equal(host_parse(slice_str(name), &arena, &host, &why), CAGE_OK);
	X509 *x = ca_mint(ca, &host, key);
	arena_free(&arena);
	assert_non_null(x);
	return x;
}

static void a_leaf_is_for_one_name_and_a_week_at_most(void **state)
{
	(void)state;
	struct ca ca;
	assert_true(ca_open(&ca, dir));
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = mint(&ca, key, "a.test"), *again = mint(&ca, key, "a.test");
	int days = 0, seconds = 0;
	assert_int_equal(X509_verify(x, X509_get0_pubkey(ca.cert)), 1);
	assert_int_equal(X509_check_host(x, "a.test", 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL), 1);
	assert_int_equal(X509_check_host(x, "b.test", 0, 0, NULL), 0);
	assert_int_equal(X509_NAME_entry_count(X509_get_subject_name(x)), 0);
	assert_int_equal(X509_check_ca(x), 0);
	assert_int_equal(X509_check_purpose(x, X509_PURPOSE_SSL_SERVER, 0), 1);
	assert_int_equal(ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(x), X509_get0_notAfter(x)), 1);
	assert_true(days < 7);
	assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(x), X509_get0_serialNumber(again)), 0);
	X509_free(x);
	X509_free(again);
	EVP_PKEY_free(key);
	ca_close(&ca);
}

static void an_address_gets_an_address_name(void **state)
{
	(void)state;
	struct ca ca;
	assert_true(ca_open(&ca, dir));
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *v4 = mint(&ca, key, "192.0.2.7"), *v6 = mint(&ca, key, "[2001:db8::7]");
	assert_int_equal(X509_check_ip_asc(v4, "192.0.2.7", 0), 1);
	assert_int_equal(X509_check_ip_asc(v6, "2001:db8::7", 0), 1);
	X509_free(v4);
	X509_free(v6);
	EVP_PKEY_free(key);
	ca_close(&ca);
}

/* Half a CA is never replaced: clients may trust what is left of it. */
static void a_broken_ca_is_an_error(void **state)
{
	(void)state;
	struct ca ca;
	char path[256];
	assert_true(ca_open(&ca, dir));
	ca_close(&ca);
	path_in(path, "ca.key");
	assert_int_equal(unlink(path), 0);
	assert_false(ca_open(&ca, dir));
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs("not a key\n", f);
	fclose(f);
	assert_false(ca_open(&ca, dir));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_made_once_and_kept),
		cmocka_unit_test(a_leaf_is_for_one_name_and_a_week_at_most),
		cmocka_unit_test(an_address_gets_an_address_name),
		cmocka_unit_test(a_broken_ca_is_an_error),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
