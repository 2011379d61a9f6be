/* What content_type makes of claims and bodies that don't fit each other, and of those that do. */
#include "tests/unit/inspectors/corpus.h"
#include "inspectors/table.h"

#define ELF    \
	"\x7f" \
	"ELF\2\1\1\0\0\0\0\0"
#define ZIP "PK\3\4\x14\0\0\0\x08\0"
#define GZIP "\x1f\x8b\x08\0\0\0\0\0\0\3"
#define PNG "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
#define PART "--xyz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--xyz--\r\n"

/* The worst of what is found about a body of that type, cut into pieces of that size; type NULL: there is none. */
static enum inspect_action judged_in(const char *type, struct slice body, size_t size, enum inspect_action action)
{
	struct inspection i;
	enum inspect_action worst = ACTION_OFF;
	stub_begin(&i, &content_type_inspector);
	i.action = action;
	if (type)
		stub_field(&i, SLICE("Content-Type"), slice_str(type));
	stub_head(&i);
	stub_body(&i, body, size);
	for (size_t k = 0; k < i.n_findings; k++) {
		assert_int_equal(i.findings[k].reason, REASON_TYPE_MISMATCH);
		if (i.findings[k].action > worst)
			worst = i.findings[k].action;
	}
	stub_finish(&i);
	return worst;
}

static void assert_judged(const char *type, struct slice body, enum inspect_action wanted)
{
	for (size_t size = 0; size <= body.len; size++)
		if (judged_in(type, body, size, ACTION_BLOCK) != wanted)
			fail_msg("%s with %.12s in pieces of %zu", type ? type : "no type", body.ptr, size);
	if (wanted == ACTION_BLOCK)
		assert_int_equal(judged_in(type, body, 0, ACTION_FLAG), ACTION_FLAG);
	else
		assert_int_equal(judged_in(type, body, 0, ACTION_FLAG), wanted);
}

#define JUDGED(type, body, wanted) assert_judged(type, SLICE(body), wanted)

static void test_text_claims(void **state)
{
	(void)state;
	JUDGED("text/plain", "hello", ACTION_OFF);
	JUDGED("application/json", "{\"a\":1}", ACTION_OFF);
	JUDGED("application/json", "not json, but text", ACTION_OFF);
	JUDGED("text/plain", ELF, ACTION_BLOCK);
	JUDGED("application/json", ZIP, ACTION_BLOCK);
	JUDGED("Application/JSON; charset=utf-8", GZIP, ACTION_BLOCK);
	JUDGED("application/vnd.api+json", GZIP, ACTION_BLOCK);
	JUDGED("image/svg+xml", ZIP, ACTION_BLOCK);
	JUDGED("application/x-www-form-urlencoded", GZIP, ACTION_BLOCK);
	JUDGED("text/html", PNG, ACTION_FLAG);
	JUDGED("application/json", "\1\2\3\4\5", ACTION_FLAG);
	JUDGED("text/plain", "%PDF-1.4\n", ACTION_FLAG);
	JUDGED("text/plain", PART, ACTION_FLAG);
	JUDGED("text/plain", "", ACTION_OFF);
	JUDGED("text/plain", "0032want 0123456789abcdef0123456789abcdef01234567\n0000", ACTION_OFF);
}

static void test_scripts(void **state)
{
	(void)state;
	JUDGED("text/x-shellscript", "#!/bin/sh\necho\n", ACTION_OFF);
	JUDGED("text/plain", "#!/bin/sh\necho\n", ACTION_OFF);
	JUDGED("application/javascript", "#!/usr/bin/env node\n", ACTION_OFF);
	JUDGED("application/json", "#!/bin/sh\necho\n", ACTION_FLAG);
	JUDGED("image/png", "#!/bin/sh\necho\n", ACTION_BLOCK);
}

static void test_image_claims(void **state)
{
	(void)state;
	JUDGED("image/png", PNG, ACTION_OFF);
	JUDGED("image/jpeg", PNG, ACTION_OFF);
	JUDGED("image/x-unknown", "\1\2\3\4\5\6", ACTION_OFF);
	JUDGED("IMAGE/PNG", "text", ACTION_FLAG);
	JUDGED("image/png", "{\"a\":1}", ACTION_FLAG);
	JUDGED("image/png", ZIP, ACTION_BLOCK);
	JUDGED("image/png", ELF, ACTION_BLOCK);
	JUDGED("image/svg+xml", "<svg>", ACTION_OFF);
}

static void test_other_claims(void **state)
{
	(void)state;
	JUDGED("application/octet-stream", ELF, ACTION_OFF);
	JUDGED("application/octet-stream", "text", ACTION_OFF);
	JUDGED("application/x-git-receive-pack-request", "PACK\0\0\0\2", ACTION_OFF);
	JUDGED("application/vnd.oci.image.layer.v1.tar+gzip", GZIP, ACTION_OFF);
	JUDGED("audio/mpeg", "ID3\4\0\0", ACTION_OFF);
	JUDGED("audio/mpeg", ZIP, ACTION_FLAG);
	JUDGED("video/mp4", "text", ACTION_FLAG);
	JUDGED("audio/x-mpegurl", "#EXTM3U\n", ACTION_OFF);
	JUDGED("font/woff2", "wOF2\0\1", ACTION_OFF);
	JUDGED("application/pdf", "%PDF-1.4\n", ACTION_OFF);
	JUDGED("application/pdf", "text", ACTION_FLAG);
	JUDGED("application/zip", ZIP, ACTION_OFF);
	JUDGED("application/zip", ELF, ACTION_FLAG);
}

static void test_framed_claims(void **state)
{
	(void)state;
	JUDGED("application/grpc", "text", ACTION_OFF);
	JUDGED("application/grpc+proto", "\x08\1", ACTION_OFF);
	JUDGED("application/grpc+json", "{}", ACTION_OFF);
	JUDGED("application/grpc+json", "\x08\1", ACTION_FLAG);
	JUDGED("application/grpc-web", "text", ACTION_OFF);
	JUDGED("application/grpc-web+json", "\x08\1", ACTION_FLAG);
	JUDGED("application/connect+proto", "\x08\1", ACTION_OFF);
	JUDGED("application/connect+json", "{}", ACTION_OFF);
	JUDGED("application/grpc-web-text", "AAAAAAIIAQ==", ACTION_OFF);
	JUDGED("multipart/form-data; boundary=xyz", PART, ACTION_OFF);
	JUDGED("multipart/form-data; charset=utf-8; Boundary=\"xyz\"", PART, ACTION_OFF);
	JUDGED("multipart/form-data; boundary=xyz", "\r\n" PART, ACTION_OFF);
	JUDGED("multipart/form-data; boundary=other", PART, ACTION_FLAG);
	JUDGED("multipart/form-data", PART, ACTION_FLAG);
	JUDGED("multipart/form-data; boundary=xyz", ZIP, ACTION_FLAG);
}

static void test_no_claim(void **state)
{
	(void)state;
	JUDGED(NULL, "text", ACTION_OFF);
	JUDGED(NULL, ZIP, ACTION_OFF);
	JUDGED(NULL, ELF, ACTION_FLAG);
}

static void test_malformed_claims(void **state)
{
	(void)state;
	static const char *const types[] = {"",     "text", "text/", "/plain", "text/plain, text/html", "text /plain",
					    "a/b/c"};
	for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++)
		JUDGED(types[k], "text", ACTION_FLAG);
}

/* The second type does not hide what the first one says, nor the first the second. */
static void test_several_claims(void **state)
{
	(void)state;
	static const char *const types[2][2] = {{"application/octet-stream", "text/plain"},
						{"text/plain", "application/octet-stream"}};
	for (size_t k = 0; k < 2; k++) {
		struct inspection i;
		stub_begin(&i, &content_type_inspector);
		stub_field(&i, SLICE("content-type"), slice_str(types[k][0]));
		stub_field(&i, SLICE("Content-TYPE"), slice_str(types[k][1]));
		stub_head(&i);
		assert_int_equal(i.n_findings, 1);
		assert_int_equal(i.findings[0].action, ACTION_FLAG);
		assert_int_equal(i.findings[0].spot.place, PLACE_HEADER);
		stub_body(&i, SLICE(ELF), 1);
		assert_int_equal(i.n_findings, 2);
		assert_int_equal(i.findings[1].action, ACTION_BLOCK);
		assert_int_equal(i.findings[1].spot.place, PLACE_BODY);
		stub_finish(&i);
	}
}

/* It is decided at SNIFF_BYTES, whatever comes then; a body of one byte less is decided at its end. */
static void test_long_bodies(void **state)
{
	(void)state;
	static char body[3 * 1024];
	memset(body, 'a', sizeof(body));
	memcpy(body, PNG, 8);
	for (size_t n = 1022; n <= 1026; n++)
		for (size_t size = 1; size < n; size += 7)
			assert_int_equal(judged_in("text/plain", slice_of(body, n), size, ACTION_BLOCK), ACTION_FLAG);
	assert_int_equal(judged_in("text/plain", slice_of(body, sizeof(body)), 1000, ACTION_BLOCK), ACTION_FLAG);
}

static void look(const struct corpus_item *item)
{
	static const size_t sizes[] = {0, 1, 1000, 16384};
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size_t n = sizes[k] == 1 && item->len > 4096 ? 4096 : item->len;
		if (judged_in(item->content_type, slice_of(item->body, n), sizes[k], ACTION_BLOCK) != ACTION_OFF)
			fail_msg("%s as %s", item->file, item->content_type);
	}
}

static void test_corpus(void **state)
{
	(void)state;
	corpus_each(look);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_claims),      cmocka_unit_test(test_scripts),
		cmocka_unit_test(test_image_claims),     cmocka_unit_test(test_other_claims),
		cmocka_unit_test(test_framed_claims),    cmocka_unit_test(test_no_claim),
		cmocka_unit_test(test_malformed_claims), cmocka_unit_test(test_several_claims),
		cmocka_unit_test(test_long_bodies),      cmocka_unit_test(test_corpus),
	};
	return corpus_exit(cmocka_run_group_tests(tests, NULL, NULL));
}
