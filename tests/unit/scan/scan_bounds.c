/* The bounds: matches as long as they may be, texts that are large, and texts made to be slow. */
#include "tests/unit/scan/fixture.h"

#define LONGEST (LIMIT_SCAN_TAIL - 2)
#define TEXT_MAX MIB(1)

static char text[TEXT_MAX];
static struct hits hits;
static struct arena arena;
static struct scan_set *set;
static struct scan *scan;

static void begin(struct format *format)
{
	set = set_of(format, 1, &arena);
	scan = scan_new(set, see, NULL);
	assert_non_null(scan);
}

static void end(void)
{
	hits_clear(&hits);
	scan_free(&scan);
	scan_set_free(&set);
	arena_free(&arena);
}

static void put(size_t at, const char *s)
{
	memcpy(text + at, s, strlen(s));
}

/* A match of the greatest length, anywhere in a text and cut anywhere. */
static void longest_match(void **state)
{
	(void)state;
	static const size_t places[] = {0, 1, 2, 4093, 4094, 4095, 4096, 8191, 10000};
	static const size_t steps[] = {0, 1, 7, 4093, 4094, 4095, 4096, 4097, 8192};
	struct format f = {PATTERN("\\bBEGIN[a-z]{4085}END!\\b")};
	begin(&f);
	assert_int_equal(f.max_len, LONGEST);
	for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
		for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
			memset(text, ' ', 20000);
			memset(text + places[p], 'a', LONGEST);
			put(places[p], "BEGIN");
			put(places[p] + 5 + 4085, "END!x");
			scan_cut(scan, slice_of(text, 20000), i, steps[i], &hits);
			assert_int_equal(hits.n, 1);
			assert_int_equal(hits.list[0].certainty, SCAN_CONFIRMED);
			assert_int_equal(hits.list[0].offset, places[p]);
			assert_int_equal(hits.list[0].value.len, LONGEST);
		}
	}
	end();
}

/* As long as a value can be, and everything around it is more of the same. */
static void longest_value(void **state)
{
	(void)state;
	struct format f = {PATTERN("k=[a-z]{1,4092}")};
	begin(&f);
	assert_int_equal(f.max_len, LONGEST);
	memset(text, 'a', 20000);
	put(5000, "k=");
	for (size_t step = 0; step < 5000; step += 499) {
		scan_cut(scan, slice_of(text, 20000), 5001, step, &hits);
		assert_int_equal(hits.n, 1);
		assert_int_equal(hits.list[0].offset, 5000);
		assert_int_equal(hits.list[0].value.len, LONGEST);
	}
	end();
}

/* At the first byte, the last, around each cut, and far apart in one piece. */
static void t25_large_texts(void **state)
{
	(void)state;
	static const size_t steps[] = {0, 16384, 65536, 1000};
	struct format f = {PATTERN("key-[0-9]{4}")};
	begin(&f);
	memset(text, '-', TEXT_MAX);
	for (size_t at = 0; at + 8 <= TEXT_MAX; at += 16380)
		put(at, "key-1234");
	put(TEXT_MAX - 8, "key-1234");
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		scan_cut(scan, slice_of(text, TEXT_MAX), 3, steps[i], &hits);
		assert_int_equal(hits.n, TEXT_MAX / 16380 + 2);
		for (size_t h = 0; h + 1 < hits.n; h++)
			assert_int_equal(hits.list[h].offset, h * 16380);
		assert_int_equal(hits.list[hits.n - 1].offset, TEXT_MAX - 8);
	}
	end();
}

static void must_be_bounded_once(size_t len)
{
	for (size_t step = 0; step <= 16384; step += 4096) {
		scan_cut(scan, slice_of(text, len), 0, step, &hits);
		assert_int_equal(hits.n, 1);
		assert_int_equal(hits.list[0].certainty, SCAN_BOUNDED);
		assert_int_equal(hits.list[0].value.len, 0);
	}
}

/* The exact match would take for ever: it is given up, and that is a hit. */
static void t32_slow_match(void **state)
{
	(void)state;
	struct format f = {PATTERN("(?:a{1,10}){1,10}b|x{200}")};
	begin(&f);
	memset(text, 'a', 20000);
	text[10000] = 'b';
	must_be_bounded_once(20000);
	/* The next text starts afresh. */
	scan_cut(scan, SLICE("aaab"), 2, 0, &hits);
	assert_int_equal(hits.n, 1);
	assert_int_equal(hits.list[0].certainty, SCAN_CONFIRMED);
	end();
}

/* A text of nothing but candidates that all fail: it is given up after some of them. */
static void t32_many_candidates(void **state)
{
	(void)state;
	struct format f = {PATTERN("[a-z]{16}"), .min_entropy = 3.5};
	begin(&f);
	memset(text, 'a', TEXT_MAX);
	must_be_bounded_once(TEXT_MAX);
	end();
}

/* Candidates that are rare enough are all judged, however long the text is. */
static void few_candidates(void **state)
{
	(void)state;
	struct format f = {PATTERN("\\b[0-9]{16}\\b"), .check = CHECK_LUHN};
	begin(&f);
	for (size_t i = 0; i < TEXT_MAX / 32; i++)
		put(i * 32, "4111111111111112, some other ");
	scan_cut(scan, slice_of(text, TEXT_MAX), 100, 16384, &hits);
	assert_int_equal(hits.n, 0);
	put(TEXT_MAX - 32, "4111111111111111");
	scan_cut(scan, slice_of(text, TEXT_MAX), 100, 16384, &hits);
	assert_int_equal(hits.n, 1);
	assert_int_equal(hits.list[0].offset, TEXT_MAX - 32);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(longest_match),   cmocka_unit_test(longest_value),
		cmocka_unit_test(t25_large_texts), cmocka_unit_test(t32_slow_match),
		cmocka_unit_test(few_candidates),  cmocka_unit_test(t32_many_candidates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
