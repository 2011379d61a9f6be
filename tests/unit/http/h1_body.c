/* Bodies in every framing, cut at every place: the same data, the same end, the same refusals. */
#include <stdio.h>
#include <stdlib.h>
#include "tests/unit/http/fixture.h"

#include "core/http/h1.h"

/* What came out of one body. */
struct outcome {
	enum cage_status status;
	size_t used;
	char data[512];
	size_t data_len;
	struct h1_body body;
};

/* Feeds what has arrived until it is used up. */
static void feed_all(struct outcome *o, struct slice arrived)
{
	do {
		size_t used = 0;
		struct slice data;
		o->status = h1_body_feed(&o->body, slice_from(arrived, o->used), &arena, &used, &data);
		o->used += used;
		assert_true(o->used <= arrived.len);
		assert_true(o->data_len + data.len <= sizeof(o->data));
		if (data.len > 0)
			memcpy(o->data + o->data_len, data.ptr, data.len);
		o->data_len += data.len;
	} while (o->status == CAGE_OK);
}

static void begin(struct outcome *o, enum body_framing framing, uint64_t length)
{
	struct message m = {.framing = framing, .content_length = length};
	*o = (struct outcome){.status = CAGE_AGAIN};
	h1_body_init(&o->body, &m);
}

/* The input arrives in two pieces, the first of `cut` bytes, or one byte at a time when cut is 0. */
static struct outcome run(enum body_framing framing, uint64_t length, struct slice input, size_t cut)
{
	struct outcome o;
	begin(&o, framing, length);
	for (size_t n = cut ? cut : 1; o.status == CAGE_AGAIN && n < input.len; n = cut ? input.len : n + 1)
		feed_all(&o, slice_head(input, n));
	if (o.status == CAGE_AGAIN)
		feed_all(&o, input);
	return o;
}

/* Whatever the cut: this status, this data, and `rest` bytes that belong to the next message. */
static void assert_body(enum body_framing framing, uint64_t length, struct slice input, enum cage_status status,
			struct slice data, size_t rest)
{
	for (size_t cut = 0; cut <= input.len; cut++) {
		struct outcome o = run(framing, length, input, cut);
		if (o.status != status)
			fail_msg("cut at %zu: %d for %.*s", cut, (int)o.status, SLICE_FMT(input));
		assert_int_equal(o.data_len, data.len);
		assert_memory_equal(o.data, data.ptr, data.len);
		if (status == CAGE_EOF)
			assert_int_equal(o.used, input.len - rest);
		assert_int_equal(h1_body_is_done(&o.body), status == CAGE_EOF);
	}
}

static void lengths(void **state)
{
	(void)state;
	assert_body(BODY_LENGTH, 5, SLICE("hello"), CAGE_EOF, SLICE("hello"), 0);
	assert_body(BODY_LENGTH, 5, SLICE("helloGET /"), CAGE_EOF, SLICE("hello"), 5);
	assert_body(BODY_LENGTH, 6, SLICE("hello"), CAGE_AGAIN, SLICE("hello"), 0);
	assert_body(BODY_LENGTH, 0, SLICE("GET /"), CAGE_EOF, SLICE(""), 5);
	assert_body(BODY_NONE, 0, SLICE("GET /"), CAGE_EOF, SLICE(""), 5);
	assert_body(BODY_CLOSE, 0, SLICE("all of it\0\r\n"), CAGE_AGAIN, SLICE("all of it\0\r\n"), 0);
}

/* Between us and HTTP/2 all that has a length has trailers. */
static void inner_lengths(void **state)
{
	(void)state;
	const struct slice all = SLICE("helloa: b\r\n\r\n");
	for (uint64_t length = 0; length <= 5; length += 5) {
		struct message m = {.framing = BODY_LENGTH, .content_length = length};
		struct slice input = slice_from(all, 5 - (size_t)length);
		struct outcome o = {.status = CAGE_AGAIN};
		h1_body_init_inner(&o.body, &m);
		for (size_t n = 0; n < input.len; n++) {
			assert_false(h1_body_is_done(&o.body));
			feed_all(&o, slice_head(input, n + 1));
		}
		assert_int_equal(o.status, CAGE_EOF);
		assert_int_equal(o.data_len, length);
		assert_int_equal(o.body.n_trailers, 1);
	}
	struct message none = {.framing = BODY_NONE};
	struct outcome o = {.status = CAGE_AGAIN};
	h1_body_init_inner(&o.body, &none);
	assert_true(h1_body_is_done(&o.body));
}

static void chunks(void **state)
{
	(void)state;
	const struct slice hello = SLICE("hello world");
	assert_body(BODY_CHUNKED, 0, SLICE("0\r\n\r\n"), CAGE_EOF, SLICE(""), 0);
	assert_body(BODY_CHUNKED, 0, SLICE("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nGET /"), CAGE_EOF, hello, 5);
	assert_body(BODY_CHUNKED, 0, SLICE("00B\r\nhello world\r\n000\r\n\r\n"), CAGE_EOF, hello, 0);
	assert_body(BODY_CHUNKED, 0, SLICE("000000000000000b\r\nhello world\r\n0000000000000000\r\n\r\n"), CAGE_EOF,
		    hello, 0);
	assert_body(BODY_CHUNKED, 0, SLICE("7\r\n0\r\n\r\nGE\r\n0\r\n\r\n"), CAGE_EOF, SLICE("0\r\n\r\nGE"), 0);
	assert_body(BODY_CHUNKED, 0, SLICE("ffffffffffffffff\r\nhello world"), CAGE_AGAIN, hello, 0);
	assert_body(BODY_CHUNKED, 0, SLICE("5\r\nhello\r\n6\r\n world\r\n0\r\n"), CAGE_AGAIN, hello, 0);
}

static void chunk_extensions_are_dropped(void **state)
{
	(void)state;
	static const char *const extensions[] = {
		"", ";", ";a", ";a=b", ";a;b;c=d", ";;", ";a=\"\"", ";a=\"x;y \\\" \\\\ =\t\xc3\";b", ";a=\"x\";b=y"};
	for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
		char input[128];
		int n = snprintf(input, sizeof(input), "5%s\r\nhello\r\n0%s\r\n\r\n", extensions[i], extensions[i]);
		assert_body(BODY_CHUNKED, 0, slice_of(input, (size_t)n), CAGE_EOF, SLICE("hello"), 0);
	}
}

static void t22_bad_chunks(void **state)
{
	(void)state;
	const struct slice bad[] = {
		SLICE("\r\n"),
		SLICE("\n"),
		SLICE("Z\r\n"),
		SLICE(" 5\r\n"),
		SLICE("5 \r\n"),
		SLICE("5 ;a\r\n"),
		SLICE("5\t\r\n"),
		SLICE("+5\r\n"),
		SLICE("-5\r\n"),
		SLICE("0x5\r\n"),
		SLICE("5h\r\n"),
		SLICE("5\n"),
		SLICE("5\r\r"),
		SLICE("5\rx"),
		SLICE("5\0"),
		SLICE("5,5\r\n"),
		SLICE("10000000000000000\r\n"),
		SLICE("00000000000000005\r\n"),
		SLICE(";a\r\n"),
		SLICE("5;a\n"),
		SLICE("5;a\rb"),
		SLICE("5; a\r\n"),
		SLICE("5;a =b\r\n"),
		SLICE("5;a= b\r\n"),
		SLICE("5;a=\r\n"),
		SLICE("5;a=;b\r\n"),
		SLICE("5;=b\r\n"),
		SLICE("5;a=b=c\r\n"),
		SLICE("5;a=\"b\r\n"),
		SLICE("5;a=\"b\n\"\r\n"),
		SLICE("5;a=\"b\\\r\n"),
		SLICE("5;a=\"b\"c\r\n"),
		SLICE("5;a=b\"c\"\r\n"),
		SLICE("5;a\0\r\n"),
		SLICE("5;a=\"\x7f\"\r\n"),
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_body(BODY_CHUNKED, 0, bad[i], CAGE_EPROTO, SLICE(""), 0);

	const struct slice hello = SLICE("hello");
	assert_body(BODY_CHUNKED, 0, SLICE("5\r\nhello\n"), CAGE_EPROTO, hello, 0);
	assert_body(BODY_CHUNKED, 0, SLICE("5\r\nhello0\r\n\r\n"), CAGE_EPROTO, hello, 0);
	assert_body(BODY_CHUNKED, 0, SLICE("5\r\nhello\r0\r\n"), CAGE_EPROTO, hello, 0);
	assert_body(BODY_CHUNKED, 0, SLICE("5\r\nhello\r\n\r\n0\r\n"), CAGE_EPROTO, hello, 0);
	assert_body(BODY_CHUNKED, 0, SLICE("5\r\nhello\r\n0\r\n\n"), CAGE_EPROTO, hello, 0);
	assert_body(BODY_CHUNKED, 0, SLICE("5\r\nhello\r\n0\r\nGET / HTTP/1.1\r\n"), CAGE_EPROTO, hello, 0);
	assert_body(BODY_CHUNKED, 0, SLICE("5\r\nhello\r\n0\r\n\rX"), CAGE_EPROTO, hello, 0);
}

/* A body that was refused stays refused. */
static void refusal_is_final(void **state)
{
	(void)state;
	static const char *const bad[] = {"5\rx", "5\r\nhellox", "5\r\nhello\rx", "5;a=x\"", "5 "};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct outcome o = run(BODY_CHUNKED, 0, slice_str(bad[i]), 0);
		size_t used;
		struct slice data;
		assert_int_equal(o.status, CAGE_EPROTO);
		enum cage_status again =
			h1_body_feed(&o.body, slice_from(slice_str(bad[i]), o.used), &arena, &used, &data);
		assert_int_equal(again, CAGE_EPROTO);
		assert_int_equal(used, 0);
	}
}

static void chunk_line_limit(void **state)
{
	(void)state;
	char input[LIMIT_CHUNK_LINE + 32];
	for (size_t n = LIMIT_CHUNK_LINE; n <= LIMIT_CHUNK_LINE + 1; n++) {
		memset(input, 'a', sizeof(input));
		memcpy(input, "1;", 2);
		memcpy(input + n, "\r\nx\r\n0\r\n\r\n", 10);
		bool fits = n == LIMIT_CHUNK_LINE;
		assert_body(BODY_CHUNKED, 0, slice_of(input, n + 10), fits ? CAGE_EOF : CAGE_ELIMIT,
			    fits ? SLICE("x") : SLICE(""), 0);
	}
}

static void trailers(void **state)
{
	(void)state;
	const struct slice input = SLICE("2\r\nhi\r\n0\r\ngrpc-status: 0\r\nX-A:\t b \r\n\r\nGET /");
	assert_body(BODY_CHUNKED, 0, input, CAGE_EOF, SLICE("hi"), 5);
	for (size_t cut = 0; cut <= input.len; cut++) {
		char copy[64];
		memcpy(copy, input.ptr, input.len);
		struct outcome o = run(BODY_CHUNKED, 0, slice_of(copy, input.len), cut);
		memset(copy, 0, sizeof(copy));
		assert_int_equal(o.body.n_trailers, 2);
		assert_true(slice_eq(o.body.trailers[0].name, SLICE("grpc-status")));
		assert_true(slice_eq(o.body.trailers[0].value, SLICE("0")));
		assert_true(slice_eq(o.body.trailers[1].name, SLICE("X-A")));
		assert_true(slice_eq(o.body.trailers[1].value, SLICE("b")));
	}
}

/* A part of a trailer section stays with the caller until the rest is there. */
static void trailers_wait_until_whole(void **state)
{
	(void)state;
	struct outcome o;
	begin(&o, BODY_CHUNKED, 0);
	feed_all(&o, SLICE("0\r\nA: b\r\n"));
	assert_int_equal(o.status, CAGE_AGAIN);
	assert_int_equal(o.used, 3);
	assert_int_equal(h1_body_end_of_input(&o.body), CAGE_TRUNCATED);
}

static void t24_trailers_refused(void **state)
{
	(void)state;
	static const char *const names[] = {"Content-Length",
					    "Transfer-Encoding",
					    "Host",
					    "Authorization",
					    "Content-Type",
					    "Content-Encoding",
					    "TE",
					    "Trailer",
					    "Cookie",
					    "Set-Cookie",
					    "Connection",
					    "Proxy-Authorization",
					    "Proxy-X",
					    "Upgrade",
					    "Expect",
					    "Range",
					    "If-Match",
					    "Cache-Control",
					    "Keep-Alive",
					    "Location",
					    "Via",
					    "X-Api-Key",
					    "content-range"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char input[64];
		int n = snprintf(input, sizeof(input), "0\r\nA: b\r\n%s: 1\r\n\r\n", names[i]);
		assert_body(BODY_CHUNKED, 0, slice_of(input, (size_t)n), CAGE_EPROTO, SLICE(""), 0);
	}
}

static void trailer_limits(void **state)
{
	(void)state;
	char *input = malloc(LIMIT_TRAILERS + 8);
	assert_non_null(input);
	for (size_t n = LIMIT_TRAILERS; n <= LIMIT_TRAILERS + 1; n++) {
		memset(input, 'a', LIMIT_TRAILERS + 8);
		memcpy(input, "0\r\nA:", 5);
		memcpy(input + 3 + n - 4, "\r\n\r\n", 4);
		struct outcome o = run(BODY_CHUNKED, 0, slice_of(input, 3 + n), 1000);
		assert_int_equal(o.status, n == LIMIT_TRAILERS ? CAGE_EOF : CAGE_ELIMIT);
	}
	for (size_t n = LIMIT_HEADERS; n <= LIMIT_HEADERS + 1; n++) {
		memcpy(input, "0\r\n", 3);
		for (size_t i = 0; i < n; i++)
			memcpy(input + 3 + 4 * i, "A:\r\n", 4);
		memcpy(input + 3 + 4 * n, "\r\n", 2);
		struct outcome o = run(BODY_CHUNKED, 0, slice_of(input, 3 + 4 * n + 2), 10);
		assert_int_equal(o.status, n == LIMIT_HEADERS ? CAGE_EOF : CAGE_ELIMIT);
	}
	free(input);
}

static void end_of_input(void **state)
{
	(void)state;
	struct outcome o = run(BODY_CLOSE, 0, SLICE("abc"), 1);
	assert_int_equal(h1_body_end_of_input(&o.body), CAGE_EOF);
	assert_true(h1_body_is_done(&o.body));
	o = run(BODY_LENGTH, 4, SLICE("abc"), 1);
	assert_int_equal(h1_body_end_of_input(&o.body), CAGE_TRUNCATED);
	o = run(BODY_LENGTH, 3, SLICE("abc"), 1);
	assert_int_equal(h1_body_end_of_input(&o.body), CAGE_EOF);
	o = run(BODY_CHUNKED, 0, SLICE("3\r\nabc\r\n"), 1);
	assert_int_equal(h1_body_end_of_input(&o.body), CAGE_TRUNCATED);
	o = run(BODY_CHUNKED, 0, SLICE("0\r\n\r\n"), 1);
	assert_int_equal(h1_body_end_of_input(&o.body), CAGE_EOF);
}

static void data_is_not_copied(void **state)
{
	(void)state;
	const struct slice input = SLICE("3\r\nabc\r\n");
	struct outcome o;
	size_t used;
	struct slice data;
	begin(&o, BODY_CHUNKED, 0);
	assert_int_equal(h1_body_feed(&o.body, input, &arena, &used, &data), CAGE_OK);
	assert_ptr_equal(data.ptr, input.ptr + 3);
	assert_int_equal(used, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lengths, setup, teardown),
		cmocka_unit_test_setup_teardown(inner_lengths, setup, teardown),
		cmocka_unit_test_setup_teardown(chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(chunk_extensions_are_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(t22_bad_chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(refusal_is_final, setup, teardown),
		cmocka_unit_test_setup_teardown(chunk_line_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(trailers, setup, teardown),
		cmocka_unit_test_setup_teardown(trailers_wait_until_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(t24_trailers_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(trailer_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(end_of_input, setup, teardown),
		cmocka_unit_test_setup_teardown(data_is_not_copied, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
