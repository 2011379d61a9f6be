/* The text of gRPC messages, compressed or not: the same, with the same refusals, wherever the body is cut. */
#include "tests/unit/http/encode.h"

#include "core/base/limits.h"
#include "core/http/grpc.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define HALF_FREE (LIMIT_DECODE_FREE / 2)

/* What came out: each message ends with a '|'. */
struct outcome {
	enum cage_status status;
	char data[4096], coded[4096]; /* the first of it */
	uint64_t len, coded_len;
	size_t pieces, ends, fail_at_piece, fail_at_end; /* the sink fails at that call, unless it is 0 */
};

static struct outcome o;

static void add(char *room, uint64_t *len, struct slice piece)
{
	if (*len < sizeof(o.data))
		memcpy(room + *len, piece.ptr, slice_head(piece, sizeof(o.data) - (size_t)*len).len);
	*len += piece.len;
}

static enum cage_status on_piece(void *arg, unsigned codings, struct slice piece)
{
	assert_ptr_equal(arg, &o);
	assert_true(piece.len > 0);
	if (codings > 0) {
		assert_int_equal(codings, 1);
		add(o.coded, &o.coded_len, piece);
		return CAGE_OK;
	}
	add(o.data, &o.len, piece);
	return ++o.pieces == o.fail_at_piece ? CAGE_EVERIFY : CAGE_OK;
}

static enum cage_status on_end(void *arg)
{
	assert_ptr_equal(arg, &o);
	add(o.data, &o.len, SLICE("|"));
	return ++o.ends == o.fail_at_end ? CAGE_EVERIFY : CAGE_OK;
}

static enum cage_status on_begin(void *arg, struct slice prefix)
{
	assert_ptr_equal(arg, &o);
	assert_int_equal(prefix.len, GRPC_PREFIX);
	assert_true(prefix.ptr[0] == 0 || prefix.ptr[0] == 1);
	return CAGE_OK;
}

static const struct grpc_sink sink = {on_begin, on_piece, on_end, &o};

static void run(const char *encoding, struct slice body, size_t first, size_t size)
{
	struct grpc_inflate g;
	size_t total = body.len;
	o.len = o.coded_len = o.pieces = o.ends = 0;
	assert_int_equal(grpc_inflate_init(&g, GRPC_NATIVE, slice_str(encoding), &sink), CAGE_OK);
	o.status = grpc_inflate_feed(&g, slice_head(body, first));
	body = slice_from(body, first);
	while (o.status == CAGE_OK && body.len > 0) {
		o.status = grpc_inflate_feed(&g, slice_head(body, size));
		body = slice_from(body, size);
	}
	if (o.status == CAGE_OK)
		o.status = grpc_inflate_end(&g);
	if (o.status == CAGE_OK)
		assert_int_equal(g.whole, total);
	grpc_inflate_release(&g);
	assert_null(g.decoder);
}

static void assert_says(const char *encoding, struct slice body, enum cage_status status, struct slice wanted)
{
	for (size_t cut = 0; cut <= body.len + 1; cut++) {
		bool is_by_byte = cut > body.len;
		run(encoding, body, is_by_byte ? 0 : cut, is_by_byte ? 1 : SIZE_MAX);
		if (o.status != status)
			fail_msg("%s, cut at %zu: status %d", encoding, cut, (int)o.status);
		assert_int_equal(o.len, wanted.len);
		assert_memory_equal(o.data, wanted.ptr, wanted.len);
	}
}

/* Adds a message to a body. */
static void put_message(struct bytes *body, bool is_compressed, struct slice payload)
{
	const char prefix[] = {(char)is_compressed, (char)(payload.len >> 24), (char)(payload.len >> 16),
			       (char)(payload.len >> 8), (char)payload.len};
	struct bytes longer = bytes_join(bytes_slice(body), slice_of(prefix, sizeof(prefix)));
	bytes_free(body);
	*body = bytes_join(bytes_slice(&longer), payload);
	bytes_free(&longer);
}

static void put_coded(struct bytes *body, enum kind kind, struct slice text)
{
	struct bytes coded = encode(kind, text);
	put_message(body, true, bytes_slice(&coded));
	bytes_free(&coded);
}

static void plain_messages(void **state)
{
	(void)state;
	static const char *const any[] = {"", "identity", "gzip", "deflate"};
	for (size_t i = 0; i < COUNT(any); i++) {
		assert_says(any[i], SLICE(""), CAGE_OK, SLICE(""));
		assert_says(any[i], SLICE("\0\0\0\0\5hello\0\0\0\0\0\0\0\0\0\1x"), CAGE_OK, SLICE("hello||x|"));
		assert_int_equal(o.coded_len, 0);
	}
}

static void compressed_messages(void **state)
{
	(void)state;
	for (enum kind k = GZIP; k <= RAW; k++) {
		struct bytes body = {NULL, 0}, first = encode(k, SLICE("hello, hello, hello"));
		put_message(&body, true, bytes_slice(&first));
		put_message(&body, false, SLICE("plain"));
		put_message(&body, true, SLICE(""));
		put_coded(&body, k, SLICE(""));
		put_coded(&body, k, SLICE("again"));
		assert_says(kind_name[k], bytes_slice(&body), CAGE_OK, SLICE("hello, hello, hello|plain|||again|"));
		assert_memory_equal(o.coded, first.ptr, first.len);
		bytes_free(&body);
		bytes_free(&first);
	}
}

/* A gzip head has room for a name: it is seen, though it is no part of the text. */
static void coded_bytes_are_seen(void **state)
{
	(void)state;
	struct bytes gzip = encode(GZIP, SLICE("text")), body = {NULL, 0};
	struct bytes named = bytes_join(slice_head(bytes_slice(&gzip), 10), SLICE("secret\0"));
	struct bytes all = bytes_join(bytes_slice(&named), slice_from(bytes_slice(&gzip), 10));
	all.ptr[3] = 8; /* there is a name */
	put_message(&body, true, bytes_slice(&all));
	assert_says("gzip", bytes_slice(&body), CAGE_OK, SLICE("text|"));
	assert_int_equal(o.coded_len, all.len);
	assert_memory_equal(o.coded, all.ptr, all.len);
	bytes_free(&gzip);
	bytes_free(&named);
	bytes_free(&all);
	bytes_free(&body);
}

static void t26_encodings_that_we_do_not_have(void **state)
{
	(void)state;
	static const char *const bad[] = {"snappy", "zstd", "br", "gzip, gzip", "x-gzip"};
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct grpc_inflate g;
		assert_int_equal(grpc_inflate_init(&g, GRPC_NATIVE, slice_str(bad[i]), &sink), CAGE_EPROTO);
		grpc_inflate_release(&g);
	}
}

static void t26_compressed_without_an_encoding(void **state)
{
	(void)state;
	assert_says("", SLICE("\0\0\0\0\1x\1\0\0\0\0"), CAGE_EPROTO, SLICE("x|"));
	assert_says("identity", SLICE("\1\0\0\0\1x"), CAGE_EPROTO, SLICE(""));
}

/* The coding ends before the message, or behind it; and what is of one coding under the name of another. */
static void t26_broken_messages(void **state)
{
	(void)state;
	struct bytes gzip = encode(GZIP, SLICE("hello"));
	for (size_t n = 1; n < gzip.len; n++) {
		struct bytes body = {NULL, 0};
		put_message(&body, true, slice_head(bytes_slice(&gzip), n));
		put_message(&body, true, slice_from(bytes_slice(&gzip), n));
		run("gzip", bytes_slice(&body), 0, SIZE_MAX);
		assert_int_equal(o.status, CAGE_EPROTO);
		assert_int_equal(o.ends, 0);
		bytes_free(&body);
	}
	struct bytes longer = bytes_join(bytes_slice(&gzip), SLICE("x")), body = {NULL, 0};
	put_message(&body, true, bytes_slice(&longer));
	assert_says("gzip", bytes_slice(&body), CAGE_EPROTO, SLICE("hello"));
	bytes_free(&body);
	put_message(&body, true, bytes_slice(&gzip));
	assert_says("deflate", bytes_slice(&body), CAGE_EPROTO, SLICE(""));
	bytes_free(&longer);
	bytes_free(&body);
	bytes_free(&gzip);
}

static void framing_errors(void **state)
{
	(void)state;
	assert_says("gzip", SLICE("\0\0\0\0\1x\2"), CAGE_EPROTO, SLICE("x|"));
	assert_says("gzip", SLICE("\0\0\0\0\1x\1\1\0\0\1"), CAGE_ELIMIT, SLICE("x|"));
	assert_says("gzip", SLICE("\0\0\0\0\2x"), CAGE_TRUNCATED, SLICE("x"));
	assert_says("gzip", SLICE("\0\0\0\0\1x\0\0"), CAGE_TRUNCATED, SLICE("x|"));
	struct bytes body = {NULL, 0};
	put_coded(&body, GZIP, SLICE("hello"));
	run("gzip", slice_head(bytes_slice(&body), body.len - 1), 0, SIZE_MAX);
	assert_int_equal(o.status, CAGE_TRUNCATED); /* with a decoder that is still at work */
	bytes_free(&body);
}

/* ---- bounds ---- */

static void assert_too_much(struct slice body, size_t ends)
{
	static const size_t sizes[] = {1, 100, 16384, SIZE_MAX};
	for (size_t i = 0; i < COUNT(sizes); i++) {
		run("gzip", body, 0, sizes[i]);
		assert_int_equal(o.status, CAGE_ELIMIT);
		assert_int_equal(o.ends, ends);
	}
}

static void t26_a_bomb(void **state)
{
	(void)state;
	struct bytes zeros = bytes_new(8 * LIMIT_DECODE_FREE), body = {NULL, 0};
	put_coded(&body, GZIP, bytes_slice(&zeros));
	assert_too_much(bytes_slice(&body), 0);
	assert_in_range(o.len, 0, LIMIT_DECODE_FREE + LIMIT_DECODE_RATIO * body.len);
	bytes_free(&zeros);
	bytes_free(&body);
}

/* Each of them is within the bounds of one message: half of what is free, at a ratio of a thousand. */
static void t26_many_small_bombs(void **state)
{
	(void)state;
	struct bytes zeros = bytes_new(HALF_FREE), body = {NULL, 0};
	put_coded(&body, GZIP, bytes_slice(&zeros));
	size_t one = body.len;
	run("gzip", bytes_slice(&body), 0, SIZE_MAX);
	assert_int_equal(o.status, CAGE_OK);
	for (size_t i = 0; i < 9; i++)
		put_coded(&body, GZIP, bytes_slice(&zeros));
	size_t passed = 0;
	while (HALF_FREE * (passed + 1) <= LIMIT_DECODE_FREE + LIMIT_DECODE_RATIO * (one - GRPC_PREFIX) * (passed + 1))
		passed++;
	assert_in_range(passed, 2, 8);
	assert_too_much(bytes_slice(&body), passed);
	bytes_free(&zeros);
	bytes_free(&body);
}

/* More than what is free, in messages that compress like text does. */
static void many_harmless_messages(void **state)
{
	(void)state;
	struct bytes text = bytes_new(HALF_FREE / 4), body = {NULL, 0};
	uint32_t word = 1;
	for (size_t i = 0; i < text.len; i++) {
		word = i % 64 ? word : word * 1664525 + 1013904223;
		text.ptr[i] = (char)(word >> (8 + i % 16));
	}
	for (size_t i = 0; i < 12; i++)
		put_coded(&body, GZIP, bytes_slice(&text));
	run("gzip", bytes_slice(&body), 0, 16384);
	assert_int_equal(o.status, CAGE_OK);
	assert_int_equal(o.ends, 12);
	assert_int_equal(o.len, 12 * (text.len + 1));
	assert_true(o.len > LIMIT_DECODE_FREE);
	bytes_free(&text);
	bytes_free(&body);
}

static void sink_ends_it(void **state)
{
	(void)state;
	struct bytes body = {NULL, 0};
	put_message(&body, false, SLICE("one"));
	put_coded(&body, GZIP, SLICE("two"));
	put_message(&body, false, SLICE("three"));
	for (size_t at = 1; at <= 3; at++) {
		o.fail_at_piece = at;
		run("gzip", bytes_slice(&body), 0, SIZE_MAX);
		assert_int_equal(o.status, CAGE_EVERIFY);
		assert_int_equal(o.pieces, at);
		assert_int_equal(o.ends, at - 1);
		o.fail_at_piece = 0;
		o.fail_at_end = at;
		run("gzip", bytes_slice(&body), 0, SIZE_MAX);
		assert_int_equal(o.status, CAGE_EVERIFY);
		assert_int_equal(o.ends, at);
		o.fail_at_end = 0;
	}
	bytes_free(&body);
}

/* A decoder is taken for the time of one message, and only if there is something to decode. */
static void decoders_at_work(void **state)
{
	(void)state;
	static struct grpc_inflate many[LIMIT_DECODERS + 1];
	struct bytes body = {NULL, 0};
	put_coded(&body, GZIP, SLICE("hello"));
	const struct slice part = slice_head(bytes_slice(&body), 8), rest = slice_from(bytes_slice(&body), 8);
	for (size_t i = 0; i <= LIMIT_DECODERS; i++) {
		assert_int_equal(grpc_inflate_init(&many[i], GRPC_NATIVE, SLICE("gzip"), &sink), CAGE_OK);
		assert_int_equal(grpc_inflate_feed(&many[i], slice_head(part, GRPC_PREFIX)), CAGE_OK);
		assert_int_equal(grpc_inflate_feed(&many[i], slice_from(part, GRPC_PREFIX)),
				 i < LIMIT_DECODERS ? CAGE_OK : CAGE_AGAIN);
	}
	assert_int_equal(grpc_inflate_feed(&many[0], rest), CAGE_OK);
	run("gzip", bytes_slice(&body), 0, SIZE_MAX);
	assert_int_equal(o.status, CAGE_OK);
	for (size_t i = 0; i <= LIMIT_DECODERS; i++)
		grpc_inflate_release(&many[i]);
	assert_false(decoders_are_scarce());
	bytes_free(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_messages),
		cmocka_unit_test(compressed_messages),
		cmocka_unit_test(coded_bytes_are_seen),
		cmocka_unit_test(t26_encodings_that_we_do_not_have),
		cmocka_unit_test(t26_compressed_without_an_encoding),
		cmocka_unit_test(t26_broken_messages),
		cmocka_unit_test(framing_errors),
		cmocka_unit_test(t26_a_bomb),
		cmocka_unit_test(t26_many_small_bombs),
		cmocka_unit_test(many_harmless_messages),
		cmocka_unit_test(sink_ends_it),
		cmocka_unit_test(decoders_at_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
