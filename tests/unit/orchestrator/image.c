/* Names of images, payloads of signatures, and the manifest of a local image: one row for each way to be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
/* after them */
#include <cmocka.h>

#include "orchestrator/image/admit.h"
#include "orchestrator/image/payload.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define AT "@sha256:" HEX
#define OTHER_AT "@sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define UPPER "@sha256:0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF"

static const struct row {
	const char *text;
	enum image_form form;
	const char *registry, *repository;
} rows[] = {
	{"r.test/org/agent" AT, IMAGE_FORM_GOOD, "r.test", "org/agent"},
	{"r.test:5000/a" AT, IMAGE_FORM_GOOD, "r.test:5000", "a"},
	{"r:5000/a" AT, IMAGE_FORM_GOOD, "r:5000", "a"},
	{"localhost/a" AT, IMAGE_FORM_GOOD, "localhost", "a"},
	{"127.0.0.1:5000/a" AT, IMAGE_FORM_GOOD, "127.0.0.1:5000", "a"},
	{"r.test/a-b--c_d__e.f/0" AT, IMAGE_FORM_GOOD, "r.test", "a-b--c_d__e.f/0"},
	/* without a digest */
	{"r.test/org/agent", IMAGE_FORM_UNPINNED, NULL, NULL},
	{"r.test/org/agent:1.0", IMAGE_FORM_UNPINNED, NULL, NULL},
	{"r.test:5000/agent", IMAGE_FORM_UNPINNED, NULL, NULL},
	{"r.test:5000/agent:latest", IMAGE_FORM_UNPINNED, NULL, NULL},
	/* tags beside a digest, several digests, other digests */
	{"r.test/a:1" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a" AT AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a@", IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a@sha256:" HEX "0", IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a@sha256:0123", IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a@sha512:" HEX HEX, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a@SHA256:" HEX, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a" UPPER, IMAGE_FORM_MALFORMED, NULL, NULL},
	/* registries that others would fill in, or read in another way */
	{"a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"org/agent" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"R.test/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test./a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{".r.test/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r..test/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"-r.test/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r_x.test/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test:/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test:0/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test:0443/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test:65536/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test:1:2/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"[::1]:5000/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"user@r.test/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"user:pw@r.test/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"https://r.test/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"docker://r.test/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	/* repositories */
	{"r.test/" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test//a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a/" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/A" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/../a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a..b" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a___b" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a-" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/*" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a%2fb" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a b" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"r.test/a" AT "\n", IMAGE_FORM_MALFORMED, NULL, NULL},
	{" r.test/a" AT, IMAGE_FORM_MALFORMED, NULL, NULL},
	{"", IMAGE_FORM_MALFORMED, NULL, NULL},
	{"@", IMAGE_FORM_MALFORMED, NULL, NULL},
	{"/", IMAGE_FORM_MALFORMED, NULL, NULL},
	{"--privileged", IMAGE_FORM_MALFORMED, NULL, NULL},
};

static void references(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct image_reference r;
		const char *why = NULL;
		enum image_form form = image_reference_parse(slice_str(rows[i].text), &r, &why);
		if (form != rows[i].form || (form == IMAGE_FORM_GOOD) != !why)
			fail_msg("%s: %d, %s", rows[i].text, (int)form, why ? why : "");
		if (form != IMAGE_FORM_GOOD)
			continue;
		assert_true(slice_eq(r.registry, slice_str(rows[i].registry)));
		assert_true(slice_eq(r.repository, slice_str(rows[i].repository)));
		assert_true(slice_eq(r.digest, SLICE("sha256:" HEX)));
	}
}

static void references_are_bounded(void **state)
{
	(void)state;
	char name[LIMIT_IMAGE_REFERENCE + 200], label[64];
	struct image_reference r;
	const char *why;
	memset(label, 'a', sizeof(label));
	for (int extra = 0; extra < 2; extra++) {
		snprintf(name, sizeof(name), "%.*s.test/a" AT, 63 + extra, label);
		assert_int_equal(image_reference_parse(slice_str(name), &r, &why),
				 extra ? IMAGE_FORM_MALFORMED : IMAGE_FORM_GOOD);
	}
	memset(name, 'a', LIMIT_IMAGE_REFERENCE + 1);
	assert_int_equal(image_reference_parse(slice_of(name, LIMIT_IMAGE_REFERENCE + 1), &r, &why),
			 IMAGE_FORM_MALFORMED);
	assert_string_equal(why, "the image's name is too long");
}

#define IDENTITY "\"identity\":{\"docker-reference\":\"r.test/a\"}"
#define IMAGE "\"image\":{\"docker-manifest-digest\":\"sha256:" HEX "\"}"
#define TYPE "\"type\":\"cosign container image signature\""
#define CRITICAL "\"critical\":{" IDENTITY "," IMAGE "," TYPE "}"

static const struct payload_row {
	const char *text;
	bool is_good;
} payloads[] = {
	{"{" CRITICAL "}", true},
	{"{" CRITICAL ",\"optional\":null}", true},
	{"{" CRITICAL ",\"optional\":{\"creator\":\"x\",\"timestamp\":1}}\n", true},
	{"", false},
	{"[]", false},
	{"null", false},
	{"{" CRITICAL "} x", false},
	{"{" CRITICAL ",\"more\":1}", false},
	{"{" CRITICAL "," CRITICAL "}", false},
	{"{\"critical\":{" IDENTITY "," IMAGE "," IMAGE "," TYPE "}}", false},
	{"{\"critical\":{" IDENTITY "," IMAGE "," TYPE ",\"more\":1}}", false},
	{"{\"critical\":{" IDENTITY "," IMAGE "}}", false},
	{"{\"critical\":{" IDENTITY "," TYPE ",\"x\":1}}", false},
	{"{\"critical\":{" IMAGE "," TYPE ",\"x\":1}}", false},
	{"{\"critical\":{" IDENTITY "," IMAGE ",\"type\":\"other\"}}", false},
	{"{\"critical\":{" IDENTITY "," IMAGE ",\"type\":1}}", false},
	{"{\"critical\":{\"identity\":{\"docker-reference\":1}," IMAGE "," TYPE "}}", false},
	{"{\"critical\":{\"identity\":{\"docker-reference\":\"a\\u0000\"}," IMAGE "," TYPE "}}", false},
	{"{\"critical\":{\"identity\":{}," IMAGE "," TYPE "}}", false},
	{"{\"critical\":{\"identity\":\"r.test/a\"," IMAGE "," TYPE "}}", false},
};

static void payloads_are_read_strictly(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		struct image_claim claim;
		const char *why = NULL;
		bool ok = payload_read(slice_str(payloads[i].text), &claim, &why);
		if (ok != payloads[i].is_good || ok != !why)
			fail_msg("%s: %s", payloads[i].text, why ? why : "taken");
		if (ok)
			assert_string_equal(claim.name, "r.test/a");
	}
}

static void payloads_are_bounded(void **state)
{
	(void)state;
	static char text[LIMIT_IMAGE_PAYLOAD + 1];
	struct image_claim claim;
	const char *why;
	memset(text, ' ', sizeof(text));
	memcpy(text, payloads[0].text, strlen(payloads[0].text));
	assert_true(payload_read(slice_of(text, LIMIT_IMAGE_PAYLOAD), &claim, &why));
	assert_false(payload_read(slice_of(text, LIMIT_IMAGE_PAYLOAD + 1), &claim, &why));
	assert_string_equal(why, "its payload is too long");
}

static void a_payload_is_about_one_image(void **state)
{
	(void)state;
	static const char *const others[] = {"r.test/b" AT, "s.test/a" AT, "r.test/a/b" AT, ("r.test/a" OTHER_AT)};
	struct image_claim claim;
	struct image_reference r;
	const char *why;
	assert_true(payload_read(slice_str(payloads[0].text), &claim, &why));
	image_reference_parse(SLICE("r.test/a" AT), &r, &why);
	assert_true(payload_is_about(&claim, &r));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(image_reference_parse(slice_str(others[i]), &r, &why), IMAGE_FORM_GOOD);
		assert_false(payload_is_about(&claim, &r));
	}
}

/* The reason, for a manifest under the name that its own digest gives it, or another. */
static enum image_reason local(const char *manifest, const char *digest, const char *id)
{
	char name[200], own[IMAGE_DIGEST_ROOM];
	struct image_verdict v;
	assert_true(image_digest_of(slice_str(manifest), own));
	snprintf(name, sizeof(name), "r.test/a@%s", digest ? digest : own);
	bool ok = image_check_local(slice_str(name), slice_str(manifest), slice_str(id), &v);
	assert_int_equal(ok, v.reason == IMAGE_ADMITTED);
	return v.reason;
}

static void the_local_image_is_the_one(void **state)
{
	(void)state;
	static const char manifest[] = "{\"schemaVersion\":2,\"config\":{\"digest\":\"sha256:" HEX "\"}}";
	char own[IMAGE_DIGEST_ROOM];
	assert_true(image_digest_of(SLICE("abc"), own));
	assert_string_equal(own, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_int_equal(local(manifest, NULL, HEX), IMAGE_ADMITTED);
	assert_int_equal(local(manifest, NULL, "sha256:" HEX), IMAGE_ADMITTED);
	assert_int_equal(local(manifest, "sha256:" HEX, HEX), IMAGE_MISMATCH);
	assert_int_equal(local(manifest, "latest", HEX), IMAGE_MALFORMED);
	assert_int_equal(local(manifest, NULL, "0" HEX), IMAGE_MISMATCH);
	assert_int_equal(local(manifest, NULL, ""), IMAGE_MISMATCH);
	assert_int_equal(local("{}", NULL, ""), IMAGE_MISMATCH);
	assert_int_equal(local("x", NULL, HEX), IMAGE_MISMATCH);
	assert_int_equal(local("", NULL, HEX), IMAGE_MISMATCH);
	assert_int_equal(local("{\"manifests\":[],\"config\":{\"digest\":\"sha256:" HEX "\"}}", NULL, HEX),
			 IMAGE_MISMATCH);
}

#define ANNOTATED(text) "{\"config\":{\"digest\":\"sha256:" HEX "\"},\"annotations\":" text "}"

static void what_a_runtime_might_obey_is_refused(void **state)
{
	(void)state;
	assert_int_equal(local(ANNOTATED("{\"org.opencontainers.image.title\":\"a\"}"), NULL, HEX), IMAGE_ADMITTED);
	assert_int_equal(local(ANNOTATED("{}"), NULL, HEX), IMAGE_ADMITTED);
	assert_int_equal(local(ANNOTATED("{\"run.oci.keep_original_groups\":\"1\"}"), NULL, HEX), IMAGE_ANNOTATED);
	assert_int_equal(local(ANNOTATED("{\"org.opencontainers.image.title\":\"a\",\"io.podman.x\":\"\"}"), NULL, HEX),
			 IMAGE_ANNOTATED);
}

/* Go reads keys whatever their case, and even a long s for an s. */
static void keys_are_spelled_as_they_have_to_be(void **state)
{
	static const char *const wrong[] = {
		"{\"config\":{\"digest\":\"sha256:" HEX "\"},\"Annotations\":{\"run.oci.handler\":\"x\"}}",
		"{\"config\":{\"digest\":\"sha256:" HEX "\"},\"annotation\u017f\":{\"run.oci.handler\":\"x\"}}",
		"{\"config\":{\"digest\":\"sha256:" HEX "\"},\"CONFIG\":{\"digest\":\"sha256:" HEX "\"}}",
		"{\"config\":{\"digest\":\"sha256:" HEX "\",\"Digest\":\"sha256:0\"}}",
		"{\"config\":{\"digest\":\"sha256:" HEX "\"},\"layers\":[{\"digest\":\"a\",\"Size\":1}]}",
		"{\"config\":{\"digest\":\"sha256:" HEX "\"},\"subject\":{\"Annotations\":{}}}",
		"{\"config\":{\"digest\":\"sha256:" HEX "\"},\"x-other\":1}",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(local(wrong[i], NULL, HEX), IMAGE_ANNOTATED);
	assert_int_equal(
		local("{\"config\":{\"digest\":\"sha256:" HEX "\"},\"annotations\":{},\"annotations\":{}}", NULL, HEX),
		IMAGE_MISMATCH);
	assert_int_equal(local("{\"schemaVersion\":2,\"mediaType\":\"m\",\"config\":{\"mediaType\":\"m\",\"size\":1,"
			       "\"digest\":\"sha256:" HEX
			       "\"},\"layers\":[{\"mediaType\":\"m\",\"size\":1,\"digest\":\"d\"}]}",
			       NULL, HEX),
			 IMAGE_ADMITTED);
}

static void manifests_are_bounded(void **state)
{
	(void)state;
	static char text[LIMIT_IMAGE_MANIFEST + 2];
	static const char manifest[] = "{\"config\":{\"digest\":\"sha256:" HEX "\"}}";
	memset(text, ' ', LIMIT_IMAGE_MANIFEST + 1);
	memcpy(text, manifest, sizeof(manifest) - 1);
	assert_int_equal(local(text, NULL, HEX), IMAGE_MISMATCH);
	text[LIMIT_IMAGE_MANIFEST] = '\0';
	assert_int_equal(local(text, NULL, HEX), IMAGE_ADMITTED);
}

/* Each once, and in the list for users. */
static void reasons_are_documented(void **state)
{
	(void)state;
	static char text[65536];
	FILE *f = fopen(CAGE_SOURCE_DIR "/docs/admission.md", "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	size_t rows_in_docs = 0;
	for (const char *at = text; (at = strstr(at, "\n| `image.")); at++)
		rows_in_docs++;
	assert_int_equal(rows_in_docs, IMAGE_ADMITTED);
	for (int r = 0; r < IMAGE_ADMITTED; r++) {
		char row[64];
		snprintf(row, sizeof(row), "\n| `%s` |", image_reason_code((enum image_reason)r));
		if (!strstr(text, row))
			fail_msg("docs/admission.md has no row%s", row);
	}
	assert_string_equal(image_reason_code(IMAGE_ADMITTED), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(references),
					   cmocka_unit_test(references_are_bounded),
					   cmocka_unit_test(payloads_are_read_strictly),
					   cmocka_unit_test(payloads_are_bounded),
					   cmocka_unit_test(a_payload_is_about_one_image),
					   cmocka_unit_test(the_local_image_is_the_one),
					   cmocka_unit_test(what_a_runtime_might_obey_is_refused),
					   cmocka_unit_test(keys_are_spelled_as_they_have_to_be),
					   cmocka_unit_test(manifests_are_bounded),
					   cmocka_unit_test(reasons_are_documented)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
