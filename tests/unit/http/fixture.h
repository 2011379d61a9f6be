/* What the tests of core/http share: cmocka, an arena for each test, and slices compared with C text. */
#ifndef CAGE_TESTS_HTTP_FIXTURE_H
#define CAGE_TESTS_HTTP_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/arena.h"
#include "core/base/limits.h"

static struct arena arena;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, MIB(4));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

static inline void assert_slice(struct slice got, const char *wanted)
{
	if (!slice_eq(got, slice_str(wanted)))
		fail_msg("got %.*s, wanted %s", SLICE_FMT(got), wanted);
}

#endif
