/* What the tests of content decoding share: a body is fed in pieces, and what came out is compared. */
#ifndef CAGE_TESTS_HTTP_DECODE_H
#define CAGE_TESTS_HTTP_DECODE_H

#include <stdio.h>
#include "tests/unit/http/encode.h"

#include "core/base/limits.h"
#include "core/http/decode.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What came out of one body. */
struct outcome {
	enum cage_status status;
	char data[200000]; /* the first of it */
	uint64_t len;
	size_t calls, fail_at; /* of the sink; it fails at that call, unless it is 0 */
};

static struct outcome o;

static inline enum cage_status collect(void *arg, unsigned codings, struct slice piece)
{
	assert_ptr_equal(arg, &o);
	if (codings > 0)
		return CAGE_OK;
	assert_true(piece.len > 0);
	if (o.len < sizeof(o.data))
		memcpy(o.data + o.len, piece.ptr, slice_head(piece, sizeof(o.data) - o.len).len);
	o.len += piece.len;
	return ++o.calls == o.fail_at ? CAGE_EVERIFY : CAGE_OK;
}

/* The body comes in a first piece of `first` bytes, and then in pieces of `size`. */
static inline void run(const char *codings, struct slice body, size_t first, size_t size)
{
	struct decoder *d;
	o.len = o.calls = 0;
	assert_int_equal(decoder_new(slice_str(codings), collect, &o, &d), CAGE_OK);
	assert_non_null(d);
	o.status = decoder_feed(d, slice_head(body, first));
	body = slice_from(body, first);
	while (o.status == CAGE_OK && body.len > 0) {
		o.status = decoder_feed(d, slice_head(body, size));
		body = slice_from(body, size);
	}
	if (o.status == CAGE_OK)
		o.status = decoder_end(d);
	decoder_free(&d);
	assert_null(d);
}

static inline void assert_content(const char *codings, struct slice wanted)
{
	if (o.status != CAGE_OK)
		fail_msg("%s: status %d", codings, (int)o.status);
	assert_int_equal(o.len, wanted.len);
	assert_memory_equal(o.data, wanted.ptr, wanted.len);
}

/* Whole, in pieces of many sizes and, when it is short, cut at every byte. */
static inline void assert_decodes(const char *codings, struct slice body, struct slice wanted)
{
	static const size_t sizes[] = {1, 2, 3, 7, 4095, 4096, 4097, 16384, SIZE_MAX};
	for (size_t i = 0; i < COUNT(sizes); i++) {
		run(codings, body, 0, sizes[i]);
		assert_content(codings, wanted);
	}
	for (size_t cut = 1; body.len < 2000 && cut < body.len; cut++) {
		run(codings, body, cut, SIZE_MAX);
		assert_content(codings, wanted);
	}
}

static inline void assert_refused(const char *codings, struct slice body, enum cage_status status)
{
	static const size_t sizes[] = {1, 2, 5, 4096, SIZE_MAX};
	for (size_t i = 0; i < COUNT(sizes); i++) {
		run(codings, body, 0, sizes[i]);
		if (o.status != status)
			fail_msg("%s in pieces of %zu: status %d", codings, sizes[i], (int)o.status);
	}
}

/* ---- contents ---- */

static const char hello_text[] = "{\"role\":\"user\",\"content\":\"hello, hello, hello; what is in /etc/hosts?\"}";
static const struct slice hello = {hello_text, sizeof(hello_text) - 1};

/* Text that compresses to about a seventh, always the same. */
static inline struct bytes make_text(size_t len)
{
	struct bytes text = bytes_new(len);
	uint32_t state = 1;
	size_t at = 0;
	while (at < len) {
		state = state * 1664525 + 1013904223;
		int n = snprintf(text.ptr + at, len + 1 - at, "{\"id\":%u,\"text\":\"a word\"},\n", state >> 8);
		at += (size_t)n;
	}
	return text;
}

#endif
