/* Tokens: what is asked, what is understood of the answer, and when each is used, replaced and forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "proxy/oauth2_private.h"

#define S 1000000u /* a second */
#define HOUR (3600u * (uint64_t)S)

static struct policy_oauth2 conf(void)
{
	struct policy_oauth2 c = {.client_id = SLICE("me:1"), .scope = SLICE("read write")};
	c.token_url = (struct target){.scheme = SCHEME_HTTPS,
				      .host = {.kind = HOST_NAME, .text = SLICE("login.test")},
				      .port = 8443,
				      .path = SLICE("/token"),
				      .query = SLICE("?v=2")};
	return c;
}

static void expect_slice(struct slice got, const char *expected)
{
	if (!slice_eq(got, slice_str(expected)))
		fail_msg("got %.*s, expected %s", SLICE_FMT(got), expected);
}

/* ---- what is sent ---- */

static void client_credentials_in_the_form(void **state)
{
	(void)state;
	struct policy_oauth2 c = conf();
	struct policy_secret s = {.use = SECRET_CREDENTIALS, .oauth = &c};
	struct token_request r;
	struct arena arena;
	arena_init(&arena, LIMIT_TXN_ARENA);
	c.audience = SLICE("https://api.test/");
	assert_null(token_request_make(&s, SLICE("p&ss w\xc3\xb6rd+"), 0, &arena, &r));
	expect_slice(r.form, "grant_type=client_credentials&client_id=me%3A1&client_secret=p%26ss%20w%C3%B6rd%2B"
			     "&scope=read%20write&audience=https%3A%2F%2Fapi.test%2F");
	assert_int_equal(r.authorization.len, 0);
	arena_free(&arena);
}

static void client_credentials_in_a_field(void **state)
{
	(void)state;
	struct policy_oauth2 c = conf();
	struct policy_secret s = {.use = SECRET_CREDENTIALS, .oauth = &c};
	struct token_request r;
	struct arena arena;
	arena_init(&arena, LIMIT_TXN_ARENA);
	c.basic = true;
	c.scope = SLICE_NONE;
	assert_null(token_request_make(&s, SLICE("a:b/c"), 0, &arena, &r));
	expect_slice(r.form, "grant_type=client_credentials");
	expect_slice(r.authorization, "Basic bWUlM0ExOmElM0FiJTJGYw=="); /* me%3A1:a%3Ab%2Fc */
	arena_free(&arena);
}

static void the_longest_value_fits(void **state)
{
	(void)state;
	static char value[LIMIT_SECRET_VALUE];
	struct policy_oauth2 c = conf();
	struct policy_secret s = {.use = SECRET_CREDENTIALS, .oauth = &c};
	struct token_request r;
	struct arena arena;
	memset(value, '%', sizeof(value));
	for (int basic = 0; basic < 2; basic++) {
		arena_init(&arena, LIMIT_TXN_ARENA);
		c.basic = basic;
		assert_null(token_request_make(&s, slice_of(value, sizeof(value)), 0, &arena, &r));
		assert_true(r.form.len + r.authorization.len > 3 * sizeof(value));
		arena_free(&arena);
	}
}

/* ---- Google ---- */

struct account {
	EVP_PKEY *key;
	char file[8192];
};

/* A key file as Google writes it: line feeds of the PEM are escaped. */
static void account_open(struct account *a, EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *pem;
	a->key = key;
	assert_non_null(key);
	assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
	size_t n = (size_t)BIO_get_mem_data(bio, &pem);
	struct text t = text_in(a->file, sizeof(a->file));
	text_put(&t, SLICE("{\"type\":\"service_account\",\"private_key_id\":\"k\\\"1\",\"private_key\":\""));
	text_put_json(&t, slice_of(pem, n));
	text_put(&t, SLICE("\",\"client_email\":\"bot@p.test\"}"));
	text_put_char(&t, 0);
	assert_true(text_ok(&t));
	BIO_free(bio);
}

static void account_close(struct account *a)
{
	EVP_PKEY_free(a->key);
}

/* Decodes base64url; how many bytes. */
static size_t decode(struct slice coded, unsigned char *out)
{
	unsigned bits = 0, n_bits = 0;
	size_t n = 0;
	for (size_t i = 0; i < coded.len; i++) {
		int digit = ascii_base64((unsigned char)coded.ptr[i]);
		assert_true(digit >= 0 && coded.ptr[i] != '+' && coded.ptr[i] != '/');
		bits = bits << 6 | (unsigned)digit;
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			out[n++] = (unsigned char)(bits >> n_bits);
		}
	}
	return n;
}

static void expect_coded(struct slice coded, const char *expected)
{
	unsigned char plain[2048];
	assert_true(coded.len < sizeof(plain));
	expect_slice(slice_of(plain, decode(coded, plain)), expected);
}

static void expect_signed(EVP_PKEY *key, struct slice text, struct slice coded)
{
	unsigned char signature[1024];
	size_t n = decode(coded, signature);
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	assert_int_equal(EVP_DigestVerifyInit(md, NULL, EVP_sha256(), NULL, key), 1);
	assert_int_equal(EVP_DigestVerify(md, signature, n, (const unsigned char *)text.ptr, text.len), 1);
	EVP_MD_CTX_free(md);
}

static void an_assertion_of_a_service_account(void **state)
{
	(void)state;
	struct account a;
	struct policy_oauth2 c = conf();
	struct arena arena;
	struct slice jwt;
	account_open(&a, EVP_RSA_gen(2048));
	arena_init(&arena, LIMIT_TXN_ARENA);
	assert_null(google_assertion(&c, slice_str(a.file), 1800000000, &arena, &jwt));
	size_t dot = slice_rfind(jwt, '.');
	struct slice text = slice_head(jwt, dot), claims = text;
	expect_signed(a.key, text, slice_from(jwt, dot + 1));
	expect_coded(slice_cut(&claims, '.'), "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"k\\\"1\"}");
	expect_coded(claims, "{\"iat\":1800000000,\"exp\":1800003600,\"aud\":\"https://login.test:8443/token?v=2\","
			     "\"iss\":\"bot@p.test\",\"scope\":\"read write\"}");
	arena_free(&arena);
	account_close(&a);
}

static void an_assertion_for_an_audience(void **state)
{
	(void)state;
	struct account a;
	struct policy_oauth2 c = conf();
	struct policy_secret s = {.use = SECRET_GOOGLE_JWT, .oauth = &c};
	struct token_request r;
	struct arena arena;
	account_open(&a, EVP_RSA_gen(2048));
	arena_init(&arena, LIMIT_TXN_ARENA);
	c.scope = SLICE_NONE;
	c.audience = SLICE("https://run.test");
	assert_null(token_request_make(&s, slice_str(a.file), 1800000000, &arena, &r));
	struct slice prefix = SLICE("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=");
	assert_true(slice_starts(r.form, prefix));
	struct slice jwt = slice_from(r.form, prefix.len);
	slice_cut(&jwt, '.');
	expect_coded(slice_cut(&jwt, '.'),
		     "{\"iat\":1800000000,\"exp\":1800003600,\"aud\":\"https://login.test:8443/token?v=2\","
		     "\"iss\":\"bot@p.test\",\"target_audience\":\"https://run.test\"}");
	assert_int_equal(r.authorization.len, 0);
	arena_free(&arena);
	account_close(&a);
}

static void a_key_file_that_is_no_good_is_said_so(void **state)
{
	(void)state;
	static const struct {
		const char *file, *fault;
	} bad[] = {
		{"", "the service account's key file is not a JSON object"},
		{"[]", "the service account's key file is not a JSON object"},
		{"{\"client_email\":\"a\",\"client_email\":\"b\"}",
		 "the service account's key file is not a JSON object"},
		{"{\"private_key\":\"x\"}", "the service account's key file has no client_email"},
		{"{\"client_email\":\"a\"}", "the service account's key file has no RSA key"},
		{"{\"client_email\":\"a\",\"private_key\":7}", "the service account's key file has no RSA key"},
		{"{\"client_email\":\"a\",\"private_key\":\"x\"}", "the service account's key file has no RSA key"},
	};
	struct policy_oauth2 c = conf();
	struct slice jwt;
	struct arena arena;
	arena_init(&arena, LIMIT_TXN_ARENA);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_string_equal(google_assertion(&c, slice_str(bad[i].file), 0, &arena, &jwt), bad[i].fault);
	struct account a;
	account_open(&a, EVP_EC_gen("P-256"));
	assert_string_equal(google_assertion(&c, slice_str(a.file), 0, &arena, &jwt),
			    "the service account's key file has no RSA key");
	account_close(&a);
	arena_free(&arena);
}

/* ---- what comes back ---- */

static void expect_reply(const char *body, const char *token, uint64_t life_s)
{
	struct token_reply r;
	const char *fault = token_reply_read(slice_str(body), &r);
	if (fault)
		fail_msg("%s: %s", body, fault);
	expect_slice(r.token, token);
	assert_int_equal(r.life_s, life_s);
	token_reply_free(&r);
	assert_null(r.json);
}

static void answers_are_understood(void **state)
{
	(void)state;
	expect_reply("{\"access_token\":\"abcdefgh\",\"expires_in\":3600,\"token_type\":\"Bearer\"}", "abcdefgh", 3600);
	expect_reply("{\"access_token\":\"abcdefgh\",\"expires_in\":\"59\"}", "abcdefgh", 59);
	expect_reply("{\"access_token\":\"abcdefgh\",\"expires_in\":59.9}", "abcdefgh", 59);
	expect_reply("{\"access_token\":\"abcdefgh\",\"expires_in\":1e300}", "abcdefgh", LIMIT_TOKEN_LIFE_S);
	expect_reply("{\"access_token\":\"abcdefgh\"}", "abcdefgh", LIMIT_TOKEN_LIFE_DEFAULT_S);
	expect_reply("{\"access_token\":\"abcdefgh\",\"expires_in\":null}", "abcdefgh", LIMIT_TOKEN_LIFE_DEFAULT_S);
	expect_reply("{\"id_token\":\"a.b-c_d=\"}", "a.b-c_d=", LIMIT_TOKEN_LIFE_DEFAULT_S);
}

static void other_answers_have_no_token(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
					  "abcdefgh",
					  "[\"abcdefgh\"]",
					  "{\"error\":\"invalid_client\"}",
					  "{\"access_token\":\"abcdefg\"}", /* too short to be looked for */
					  "{\"access_token\":12345678}",
					  "{\"access_token\":\"abcd efgh\"}",
					  "{\"access_token\":\"abcdefgh\\r\\nX: 1\"}",
					  "{\"access_token\":\"abcdefgh\\u00e9\"}",
					  "{\"access_token\":\"abcdefgh\"",
					  "{\"access_token\":\"abcdefgh\"} x",
					  "{\"access_token\":\"abcdefgh\",\"access_token\":\"abcdefgi\"}",
					  "{\"access_token\":\"abcdefgh\",\"expires_in\":-1}",
					  "{\"access_token\":\"abcdefgh\",\"expires_in\":\"soon\"}",
					  "{\"access_token\":\"abcdefgh\",\"expires_in\":[1]}"};
	struct token_reply r;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!token_reply_read(slice_str(bad[i]), &r))
			fail_msg("taken: %s", bad[i]);
}

static void jansson_is_left_as_it_was(void **state)
{
	(void)state;
	json_malloc_t allocate, allocate_after;
	json_free_t release, release_after;
	json_get_alloc_funcs(&allocate, &release);
	struct token_reply r;
	assert_null(token_reply_read(SLICE("{\"access_token\":\"abcdefgh\"}"), &r));
	token_reply_free(&r);
	assert_non_null(token_reply_read(SLICE("{"), &r));
	json_get_alloc_funcs(&allocate_after, &release_after);
	assert_true(allocate == allocate_after && release == release_after);
}

/* ---- the cache ---- */

#define START (100 * HOUR)

static struct grant *grant(struct token_cache *c, unsigned char key, const char *id)
{
	unsigned char k[GRANT_KEY] = {key};
	struct grant *g = cache_grant(c, k, slice_str(id));
	assert_non_null(g);
	return g;
}

static void expect_state(const struct grant *g, uint64_t now, enum grant_state expected, const char *token)
{
	struct slice got = SLICE_NONE;
	assert_int_equal(grant_look(g, now, &got), expected);
	if (expected != GRANT_NONE)
		expect_slice(got, token);
}

static void a_token_is_fresh_then_old_then_gone(void **state)
{
	(void)state;
	static const struct {
		uint64_t life_s, fresh_s, good_s;
	} cases[] = {
		{0, 30, 30},        {35, 30, 35},       {90, 30, 90},           {91, 31, 91},
		{3600, 3540, 3600}, {7200, 3600, 7200}, {1000000, 3600, 86400}, {UINT64_MAX, 3600, 86400},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct token_cache c = {0};
		struct grant *g = grant(&c, 1, "a");
		expect_state(g, START, GRANT_NONE, NULL);
		assert_true(cache_put(&c, g, SLICE("token-1-"), cases[i].life_s, START));
		uint64_t fresh = START + cases[i].fresh_s * S, good = START + cases[i].good_s * S;
		expect_state(g, START, GRANT_FRESH, "token-1-");
		expect_state(g, fresh - 1, GRANT_FRESH, "token-1-");
		if (fresh < good)
			expect_state(g, fresh, GRANT_OLD, "token-1-");
		expect_state(g, good, GRANT_NONE, NULL);
		cache_clear(&c);
	}
}

/* Each token of the policy's secrets that is listed, by index and bytes. */
static void expect_list(const struct token_cache *c, const char *expected)
{
	struct policy_secret secrets[] = {{.id = SLICE("other")}, {.id = SLICE("a")}, {.id = SLICE("b")}};
	struct policy p = {.secrets = secrets, .n_secrets = 3};
	struct known_item items[LIMIT_TOKENS];
	char room[1024];
	struct text t = text_in(room, sizeof(room));
	size_t n = cache_list(c, &p, items, LIMIT_TOKENS);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(items[i].kind, KNOWN_VALUE);
		text_put_u64(&t, items[i].secret);
		text_put_char(&t, '=');
		text_put(&t, items[i].bytes);
		text_put_char(&t, ' ');
	}
	expect_slice(text_slice(&t), expected);
}

static void a_replaced_token_is_known_until_its_end(void **state)
{
	(void)state;
	struct token_cache c = {0};
	struct grant *g = grant(&c, 1, "a");
	assert_true(cache_put(&c, g, SLICE("token-1-"), 3600, START));
	uint64_t version = c.version;
	assert_true(cache_put(&c, g, SLICE("token-2-"), 3600, START + HOUR / 2));
	assert_int_not_equal(version, c.version);
	expect_state(g, START + HOUR / 2, GRANT_FRESH, "token-2-");
	expect_list(&c, "1=token-2- 1=token-1- ");
	version = c.version;
	cache_expire(&c, START + HOUR - 1);
	expect_list(&c, "1=token-2- 1=token-1- ");
	assert_int_equal(version, c.version);
	cache_expire(&c, START + HOUR);
	expect_list(&c, "1=token-2- ");
	assert_int_not_equal(version, c.version);
	version = c.version;
	cache_expire(&c, START + HOUR + 1);
	assert_int_equal(version, c.version);
	cache_expire(&c, START + 2 * HOUR);
	expect_list(&c, "");
	cache_clear(&c);
}

static void the_same_token_again_is_one(void **state)
{
	(void)state;
	struct token_cache c = {0};
	struct grant *g = grant(&c, 1, "a");
	assert_true(cache_put(&c, g, SLICE("token-1-"), 3600, START));
	assert_true(cache_put(&c, g, SLICE("token-1-"), 3600, START + HOUR / 2));
	expect_list(&c, "1=token-1- ");
	expect_state(g, START + HOUR, GRANT_FRESH, "token-1-");
	assert_true(cache_put(&c, g, SLICE("token-1-"), 3600, START + 2 * HOUR));
	expect_list(&c, "1=token-1- ");
	cache_clear(&c);
}

static void tokens_are_listed_by_the_policy_at_hand(void **state)
{
	(void)state;
	struct token_cache c = {0};
	assert_true(cache_put(&c, grant(&c, 1, "a"), SLICE("token-a-"), 3600, START));
	assert_true(cache_put(&c, grant(&c, 2, "b"), SLICE("token-b-"), 3600, START));
	assert_true(cache_put(&c, grant(&c, 3, "gone"), SLICE("token-g-"), 3600, START));
	assert_true(cache_put(&c, grant(&c, 4, "a"), SLICE("token-A-"), 3600, START)); /* another value of it */
	assert_ptr_equal(grant(&c, 1, "a"), grant(&c, 1, "a"));
	expect_list(&c, "1=token-A- 3=token-g- 2=token-b- 1=token-a- "); /* 3: of none, but known all the same */
	cache_clear(&c);
}

/* What a request may have borrowed stays in memory for as long as a request can take. */
static void a_token_can_be_borrowed_for_a_whole_request(void **state)
{
	(void)state;
	struct token_cache c = {0};
	struct grant *g = grant(&c, 1, "a");
	struct slice borrowed = SLICE_NONE;
	assert_true(cache_put(&c, g, SLICE("token-1-"), 3600, START));
	assert_int_equal(grant_look(g, START + HOUR - 1, &borrowed), GRANT_OLD);
	cache_expire(&c, START + HOUR - 1 + (uint64_t)LIMIT_TOTAL_MS * 1000u);
	expect_slice(borrowed, "token-1-");
	assert_int_equal(c.n_kept, 1);
	cache_expire(&c, START + HOUR + (uint64_t)LIMIT_TOTAL_MS * 1000u + 61 * (uint64_t)S);
	assert_int_equal(c.n_kept, 0);
	assert_int_equal(c.n_grants, 0);
	assert_null(c.grants);
}

static void a_grant_that_has_nothing_is_forgotten(void **state)
{
	(void)state;
	struct token_cache c = {0};
	struct grant *g = grant(&c, 1, "a");
	g->failed_until_us = START;
	cache_expire(&c, START - 1);
	assert_int_equal(c.n_grants, 1);
	g->fetch = (struct fetch *)&c; /* one is under way */
	cache_expire(&c, START);
	assert_int_equal(c.n_grants, 1);
	g->fetch = NULL;
	cache_expire(&c, START);
	assert_int_equal(c.n_grants, 0);
}

static void what_is_full_takes_no_more(void **state)
{
	(void)state;
	struct token_cache c = {0};
	struct grant *g = grant(&c, 0, "a");
	for (size_t i = 0; i < LIMIT_TOKENS; i++)
		assert_true(cache_put(&c, g, i % 2 ? SLICE("token-1-") : SLICE("token-0-"), 3600, START));
	assert_false(cache_put(&c, g, SLICE("token-2-"), 3600, START));
	expect_state(g, START, GRANT_FRESH, "token-1-");
	assert_true(cache_put(&c, g, SLICE("token-2-"), 3600, START + HOUR));
	for (unsigned char i = 1; i < LIMIT_TOKENS; i++)
		grant(&c, i, "a");
	unsigned char key[GRANT_KEY] = {LIMIT_TOKENS};
	assert_null(cache_grant(&c, key, SLICE("a")));
	cache_clear(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(client_credentials_in_the_form),
		cmocka_unit_test(client_credentials_in_a_field),
		cmocka_unit_test(the_longest_value_fits),
		cmocka_unit_test(an_assertion_of_a_service_account),
		cmocka_unit_test(an_assertion_for_an_audience),
		cmocka_unit_test(a_key_file_that_is_no_good_is_said_so),
		cmocka_unit_test(answers_are_understood),
		cmocka_unit_test(other_answers_have_no_token),
		cmocka_unit_test(jansson_is_left_as_it_was),
		cmocka_unit_test(a_token_is_fresh_then_old_then_gone),
		cmocka_unit_test(a_replaced_token_is_known_until_its_end),
		cmocka_unit_test(the_same_token_again_is_one),
		cmocka_unit_test(tokens_are_listed_by_the_policy_at_hand),
		cmocka_unit_test(a_token_can_be_borrowed_for_a_whole_request),
		cmocka_unit_test(a_grant_that_has_nothing_is_forgotten),
		cmocka_unit_test(what_is_full_takes_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
