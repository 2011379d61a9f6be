/* Content codings undone: the same bytes and the same refusals wherever the body is cut. */
#include "tests/unit/http/decode.h"

static void each_coding(void **state)
{
	(void)state;
	struct bytes text = make_text(150000);
	const struct slice contents[] = {hello, SLICE(""), SLICE("x"), bytes_slice(&text)};
	for (enum kind k = GZIP; k < KINDS; k++) {
		for (size_t i = 0; i < COUNT(contents); i++) {
			struct bytes body = encode(k, contents[i]);
			assert_decodes(kind_name[k], bytes_slice(&body), contents[i]);
			bytes_free(&body);
		}
	}
	bytes_free(&text);
}

static void stacked_three_deep(void **state)
{
	(void)state;
	struct bytes text = make_text(50000);
	const struct slice contents[] = {hello, bytes_slice(&text)};
	for (unsigned i = 0; i < KINDS * KINDS * KINDS; i++) {
		enum kind k[] = {i % KINDS, i / KINDS % KINDS, i / KINDS / KINDS};
		char codings[64];
		snprintf(codings, sizeof(codings), "%s, %s, %s", kind_name[k[0]], kind_name[k[1]], kind_name[k[2]]);
		struct bytes first = encode(k[0], contents[i % 2]);
		struct bytes second = encode(k[1], bytes_slice(&first));
		struct bytes third = encode(k[2], bytes_slice(&second));
		assert_decodes(codings, bytes_slice(&third), contents[i % 2]);
		bytes_free(&first);
		bytes_free(&second);
		bytes_free(&third);
	}
	bytes_free(&text);
}

static void names(void **state)
{
	(void)state;
	static const char *const gzips[] = {"gzip",  "x-gzip",          "GZip",          " X-GZIP\t",     ",gzip",
					    "gzip,", ", ,\t,gzip , ,,", "gzip,identity", "Identity, gzip"};
	struct bytes body = encode(GZIP, hello);
	for (size_t i = 0; i < COUNT(gzips); i++)
		assert_decodes(gzips[i], bytes_slice(&body), hello);
	bytes_free(&body);
}

static void nothing_to_undo(void **state)
{
	(void)state;
	static const char *const lists[] = {"",       " ",        ",",
					    " ,\t, ", "identity", "IDENTITY , identity,identity,identity"};
	for (size_t i = 0; i < COUNT(lists); i++) {
		struct decoder *d = (struct decoder *)&o;
		assert_int_equal(decoder_new(slice_str(lists[i]), collect, &o, &d), CAGE_OK);
		assert_null(d);
		decoder_free(&d);
	}
}

static void t26_unknown_or_too_many(void **state)
{
	(void)state;
	const struct slice lists[] = {SLICE("compress"),
				      SLICE("gzi"),
				      SLICE("gzipp"),
				      SLICE("x-br"),
				      SLICE("gzip;q=1"),
				      SLICE("\"gzip\""),
				      SLICE("gzip br"),
				      SLICE("gz\0ip"),
				      SLICE("gzip\0"),
				      SLICE("gzip, rot13"),
				      SLICE("*"),
				      SLICE("gzip,gzip,gzip,gzip"),
				      SLICE("br,identity,zstd,deflate,,gzip")};
	for (size_t i = 0; i < COUNT(lists); i++) {
		struct decoder *d = (struct decoder *)&o;
		assert_int_equal(decoder_new(lists[i], collect, &o, &d), CAGE_EPROTO);
		assert_null(d);
	}
}

static void empty_body(void **state)
{
	(void)state;
	for (enum kind k = GZIP; k < KINDS; k++)
		assert_decodes(kind_name[k], SLICE(""), SLICE(""));
	assert_decodes("gzip, br, zstd", SLICE(""), SLICE(""));
}

/* A stack whose inner coding has no bytes at all was cut off inside. */
static void t26_empty_inside(void **state)
{
	(void)state;
	for (enum kind k = GZIP; k < KINDS; k++) {
		char codings[32];
		snprintf(codings, sizeof(codings), "%s, gzip", kind_name[k]);
		struct bytes body = encode(GZIP, SLICE(""));
		assert_refused(codings, bytes_slice(&body), CAGE_EPROTO);
		bytes_free(&body);
	}
}

static void t26_truncated(void **state)
{
	(void)state;
	for (enum kind k = GZIP; k < KINDS; k++) {
		struct bytes body = encode(k, hello);
		for (size_t n = 1; n < body.len; n++)
			assert_refused(kind_name[k], slice_head(bytes_slice(&body), n), CAGE_EPROTO);
		struct bytes outer = encode(BR, slice_head(bytes_slice(&body), body.len - 1));
		char codings[32];
		snprintf(codings, sizeof(codings), "%s, br", kind_name[k]);
		assert_refused(codings, bytes_slice(&outer), CAGE_EPROTO);
		bytes_free(&outer);
		bytes_free(&body);
	}
}

static void t26_trailing_bytes(void **state)
{
	(void)state;
	for (enum kind k = GZIP; k < KINDS; k++) {
		struct bytes body = encode(k, hello);
		for (int byte = 0; byte < 256; byte++) {
			char rest[] = {(char)byte, 0};
			struct bytes longer = bytes_join(bytes_slice(&body), slice_of(rest, 1));
			assert_refused(kind_name[k], bytes_slice(&longer), CAGE_EPROTO);
			bytes_free(&longer);
		}
		struct bytes longer = bytes_join(bytes_slice(&body), hello);
		assert_refused(kind_name[k], bytes_slice(&longer), CAGE_EPROTO);
		bytes_free(&longer);
		bytes_free(&body);
	}
}

/* gzip members and zstd frames may follow each other; the other codings have one end. */
static void one_behind_the_other(void **state)
{
	(void)state;
	struct bytes wanted = bytes_join(hello, SLICE("second"));
	for (enum kind k = GZIP; k < KINDS; k++) {
		struct bytes first = encode(k, hello), second = encode(k, SLICE("second"));
		struct bytes both = bytes_join(bytes_slice(&first), bytes_slice(&second));
		if (k == GZIP || k == ZSTD)
			assert_decodes(kind_name[k], bytes_slice(&both), bytes_slice(&wanted));
		else
			assert_refused(kind_name[k], bytes_slice(&both), CAGE_EPROTO);
		bytes_free(&first);
		bytes_free(&second);
		bytes_free(&both);
	}
	bytes_free(&wanted);
}

static void zstd_skippable_frames(void **state)
{
	(void)state;
	const struct slice skip = SLICE("\x5a\x2a\x4d\x18\x05\0\0\0xxxxx");
	struct bytes frame = encode(ZSTD, hello);
	struct bytes front = bytes_join(skip, bytes_slice(&frame));
	struct bytes around = bytes_join(bytes_slice(&front), skip);
	assert_decodes("zstd", skip, SLICE(""));
	assert_decodes("zstd", bytes_slice(&front), hello);
	assert_decodes("zstd", bytes_slice(&around), hello);
	assert_refused("zstd", slice_head(bytes_slice(&around), around.len - 1), CAGE_EPROTO);
	bytes_free(&frame);
	bytes_free(&front);
	bytes_free(&around);
}

static void t26_mislabelled(void **state)
{
	(void)state;
	struct bytes text = make_text(5000);
	const struct slice contents[] = {hello, bytes_slice(&text), SLICE("")};
	for (size_t i = 0; i < COUNT(contents); i++) {
		for (unsigned j = 0; j < KINDS * KINDS; j++) {
			const char *name = kind_name[j % KINDS], *real = kind_name[j / KINDS];
			struct bytes body = encode(j / KINDS, contents[i]);
			if (strcmp(name, real) != 0)
				assert_refused(name, bytes_slice(&body), CAGE_EPROTO);
			bytes_free(&body);
		}
	}
	for (enum kind k = GZIP; k < KINDS; k++) {
		assert_refused(kind_name[k], hello, CAGE_EPROTO);
		assert_refused(kind_name[k], bytes_slice(&text), CAGE_EPROTO);
	}
	bytes_free(&text);
}

static void t26_wrong_checksum(void **state)
{
	(void)state;
	static const enum kind kinds[] = {GZIP, ZLIB, ZSTD};
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct bytes body = encode(kinds[i], hello);
		body.ptr[body.len - 1] ^= 1;
		assert_refused(kind_name[kinds[i]], bytes_slice(&body), CAGE_EPROTO);
		bytes_free(&body);
	}
}

/* ---- deflate: zlib or raw ---- */

static void raw_deflate_that_starts_like_zlib(void **state)
{
	(void)state;
	/* A stored block, with a bit set in its padding: the method of a zlib head, but not its check. */
	assert_decodes("deflate", SLICE("\x08\x05\x00\xfa\xffhello\x01\x00\x00\xff\xff"), SLICE("hello"));
	/* With a window that zlib does not have. */
	assert_decodes("deflate",
		       SLICE("\x88\x1c\x00\xe3\xff"
			     "0123456789012345678901234567"
			     "\x03\x00"),
		       SLICE("0123456789012345678901234567"));
}

/* Good as zlib, and good as the start of a raw stream that says something else. */
static void t26_deflate_of_two_meanings(void **state)
{
	(void)state;
	const size_t len = 0xff63;
	struct bytes content = bytes_new(len);
	memset(content.ptr, 'a', len);
	struct bytes head = bytes_join(SLICE("\x78\x9c\x00\x63\xff\x9c\x00"), bytes_slice(&content));
	struct bytes body = bytes_join(bytes_slice(&head), SLICE("\x01\x00\x00\xff\xff????"));
	uint32_t sum = (uint32_t)adler32(1, (const Bytef *)content.ptr, (uInt)len);
	for (size_t i = 0; i < 4; i++)
		body.ptr[body.len - 4 + i] = (char)(sum >> (24 - 8 * i));
	uLongf got = len;
	assert_int_equal(uncompress((Bytef *)content.ptr, &got, (const Bytef *)body.ptr, body.len), Z_OK);
	assert_refused("deflate", bytes_slice(&body), CAGE_EPROTO);
	bytes_free(&content);
	bytes_free(&head);
	bytes_free(&body);
}

static void t26_preset_dictionary(void **state)
{
	(void)state;
	assert_refused("deflate", SLICE("\x78\xbb\x00\x00\x00\x01\x03\x00\x00\x00\x00\x01"), CAGE_EPROTO);
}

static void sink_ends_it(void **state)
{
	(void)state;
	struct bytes text = make_text(150000);
	for (enum kind k = GZIP; k < KINDS; k++) {
		struct bytes body = encode(k, bytes_slice(&text)), twice = encode(BR, bytes_slice(&body));
		char codings[32];
		snprintf(codings, sizeof(codings), "%s, br", kind_name[k]);
		o.fail_at = 3;
		run(kind_name[k], bytes_slice(&body), 0, SIZE_MAX);
		assert_int_equal(o.status, CAGE_EVERIFY);
		assert_int_equal(o.calls, 3);
		run(codings, bytes_slice(&twice), 0, SIZE_MAX);
		assert_int_equal(o.status, CAGE_EVERIFY);
		assert_int_equal(o.calls, 3);
		o.fail_at = 0;
		bytes_free(&body);
		bytes_free(&twice);
	}
	bytes_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_coding),
		cmocka_unit_test(stacked_three_deep),
		cmocka_unit_test(names),
		cmocka_unit_test(nothing_to_undo),
		cmocka_unit_test(t26_unknown_or_too_many),
		cmocka_unit_test(empty_body),
		cmocka_unit_test(t26_empty_inside),
		cmocka_unit_test(t26_truncated),
		cmocka_unit_test(t26_trailing_bytes),
		cmocka_unit_test(one_behind_the_other),
		cmocka_unit_test(zstd_skippable_frames),
		cmocka_unit_test(t26_mislabelled),
		cmocka_unit_test(t26_wrong_checksum),
		cmocka_unit_test(raw_deflate_that_starts_like_zlib),
		cmocka_unit_test(t26_deflate_of_two_meanings),
		cmocka_unit_test(t26_preset_dictionary),
		cmocka_unit_test(sink_ends_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
