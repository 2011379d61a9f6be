/* Requests that are signed anew: what can't be, what is left out, and signatures as a policy describes them. That AWS signatures
 * are right is check_sigv4.py's to say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/base/limits.h"
#include "core/http/h1.h"
#include "proxy/sign.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SCOPE "20260131/eu-west-1/"
#define S3 "AWS4-HMAC-SHA256 Credential=AKIA/" SCOPE "s3/aws4_request, SignedHeaders="
#define STS "AWS4-HMAC-SHA256 Credential=AKIA/" SCOPE "sts/aws4_request, SignedHeaders="
#define DATE "x-amz-date: 20260131T235959Z\r\n"

struct scene {
	struct arena arena;
	struct message head;
	struct target target;
	struct policy_secret secret;
	struct sign_body body;
	const char *detail;
	enum reason reason;
};

/* fields: each with CR and LF. */
static struct scene scene_new(const char *start, const char *fields)
{
	struct scene s = {.secret = {.use = SECRET_SIGV4}, .body = {.is_known = true}};
	char text[4096];
	struct h1_error err;
	const char *why;
	arena_init(&s.arena, LIMIT_TXN_ARENA);
	int n = snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: a.test\r\n%s\r\n", start, fields);
	assert_true(n > 0 && (size_t)n < sizeof(text));
	struct slice copy = arena_dup(&s.arena, slice_of(text, (size_t)n));
	assert_int_equal(h1_parse_request(copy, &s.arena, &s.head, &err), CAGE_OK);
	assert_int_equal(path_parse(s.head.target, &s.arena, &s.target, &why), CAGE_OK);
	s.target.scheme = SCHEME_HTTPS;
	s.target.port = 443;
	s.target.host = (struct host){.kind = HOST_NAME, .text = SLICE("a.test")};
	return s;
}

static void sign(struct scene *s)
{
	s->reason = sign_sigv4(&s->secret, SLICE("value"), &s->body, &s->head, &s->target, &s->arena, &s->detail);
}

static struct slice value_of(const struct scene *s, const char *name)
{
	const struct field *f = message_field(&s->head, slice_str(name));
	return f ? f->value : SLICE_NONE;
}

static bool has(struct slice text, const char *part)
{
	return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

/* ---- what is refused ---- */

static void expect_refusal(const char *start, const char *fields, const char *detail)
{
	struct scene s = scene_new(start, fields);
	sign(&s);
	if (s.reason != REASON_SECRET_SLOT || strcmp(s.detail, detail) != 0)
		fail_msg("%s %s: %s", start, fields, s.detail ? s.detail : "no detail");
	arena_free(&s.arena);
}

#define NONE "The request has no AWS signature to replace."
#define MALFORMED "The AWS signature is malformed."
#define TWICE "The request has more than one signature."
#define NO_DATE "The request has no date that goes with its AWS signature."

static void what_is_no_signature_is_refused(void **state)
{
	(void)state;
	expect_refusal("GET /", "", NONE);
	expect_refusal("GET /", "Authorization: Bearer abc\r\n", NONE);
	expect_refusal("GET /?X-Amz-Credential=a", "", NONE);
	expect_refusal("GET /",
		       "Authorization: AWS4-HMAC-SHA512 Credential=a, SignedHeaders=host, Signature=00\r\n" DATE, NONE);
	expect_refusal("GET /",
		       "Authorization: AWS4-ECDSA-P256-SHA256 Credential=a, SignedHeaders=host, Signature=00\r\n" DATE,
		       "A SigV4A signature can't be replaced; use SigV4.");
	expect_refusal("GET /", "Authorization: " STS "host, Signature=00\r\n", NO_DATE);
	expect_refusal("GET /", "Authorization: " STS "host, Signature=00\r\nDate: yesterday\r\n", NO_DATE);
	expect_refusal("GET /", "Authorization: " STS "host, Signature=00\r\nDate: Sat, 31 Foo 2026 23:59:59 GMT\r\n",
		       NO_DATE);
	expect_refusal("GET /?X-Amz-Signature=00", "Authorization: " STS "host, Signature=00\r\n" DATE, TWICE);
	expect_refusal("GET /",
		       "Authorization: " STS "host, Signature=00\r\nAuthorization: " STS "host, Signature=00\r\n" DATE,
		       TWICE);
}

static void a_malformed_signature_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"AWS4-HMAC-SHA256 ",
		"AWS4-HMAC-SHA256 Credential=A/" SCOPE "s3/aws4_request, SignedHeaders=host",
		"AWS4-HMAC-SHA256 SignedHeaders=host, Signature=00",
		S3 "host, Signature=00, Signature=01",
		S3 "host, Signature=00, Other=1",
		S3 "host;a, Signature=00",    /* not sorted */
		S3 "host;host, Signature=00", /* twice */
		S3 "Host, Signature=00",
		S3 "a;;host, Signature=00",
		"AWS4-HMAC-SHA256 Credential=A/" SCOPE "s3/aws5_request, SignedHeaders=host, Signature=00",
		"AWS4-HMAC-SHA256 Credential=/" SCOPE "s3/aws4_request, SignedHeaders=host, Signature=00",
		"AWS4-HMAC-SHA256 Credential=" SCOPE "s3/aws4_request, SignedHeaders=host, Signature=00",
		"AWS4-HMAC-SHA256 Credential=A/20260131//s3/aws4_request, SignedHeaders=host, Signature=00",
		"AWS4-HMAC-SHA256 Credential=A/20260130/r/s3/aws4_request, SignedHeaders=host, Signature=00",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char fields[512];
		snprintf(fields, sizeof(fields), "Authorization: %s\r\n" DATE, bad[i]);
		expect_refusal("GET /", fields, MALFORMED);
	}
	expect_refusal("GET /", "Authorization: " S3 "x-amz-date, Signature=00\r\n" DATE,
		       "The AWS signature does not cover the host.");
	expect_refusal("GET /",
		       "Authorization: AWS4-HMAC-SHA256 Credential=A/" SCOPE "s3/aws4_request, Signature=00\r\n" DATE,
		       "The AWS signature does not cover the host.");
	expect_refusal("GET /", "Authorization: " S3 "host, Signature=00\r\nx-amz-date: 20260131T2359590\r\n",
		       MALFORMED);
	expect_refusal("GET /?X-Amz-Signature=00&X-Amz-Signature=01", "", MALFORMED);
	expect_refusal("GET /?X-Amz-Signature=00", "", MALFORMED);
}

static void signatures_that_cant_be_made_anew_are_refused(void **state)
{
	(void)state;
	static const char *const streamed[] = {
		"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
		"STREAMING-AWS4-HMAC-SHA256-EVENTS", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"};
	for (size_t i = 0; i < sizeof(streamed) / sizeof(streamed[0]); i++) {
		char fields[512];
		snprintf(fields, sizeof(fields),
			 "Authorization: " S3 "host;x-amz-content-sha256;x-amz-date, Signature=00\r\n" DATE
			 "x-amz-content-sha256: %s\r\n",
			 streamed[i]);
		expect_refusal(
			"PUT /k", fields,
			"The body is signed piece by piece, which can't be done anew; turn that off in the client.");
	}
	expect_refusal("GET /",
		       "Authorization: AWS4-HMAC-SHA256 Credential=A/" SCOPE
		       "s3express/aws4_request, SignedHeaders=host, Signature=00\r\n" DATE,
		       "An S3 Express signature can't be replaced.");
}

/* ---- bodies ---- */

/* What becomes of x-amz-content-sha256. */
static void expect_hash(const char *authorization, const char *declared, bool is_known, const char *expected)
{
	char fields[512];
	snprintf(fields, sizeof(fields), "Authorization: %s, Signature=00\r\n" DATE "X-Amz-Content-Sha256: %s\r\n",
		 authorization, declared);
	struct scene s = scene_new("PUT /k", fields);
	s.body = (struct sign_body){.is_known = is_known, .sha256 = {0xab}};
	sign(&s);
	assert_int_equal(s.reason, REASON_NONE);
	assert_true(slice_eq(value_of(&s, "x-amz-content-sha256"), slice_str(expected)));
	arena_free(&s.arena);
}

#define KNOWN "ab00000000000000000000000000000000000000000000000000000000000000"
#define NAMES "host;x-amz-content-sha256;x-amz-date"

static void the_hash_of_the_body_is_what_is_sent(void **state)
{
	(void)state;
	expect_hash(S3 NAMES, EMPTY, true, KNOWN);
	expect_hash(S3 NAMES, EMPTY, false, "UNSIGNED-PAYLOAD");
	expect_hash(S3 NAMES, "UNSIGNED-PAYLOAD", true, "UNSIGNED-PAYLOAD");
	expect_hash(S3 NAMES, "STREAMING-UNSIGNED-PAYLOAD-TRAILER", true, "STREAMING-UNSIGNED-PAYLOAD-TRAILER");
	expect_hash(STS NAMES, EMPTY, true, KNOWN);
	expect_hash(STS NAMES, "UNSIGNED-PAYLOAD", false, "UNSIGNED-PAYLOAD");
}

static void a_body_that_is_not_known_is_signed_by_s3_alone(void **state)
{
	(void)state;
	static const char *const fields[] = {"Authorization: " STS "host;x-amz-date, Signature=00\r\n" DATE,
					     "Authorization: " STS NAMES ", Signature=00\r\n" DATE
					     "x-amz-content-sha256: " EMPTY "\r\n",
					     "Authorization: " S3 "host;x-amz-date, Signature=00\r\n" DATE};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct scene s = scene_new("POST /", fields[i]);
		s.body.is_known = false;
		sign(&s);
		assert_int_equal(s.reason, REASON_SECRET_SLOT);
		assert_string_equal(s.detail, "The body is too large to sign.");
		arena_free(&s.arena);
	}
}

#define PRESIGNED(service, more)                                                                          \
	"GET /k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2F20260131%2Feu-west-1%2F" service \
	"%2Faws4_request&X-Amz-Date=20260131T235959Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host" more      \
	"&X-Amz-Signature=00"

static void a_presigned_url_keeps_its_other_parameters(void **state)
{
	(void)state;
	struct scene s = scene_new(PRESIGNED("s3", "%3Brange&b=%20&a&X-Amz-Content-Sha256=" EMPTY), "");
	s.secret.key_id = SLICE("AKID+/x");
	s.body = (struct sign_body){.is_known = true, .sha256 = {0xab}};
	sign(&s);
	assert_int_equal(s.reason, REASON_NONE);
	struct slice q = s.target.query;
	assert_true(
		slice_starts(q, SLICE("?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2B%2Fx%2F20260131")));
	assert_true(has(q, "&X-Amz-SignedHeaders=host&b=%20&a&X-Amz-Content-Sha256=" KNOWN "&X-Amz-Signature="));
	assert_false(has(q, "X-Amz-Signature=00&"));
	assert_int_equal(q.len - slice_rfind(q, '=') - 1, 64);
	assert_null(message_field(&s.head, SLICE("authorization")));
	arena_free(&s.arena);
}

static void a_presigned_body_is_unsigned_at_s3_alone(void **state)
{
	(void)state;
	struct scene s = scene_new(PRESIGNED("s3", ""), "");
	s.body.is_known = false;
	sign(&s);
	assert_int_equal(s.reason, REASON_NONE);
	arena_free(&s.arena);
	s = scene_new(PRESIGNED("sts", ""), "");
	s.body.is_known = false;
	sign(&s);
	assert_int_equal(s.reason, REASON_SECRET_SLOT);
	arena_free(&s.arena);
}

/* ---- fields ---- */

static void only_fields_that_are_sent_are_signed(void **state)
{
	(void)state;
	struct scene s = scene_new(
		"POST /", "Authorization: " STS
			  "connection;content-length;expect;host;range;x-amz-date;x-cage-a, Signature=00\r\n" DATE
			  "Content-Length: 12\r\nExpect: 100-continue\r\nConnection: close\r\nx-cage-a: 1\r\n");
	struct field *before = s.head.fields;
	sign(&s);
	assert_int_equal(s.reason, REASON_NONE);
	assert_true(has(value_of(&s, "authorization"), "Credential=AKIA/" SCOPE "sts/aws4_request, "));
	assert_true(has(value_of(&s, "authorization"), "SignedHeaders=content-length;host;x-amz-date, Signature="));
	assert_ptr_not_equal(before, s.head.fields);
	arena_free(&s.arena);
}

static void content_length_is_signed_as_it_is_sent(void **state)
{
	(void)state;
	struct slice signatures[3];
	struct scene s[3];
	static const uint64_t lengths[] = {12, 13, 12};
	for (size_t i = 0; i < 3; i++) {
		s[i] = scene_new("POST /", "Authorization: " STS "content-length;host;x-amz-date, Signature=00\r\n" DATE
					   "Content-Length: 12\r\n");
		s[i].head.content_length = lengths[i];
		sign(&s[i]);
		signatures[i] = value_of(&s[i], "authorization");
	}
	assert_false(slice_eq(signatures[0], signatures[1]));
	assert_true(slice_eq(signatures[0], signatures[2]));
	for (size_t i = 0; i < 3; i++)
		arena_free(&s[i].arena);
}

static void no_memory_is_no_signature(void **state)
{
	(void)state;
	size_t limit = 0;
	enum reason last = REASON_INTERNAL;
	for (; last != REASON_NONE && limit < 65536; limit += 64) {
		struct scene s = scene_new(PRESIGNED("s3", ""), "x-amz-content-sha256: " EMPTY "\r\n");
		struct arena small;
		arena_init(&small, limit);
		last = sign_sigv4(&s.secret, SLICE("value"), &s.body, &s.head, &s.target, &small, &s.detail);
		assert_true(last == REASON_NONE || last == REASON_INTERNAL || last == REASON_SECRET_SLOT);
		arena_free(&small);
		arena_free(&s.arena);
	}
	assert_int_equal(last, REASON_NONE);
}

/* ---- HMAC ---- */

static void expect_hmac(const struct policy_hmac *h, const char *expected)
{
	struct scene s =
		scene_new("POST /a%2fb?x=1&y", "X-Time: 17\r\nX-Signature: client\r\nx-two: 1\r\nX-Two: 2\r\n");
	struct policy_secret secret = {.use = SECRET_HMAC, .hmac = h};
	size_t n = 0;
	assert_int_equal(sign_hmac(&secret, SLICE("key"), SLICE("the body"), &s.head, &s.target, &s.arena, &s.detail),
			 REASON_NONE);
	for (size_t i = 0; i < s.head.n_fields; i++)
		n += slice_ieq(s.head.fields[i].name, h->header);
	assert_int_equal(n, 1);
	struct slice got = value_of(&s, "x-signature");
	if (!slice_eq(got, slice_str(expected)))
		fail_msg("got %.*s", SLICE_FMT(got));
	arena_free(&s.arena);
}

/* The sums are those of `printf ... | openssl dgst -sha256 -hmac key`. */
static void a_field_is_signed_as_the_policy_says(void **state)
{
	(void)state;
	struct policy_hmac h = {.header = SLICE("x-signature"), .prefix = SLICE("sha256="), .n_parts = 1};
	h.parts[0].what = HMAC_BODY;
	expect_hmac(&h, "sha256=766e3062c02ff2e047a0ceaef55f3bffaec0c22e53beed48a41c9f63c5761fed");
	h.prefix = SLICE_NONE;
	h.base64 = true;
	expect_hmac(&h, "dm4wYsAv8uBHoM6u9V87/67Awi5Tvu1IpByfY8V2H+0=");
	struct policy_hmac all = {.header = SLICE("X-Signature"), .joiner = SLICE("\n"), .n_parts = 7};
	static const enum hmac_part parts[] = {HMAC_METHOD, HMAC_PATH,   HMAC_QUERY, HMAC_HOST,
					       HMAC_HEADER, HMAC_HEADER, HMAC_BODY};
	for (size_t i = 0; i < 7; i++)
		all.parts[i].what = parts[i];
	all.parts[4].name = SLICE("x-time");
	all.parts[5].name = SLICE("x-two");
	expect_hmac(&all, "03f88bfaa564da55249735e232e615f4d389182d2817b6bd87da637695dce976");
}

static void a_field_that_is_to_be_signed_must_be_there(void **state)
{
	(void)state;
	struct policy_hmac h = {.header = SLICE("x-signature"), .n_parts = 1};
	struct policy_secret secret = {.use = SECRET_HMAC, .hmac = &h};
	struct scene s = scene_new("GET /", "");
	h.parts[0].what = HMAC_HEADER;
	h.parts[0].name = SLICE("x-time");
	assert_int_equal(sign_hmac(&secret, SLICE("key"), SLICE_NONE, &s.head, &s.target, &s.arena, &s.detail),
			 REASON_SECRET_SLOT);
	assert_string_equal(s.detail, "The request lacks a field that is to be signed.");
	assert_null(message_field(&s.head, SLICE("x-signature")));
	arena_free(&s.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_signature_is_refused),
		cmocka_unit_test(a_malformed_signature_is_refused),
		cmocka_unit_test(signatures_that_cant_be_made_anew_are_refused),
		cmocka_unit_test(the_hash_of_the_body_is_what_is_sent),
		cmocka_unit_test(a_body_that_is_not_known_is_signed_by_s3_alone),
		cmocka_unit_test(a_presigned_url_keeps_its_other_parameters),
		cmocka_unit_test(a_presigned_body_is_unsigned_at_s3_alone),
		cmocka_unit_test(only_fields_that_are_sent_are_signed),
		cmocka_unit_test(content_length_is_signed_as_it_is_sent),
		cmocka_unit_test(no_memory_is_no_signature),
		cmocka_unit_test(a_field_is_signed_as_the_policy_says),
		cmocka_unit_test(a_field_that_is_to_be_signed_must_be_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
