/* What the tests of inspectors/known share: text that is built up in memory, encoders, and a redactor that is fed in
 * pieces. */
#ifndef CAGE_TESTS_KNOWN_FIXTURE_H
#define CAGE_TESTS_KNOWN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "inspectors/known/redact.h"
#include "tests/unit/bytes.h"

/* ---- encoders ---- */

enum alphabet { ALPHABET_STD, ALPHABET_URL };

static inline void add_base64(struct bytes *b, struct slice s, enum alphabet alphabet, bool pads)
{
	static const char *const digits[] = {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
					     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"};
	for (size_t i = 0; i < s.len; i += 3) {
		size_t n = s.len - i < 3 ? s.len - i : 3;
		unsigned group = 0;
		for (size_t k = 0; k < 3; k++)
			group = group << 8 | (k < n ? (unsigned char)s.ptr[i + k] : 0);
		for (size_t k = 0; k <= n; k++)
			bytes_add_char(b, digits[alphabet][group >> (18 - 6 * k) & 63]);
		for (size_t k = n; pads && k < 3; k++)
			bytes_add_char(b, '=');
	}
}

static inline void add_hex(struct bytes *b, struct slice s, const char *digits)
{
	for (size_t i = 0; i < s.len; i++) {
		bytes_add_char(b, digits[(unsigned char)s.ptr[i] >> 4]);
		bytes_add_char(b, digits[s.ptr[i] & 15]);
	}
}

#define LOWER "0123456789abcdef"
#define UPPER "0123456789ABCDEF"

/* ---- redaction ---- */

static inline void collect(void *arg, struct slice bytes)
{
	assert_true(bytes.len > 0);
	bytes_add(arg, bytes);
}

/* The first piece has `cut` bytes, the others `step`; 0: all that is left. Each is a copy of its own, for the
 * sanitizer. */
static inline uint64_t redact_cut(const struct known_set *set, const struct slice *placeholders, struct slice text,
				  size_t cut, size_t step, struct bytes *out)
{
	struct redactor *r = redactor_new(set, placeholders, collect, out);
	assert_non_null(r);
	out->len = 0;
	for (size_t at = 0, n = cut; at < text.len; at += n, n = step) {
		if (n == 0 || n > text.len - at)
			n = text.len - at;
		char *piece = malloc(n);
		assert_non_null(piece);
		memcpy(piece, text.ptr + at, n);
		assert_int_equal(redactor_feed(r, slice_of(piece, n)), CAGE_OK);
		free(piece);
		assert_true(redactor_kept(r) < known_set_reach(set));
	}
	assert_int_equal(redactor_end(r), CAGE_OK);
	assert_int_equal(redactor_kept(r), 0);
	uint64_t found = redactor_found(r);
	redactor_free(&r);
	assert_null(r);
	return found;
}

#endif
