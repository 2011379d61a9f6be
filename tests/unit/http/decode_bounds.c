/* Bounds of content decoding: windows and bombs, wherever the body is cut. */
#include "tests/unit/http/decode.h"

#define ZEROS 100000000

static void t26_windows(void **state)
{
	(void)state;
	struct bytes text = make_text(3000);
	struct bytes most = encode_zstd(bytes_slice(&text), LIMIT_DECODE_WINDOW);
	struct bytes more = encode_zstd(bytes_slice(&text), LIMIT_DECODE_WINDOW + 1);
	struct bytes large = encode_br(bytes_slice(&text), 26, true);
	assert_decodes("zstd", bytes_slice(&most), bytes_slice(&text));
	assert_refused("zstd", bytes_slice(&more), CAGE_EPROTO);
	assert_refused("br", bytes_slice(&large), CAGE_EPROTO);
	bytes_free(&text);
	bytes_free(&most);
	bytes_free(&more);
	bytes_free(&large);
}

/* Frames that libzstd reads otherwise when a piece holds the whole of them, or what looks like a whole frame. */
static void t26_zstd_short_cuts(void **state)
{
	(void)state;
	struct bytes wanted = bytes_new(6477);
	memset(wanted.ptr, 'a', wanted.len);
	const struct slice window_23 = SLICE("\x28\xb5\x2f\xfd\x40\x68\x2c\x00\x63\x09\x00\x61");
	const struct slice window_27 = SLICE("\x28\xb5\x2f\xfd\x40\x88\x2c\x00\x63\x09\x00\x61");
	const struct slice version_07 = SLICE("\x27\xb5\x2f\xfd\x00\x00\xc0\x00\x00");
	const struct slice skippable_inside = SLICE("\x28\xb5\x2f\xfd\x50\x2a\x4d\x18\0\0\0\0\0\0\x6b\xca\0\x61");
	assert_decodes("zstd", window_23, slice_head(bytes_slice(&wanted), 300));
	assert_refused("zstd", window_27, CAGE_EPROTO);
	assert_refused("zstd", version_07, CAGE_EPROTO);
	assert_decodes("zstd", skippable_inside, bytes_slice(&wanted));
	bytes_free(&wanted);
}

static void assert_bomb(const char *codings, struct slice body)
{
	static const size_t sizes[] = {1, 100, 16384, SIZE_MAX};
	for (size_t i = 0; i < COUNT(sizes); i++) {
		run(codings, body, 0, sizes[i]);
		assert_int_equal(o.status, CAGE_ELIMIT);
		assert_in_range(o.len, 0, LIMIT_DECODE_FREE + LIMIT_DECODE_RATIO * body.len);
	}
}

static void t26_bombs(void **state)
{
	(void)state;
	struct bytes zeros = bytes_new(ZEROS);
	for (enum kind k = GZIP; k < KINDS; k++) {
		struct bytes body = encode(k, bytes_slice(&zeros)), twice = encode(GZIP, bytes_slice(&body));
		char codings[32];
		snprintf(codings, sizeof(codings), "%s, gzip", kind_name[k]);
		assert_bomb(kind_name[k], bytes_slice(&body));
		assert_bomb(codings, bytes_slice(&twice));
		bytes_free(&body);
		bytes_free(&twice);
	}
	bytes_free(&zeros);
}

/* Many members that are small each. */
static void t26_bomb_of_members(void **state)
{
	(void)state;
	struct bytes zeros = bytes_new(MIB(1));
	struct bytes body = encode(GZIP, bytes_slice(&zeros));
	for (int i = 0; i < 5; i++) {
		struct bytes twice = bytes_join(bytes_slice(&body), bytes_slice(&body));
		bytes_free(&body);
		body = twice;
	}
	assert_bomb("gzip", bytes_slice(&body));
	bytes_free(&zeros);
	bytes_free(&body);
}

/* Behind so short a body the bound is what is free. */
static void bound_is_exact(void **state)
{
	(void)state;
	struct bytes zeros = bytes_new(LIMIT_DECODE_FREE + 1);
	struct bytes fits = encode(BR, slice_head(bytes_slice(&zeros), LIMIT_DECODE_FREE));
	struct bytes more = encode(BR, bytes_slice(&zeros));
	run("br", bytes_slice(&fits), 0, 1);
	assert_int_equal(o.status, CAGE_OK);
	assert_int_equal(o.len, LIMIT_DECODE_FREE);
	run("br", bytes_slice(&fits), 0, SIZE_MAX);
	assert_int_equal(o.status, CAGE_OK);
	assert_bomb("br", bytes_slice(&more));
	assert_in_range(o.len, 0, LIMIT_DECODE_FREE);
	bytes_free(&zeros);
	bytes_free(&fits);
	bytes_free(&more);
}

/* A frame that is too large for the start of a body, behind enough others. */
static void bound_grows_with_the_body(void **state)
{
	(void)state;
	struct bytes text = make_text(90000), zeros = bytes_new(MIB(9));
	struct bytes first = encode(ZSTD, bytes_slice(&text)), second = encode(ZSTD, bytes_slice(&zeros));
	struct bytes body = bytes_join(bytes_slice(&first), bytes_slice(&second));
	assert_true(first.len > 10000 && body.len < 16384);
	for (size_t size = 1; size <= body.len; size *= 3) {
		run("zstd", bytes_slice(&body), 0, size);
		assert_int_equal(o.status, CAGE_OK);
		assert_int_equal(o.len, text.len + zeros.len);
	}
	run("zstd", bytes_slice(&body), 0, SIZE_MAX);
	assert_int_equal(o.status, CAGE_OK);
	assert_bomb("zstd", bytes_slice(&second));
	bytes_free(&text);
	bytes_free(&zeros);
	bytes_free(&first);
	bytes_free(&second);
	bytes_free(&body);
}

/* Too much at first, within the bound at the end: refused however many bytes come at once. */
static void t26_bound_holds_all_the_time(void **state)
{
	(void)state;
	struct bytes zeros = bytes_new(MIB(14)), text = make_text(MIB(1));
	struct bytes first = encode(GZIP, bytes_slice(&zeros)), second = encode(GZIP, bytes_slice(&text));
	struct bytes body = bytes_join(bytes_slice(&first), bytes_slice(&second));
	assert_true(LIMIT_DECODE_FREE + LIMIT_DECODE_RATIO * first.len < zeros.len);
	assert_true(LIMIT_DECODE_FREE + LIMIT_DECODE_RATIO * body.len > zeros.len + text.len);
	assert_bomb("gzip", bytes_slice(&body));
	bytes_free(&zeros);
	bytes_free(&text);
	bytes_free(&first);
	bytes_free(&second);
	bytes_free(&body);
}

/* Every layer counts: what is stored as it is inside gzip is made twice. */
static void t26_layers_count_together(void **state)
{
	(void)state;
	struct bytes zeros = bytes_new(MIB(5));
	struct bytes stored = encode_zlib(bytes_slice(&zeros), 15, 0);
	struct bytes body = encode(ZSTD, bytes_slice(&stored)), alone = encode(ZSTD, bytes_slice(&zeros));
	run("zstd", bytes_slice(&alone), 0, SIZE_MAX);
	assert_int_equal(o.status, CAGE_OK);
	assert_bomb("deflate, zstd", bytes_slice(&body));
	bytes_free(&zeros);
	bytes_free(&stored);
	bytes_free(&body);
	bytes_free(&alone);
}

static void large_body_is_no_bomb(void **state)
{
	(void)state;
	struct bytes text = make_text(MIB(24));
	for (enum kind k = GZIP; k < KINDS; k++) {
		struct bytes body = encode(k, bytes_slice(&text));
		run(kind_name[k], bytes_slice(&body), 0, 16384);
		assert_int_equal(o.status, CAGE_OK);
		assert_int_equal(o.len, text.len);
		bytes_free(&body);
	}
	bytes_free(&text);
}

static void decoders_are_counted(void **state)
{
	(void)state;
	struct decoder *list[LIMIT_DECODERS], *one_more;
	for (size_t i = 0; i < LIMIT_DECODERS; i++)
		assert_int_equal(decoder_new(SLICE("gzip"), collect, &o, &list[i]), CAGE_OK);
	assert_int_equal(decoder_new(SLICE("gzip"), collect, &o, &one_more), CAGE_AGAIN);
	decoder_free(&list[0]);
	assert_int_equal(decoder_new(SLICE("gzip"), collect, &o, &list[0]), CAGE_OK);
	for (size_t i = 0; i < LIMIT_DECODERS; i++)
		decoder_free(&list[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decoders_are_counted),      cmocka_unit_test(t26_windows),
		cmocka_unit_test(t26_zstd_short_cuts),       cmocka_unit_test(t26_bombs),
		cmocka_unit_test(t26_bomb_of_members),       cmocka_unit_test(bound_is_exact),
		cmocka_unit_test(bound_grows_with_the_body), cmocka_unit_test(t26_bound_holds_all_the_time),
		cmocka_unit_test(t26_layers_count_together), cmocka_unit_test(large_body_is_no_bomb),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
