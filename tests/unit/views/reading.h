/* What the tests share that look for a marker in one view: a text is read whole, cut anywhere, and with the marker at every
 * place in a block. */
#ifndef CAGE_TESTS_VIEWS_READING_H
#define CAGE_TESTS_VIEWS_READING_H

#include "tests/unit/views/fixture.h"

static struct views *views;
static struct kept kept;

static inline int setup(void **state)
{
	(void)state;
	views = views_new(&keeper, &kept);
	return views ? 0 : -1;
}

static inline int teardown(void **state)
{
	(void)state;
	views_free(&views);
	kept_clear(&kept);
	return 0;
}

static inline void assert_read(struct slice input, size_t cut, enum view_kind kind, struct slice wanted)
{
	keep_all(views, &kept, input, cut);
	if (!kept_has(&kept, &kind, 1, wanted))
		fail_msg("cut at %zu: not in view %.*s: %.*s", cut, SLICE_FMT(view_kind_text(kind)), SLICE_FMT(input));
}

/* Whole, one byte at a time, and cut in two anywhere. */
static inline void assert_read_cut(struct slice input, enum view_kind kind, struct slice wanted)
{
	for (size_t cut = 0; cut <= input.len; cut++)
		assert_read(input, cut, kind, wanted);
}

/* At every place in a block, with these neighbours. */
static inline void assert_read_placed(struct slice encoded, const char *before, const char *after, enum view_kind kind)
{
	for (size_t place = 0; place < 66; place++) {
		struct bytes input = {0};
		bytes_fill(&input, '.', place);
		bytes_add(&input, slice_str(before));
		bytes_add(&input, encoded);
		bytes_add(&input, slice_str(after));
		assert_read(bytes_slice(&input), input.len, kind, SLICE(MARKER));
		assert_read(bytes_slice(&input), 0, kind, SLICE(MARKER));
		if (place == 0)
			assert_read_cut(bytes_slice(&input), kind, SLICE(MARKER));
		bytes_free(&input);
	}
}

#endif
