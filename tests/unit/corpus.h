/* The shared corpora in unit tests. A program whose corpus is absent says so and ends with CORPUS_SKIPPED, which ctest
 * shows as skipped, unless something else has failed. */
#ifndef CAGE_TESTS_UNIT_CORPUS_H
#define CAGE_TESTS_UNIT_CORPUS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define CORPUS_SKIPPED 77

static bool corpus_is_absent;

/* Opens NAME.jsonl, in $CAGE_CORPORA or where the build expects it; skips the test when it is not there. */
static inline FILE *corpus_open(const char *name)
{
	const char *dir = getenv("CAGE_CORPORA");
	char path[1024];
	snprintf(path, sizeof(path), "%s/%s.jsonl", dir ? dir : CORPORA, name);
	FILE *f = fopen(path, "r");
	if (!f) {
		print_message("no corpus at %s (set CAGE_CORPORA)\n", path);
		corpus_is_absent = true;
		skip();
	}
	return f;
}

/* What main returns; failed: tests that did. */
static inline int corpus_exit(int failed)
{
	return failed == 0 && corpus_is_absent ? CORPUS_SKIPPED : failed;
}

#endif
