/* The byte gate: whole heads pass however they are cut, and a bad byte is named the moment it is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/base/limits.h"
#include "core/http/h1.h"

#define TEXT(lit)                    \
	{                            \
		lit, sizeof(lit) - 1 \
	}

static const struct slice good_requests[] = {
	TEXT("GET / HTTP/1.1\r\n\r\n"),
	TEXT("GET /a?b=c HTTP/1.0\r\nHost: a\r\nX:\r\nY: \t v\xff \r\n\r\n"),
	TEXT("a!#$%&'*+-.^_`|~9 * HTTP/1.1\r\n!#$%&'*+-.^_`|~9z:\"(),/:;<=>?@[\\]{}\r\n\r\n"),
};

static const struct slice good_responses[] = {
	TEXT("HTTP/1.1 200 OK\r\n\r\n"),
	TEXT("HTTP/1.0 200\r\nA: b\r\n\r\n"),
	TEXT("HTTP/1.1 200 \r\nA: b\r\n\r\n"),
	TEXT("HTTP/1.1 404 N\xf6t  there\r\n\r\n"),
};

static const struct slice good_trailers[] = {
	TEXT("\r\n"),
	TEXT("A: b\r\nC:\r\n\r\n"),
};

/* Feeds text in pieces of `step` bytes; the gate must say OK exactly with the last byte. */
static void assert_passes(enum h1_gate_kind kind, struct slice text, size_t step)
{
	struct h1_gate gate = {.kind = kind};
	size_t len = 0;
	for (size_t n = 0; n < text.len; n += step)
		assert_int_equal(h1_gate(&gate, slice_head(text, n), &len), CAGE_AGAIN);
	assert_int_equal(h1_gate(&gate, text, &len), CAGE_OK);
	assert_int_equal(len, text.len);
}

/* Cuts text in two at every place. */
static void assert_passes_split(enum h1_gate_kind kind, struct slice text)
{
	for (size_t cut = 0; cut < text.len; cut++) {
		struct h1_gate gate = {.kind = kind};
		size_t len = 0;
		assert_int_equal(h1_gate(&gate, slice_head(text, cut), &len), CAGE_AGAIN);
		assert_int_equal(h1_gate(&gate, text, &len), CAGE_OK);
		assert_int_equal(len, text.len);
	}
}

static void assert_all_pass(enum h1_gate_kind kind, const struct slice *texts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_passes(kind, texts[i], 1);
		assert_passes(kind, texts[i], 3);
		assert_passes_split(kind, texts[i]);
	}
}

static void heads_pass_however_cut(void **state)
{
	(void)state;
	assert_all_pass(H1_GATE_REQUEST, good_requests, 3);
	assert_all_pass(H1_GATE_RESPONSE, good_responses, 4);
	assert_all_pass(H1_GATE_TRAILERS, good_trailers, 2);
}

static void what_follows_is_left_alone(void **state)
{
	(void)state;
	struct h1_gate gate = {0};
	size_t len = 0;
	assert_int_equal(h1_gate(&gate, SLICE("GET / HTTP/1.1\r\n\r\n\0\n\nbody"), &len), CAGE_OK);
	assert_int_equal(len, 18);
	assert_int_equal(gate.seen, 18);
}

/* bad: a text whose last byte is the first forbidden one. */
static void assert_fails_at_last(enum h1_gate_kind kind, struct slice bad)
{
	struct h1_gate gate = {.kind = kind};
	size_t len = 0;
	for (size_t n = 0; n < bad.len; n++)
		if (h1_gate(&gate, slice_head(bad, n), &len) != CAGE_AGAIN)
			fail_msg("stopped at byte %zu: %.*s", n, SLICE_FMT(bad));
	if (h1_gate(&gate, bad, &len) != CAGE_EPROTO)
		fail_msg("passed: %.*s", SLICE_FMT(bad));

	struct h1_gate whole = {.kind = kind};
	assert_int_equal(h1_gate(&whole, bad, &len), CAGE_EPROTO);
	assert_int_equal(h1_gate(&whole, bad, &len), CAGE_EPROTO);
}

static void t22_first_bad_byte_ends_it(void **state)
{
	(void)state;
	static const struct slice requests[] = {
		TEXT("\r"),
		TEXT("\n"),
		TEXT(" "),
		TEXT("G\0"),
		TEXT("GET\t"),
		TEXT("GET\r"),
		TEXT("G\""),
		TEXT("GET  "),
		TEXT("GET /\r"),
		TEXT("GET /\n"),
		TEXT("GET /a\t"),
		TEXT("GET /a\x80"),
		TEXT("GET /a b"),
		TEXT("GET / HTTP/1.1\n"),
		TEXT("GET / HTTP/1.1 "),
		TEXT("GET / HTTP/1.2"),
		TEXT("GET / HTTP/1.10"),
		TEXT("GET / HTTP/2"),
		TEXT("GET / h"),
		TEXT("GET / HTTP/1.1\r\r"),
		TEXT("GET / HTTP/1.1\rA"),
		TEXT("GET / HTTP/1.1\r\n "),
		TEXT("GET / HTTP/1.1\r\n\t"),
		TEXT("GET / HTTP/1.1\r\n\n"),
		TEXT("GET / HTTP/1.1\r\n:"),
		TEXT("GET / HTTP/1.1\r\nHost "),
		TEXT("GET / HTTP/1.1\r\nHost\r"),
		TEXT("GET / HTTP/1.1\r\nH\xe9"),
		TEXT("GET / HTTP/1.1\r\nHost: a\n"),
		TEXT("GET / HTTP/1.1\r\nHost: a\rb"),
		TEXT("GET / HTTP/1.1\r\nHost: a\0"),
		TEXT("GET / HTTP/1.1\r\nHost: a\x7f"),
		TEXT("GET / HTTP/1.1\r\nHost: a\x1b"),
		TEXT("GET / HTTP/1.1\r\nHost: a\r\n "),
		TEXT("GET / HTTP/1.1\r\n\rX"),
	};
	static const struct slice responses[] = {
		TEXT("G"),
		TEXT("\r"),
		TEXT("HTTP/2"),
		TEXT("HTTP/1.1\r"),
		TEXT("HTTP/1.1  "),
		TEXT("HTTP/1.1 20\r"),
		TEXT("HTTP/1.1 20 "),
		TEXT("HTTP/1.1 2000"),
		TEXT("HTTP/1.1 200\n"),
		TEXT("HTTP/1.1 200 O\n"),
		TEXT("HTTP/1.1 200 O\r\r"),
		TEXT("HTTP/1.1 200 O\0"),
		TEXT("HTTP/1.1 200 OK\r\nA: b\r\n "),
	};
	static const struct slice trailers[] = {
		TEXT("\n"), TEXT("A: b\n"), TEXT("A\r"), TEXT(" "), TEXT("\rA"),
	};
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		assert_fails_at_last(H1_GATE_REQUEST, requests[i]);
	for (size_t i = 0; i < sizeof(responses) / sizeof(responses[0]); i++)
		assert_fails_at_last(H1_GATE_RESPONSE, responses[i]);
	for (size_t i = 0; i < sizeof(trailers) / sizeof(trailers[0]); i++)
		assert_fails_at_last(H1_GATE_TRAILERS, trailers[i]);
}

static void t11_other_protocols(void **state)
{
	(void)state;
	assert_fails_at_last(H1_GATE_REQUEST, SLICE("\x16"));                    /* TLS */
	assert_fails_at_last(H1_GATE_REQUEST, SLICE("SSH-2.0-OpenSSH_9.2p1\r")); /* no target follows */
	assert_fails_at_last(H1_GATE_REQUEST, SLICE("PRI * HTTP/2"));            /* h2 by prior knowledge */
	assert_fails_at_last(H1_GATE_REQUEST, SLICE("\x05"));                    /* SOCKS5 */
	assert_fails_at_last(H1_GATE_REQUEST, SLICE("OPTIONS /a R"));            /* RTSP */
}

static void method_limit(void **state)
{
	(void)state;
	char text[LIMIT_METHOD + 1];
	memset(text, 'M', sizeof(text));
	struct h1_gate gate = {0};
	size_t len;
	assert_int_equal(h1_gate(&gate, slice_of(text, LIMIT_METHOD), &len), CAGE_AGAIN);
	assert_int_equal(h1_gate(&gate, slice_of(text, LIMIT_METHOD + 1), &len), CAGE_EPROTO);
}

/* A section of exactly n bytes; start is its first line or empty. */
static char *section_of(struct slice start, size_t n)
{
	char *text = malloc(n);
	assert_non_null(text);
	memset(text, 'v', n);
	memcpy(text, start.ptr, start.len);
	memcpy(text + start.len, "N:", 2);
	memcpy(text + n - 4, "\r\n\r\n", 4);
	return text;
}

static void assert_limit(enum h1_gate_kind kind, struct slice start, size_t limit)
{
	size_t len = 0;
	char *fits = section_of(start, limit);
	assert_passes(kind, slice_of(fits, limit), 4096);
	free(fits);

	char *longer = section_of(start, limit + 1);
	struct h1_gate gate = {.kind = kind};
	assert_int_equal(h1_gate(&gate, slice_of(longer, limit - 1), &len), CAGE_AGAIN);
	assert_int_equal(h1_gate(&gate, slice_of(longer, limit), &len), CAGE_ELIMIT);
	struct h1_gate whole = {.kind = kind};
	assert_int_equal(h1_gate(&whole, slice_of(longer, limit + 1), &len), CAGE_ELIMIT);
	free(longer);
}

static void t24_huge_heads(void **state)
{
	(void)state;
	assert_limit(H1_GATE_REQUEST, SLICE("GET / HTTP/1.1\r\n"), LIMIT_HEAD);
	assert_limit(H1_GATE_RESPONSE, SLICE("HTTP/1.1 200 OK\r\n"), LIMIT_HEAD);
	assert_limit(H1_GATE_TRAILERS, SLICE(""), LIMIT_TRAILERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_pass_however_cut),
		cmocka_unit_test(what_follows_is_left_alone),
		cmocka_unit_test(t22_first_bad_byte_ends_it),
		cmocka_unit_test(t11_other_protocols),
		cmocka_unit_test(method_limit),
		cmocka_unit_test(t24_huge_heads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
