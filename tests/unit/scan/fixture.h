/* What the tests of the scanner share: sets made of a few formats, and texts that are scanned cut in any way. */
#ifndef CAGE_TESTS_SCAN_FIXTURE_H
#define CAGE_TESTS_SCAN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/base/limits.h"
#include "inspectors/scan/scan.h"

#define HITS_MAX 256

#define PATTERN(lit) .id = {"test", 4}, .pattern = {(lit), sizeof(lit) - 1}

struct seen {
	const struct format *format;
	enum scan_certainty certainty;
	uint64_t offset;
	struct slice value; /* copied */
};

struct hits {
	struct seen list[HITS_MAX];
	size_t n;
};

static inline void see(void *arg, const struct scan_hit *hit)
{
	struct hits *hits = arg;
	assert_true(hits->n < HITS_MAX);
	char *copy = malloc(hit->value.len + 1);
	assert_non_null(copy);
	if (hit->value.len > 0)
		memcpy(copy, hit->value.ptr, hit->value.len);
	hits->list[hits->n++] = (struct seen){hit->format, hit->certainty, hit->offset, slice_of(copy, hit->value.len)};
}

static inline void hits_clear(struct hits *hits)
{
	for (size_t i = 0; i < hits->n; i++)
		free((void *)hits->list[i].value.ptr);
	hits->n = 0;
}

/* Formats are few, patterns are good; *arena holds what the set borrows. */
static inline struct scan_set *set_of(struct format *formats, size_t n, struct arena *arena)
{
	struct scan_bytes bytes;
	size_t at;
	const char *why;
	arena_init(arena, MIB(64));
	assert_int_equal(scan_set_compile(formats, n, arena, &bytes, &at, &why), CAGE_OK);
	struct scan_set *set = scan_set_load(formats, n, &bytes);
	assert_non_null(set);
	return set;
}

/* Feeds a copy that ends where the bytes end, and that is gone afterwards. */
static inline void feed(struct scan *s, struct slice piece)
{
	char *copy = malloc(piece.len ? piece.len : 1);
	assert_non_null(copy);
	if (piece.len > 0)
		memcpy(copy, piece.ptr, piece.len);
	assert_int_equal(scan_feed(s, slice_of(copy, piece.len)), CAGE_OK);
	free(copy);
}

/* One text: its first `cut` bytes, then pieces of `step` bytes (0: all the rest). */
static inline void scan_cut(struct scan *s, struct slice text, size_t cut, size_t step, struct hits *hits)
{
	hits_clear(hits);
	assert_int_equal(scan_reset(s, hits), CAGE_OK);
	feed(s, slice_head(text, cut));
	for (struct slice rest = slice_from(text, cut); rest.len > 0; rest = slice_from(rest, step ? step : rest.len))
		feed(s, slice_head(rest, step ? step : rest.len));
	assert_int_equal(scan_end(s), CAGE_OK);
}

#endif
