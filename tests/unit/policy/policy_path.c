/* Path patterns: what they match, which is the heavier, which can meet. The last is checked against brute force. */
#include "tests/unit/policy/fixture.h"

#include "core/policy/pattern.h"

static bool matches(const char *pattern, const char *path)
{
	return policy_path_matches(slice_str(pattern), slice_str(path));
}

static void globs(void **state)
{
	(void)state;
	static const struct {
		const char *pattern, *path;
		bool matches;
	} cases[] = {
		{"/", "/", true},
		{"/", "/a", false},
		{"/a", "/a", true},
		{"/a", "/A", false},
		{"/a", "/a/", false},
		{"/a/", "/a", false},
		{"/*", "/", true},
		{"/*", "/a", true},
		{"/*", "/a/b", false},
		{"/*", "/a/", false},
		{"/a/*", "/a", false},
		{"/a/*", "/a/", true},
		{"/a/*/c", "/a/b/c", true},
		{"/a/*/c", "/a/c", false},
		{"/a/*/c", "/a/b/b/c", false},
		{"/a*c", "/ac", true},
		{"/a*c", "/abcbc", true},
		{"/a*c", "/abcb", false},
		{"/a*c", "/a/c", false},
		{"/*a*b*", "/xxaxxbxx", true},
		{"/*a*b*", "/xxbxxaxx", false},
		{"/v1/**", "/v1", true},
		{"/v1/**", "/v1/", true},
		{"/v1/**", "/v1/a", true},
		{"/v1/**", "/v1/a/b/c", true},
		{"/v1/**", "/v10", false},
		{"/v1/**", "/v", false},
		{"/**", "/", true},
		{"/**", "/a/b", true},
		{"/**", "//", true},
		{"/**/b", "/b", true},
		{"/**/b", "/a/b", true},
		{"/**/b", "/a/b/c", false},
		{"/**/b", "/ab", false},
		{"/a/**/b", "/a/b", true},
		{"/a/**/b", "/a/x/y/b", true},
		{"/a/**/b", "/a/x/y/c", false},
		{"/a/**/b/**/c", "/a/b/c", true},
		{"/a/**/b/**/c", "/a/x/b/b/y/c", true},
		{"/a/**/b/**/c", "/a/x/c/b", false},
		{"/**/a*/b/*", "/x/a/b/a1/b/c", true},
		{"/**/a*/b/*", "/x/a/b", false},
		{"/**/**", "/a", true},
		{"/a//b", "/a//b", true},
		{"/a//b", "/a/b", false},
		/* what is not a path fits no pattern */
		{"/**", "*", false},
		{"/**", "", false},
		{"", "", false},
		{"", "/", false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (matches(cases[i].pattern, cases[i].path) != cases[i].matches)
			fail_msg("%s against %s", cases[i].pattern, cases[i].path);
	}
}

/* A pattern with many stars against a path that nearly fits, many times over, must not take exponential time. */
static void globs_are_not_exponential(void **state)
{
	(void)state;
	char path[LIMIT_TARGET], pattern[] = "/**/*a*a*a*a*b/**/*a*a*a*a*b/**/*a*a*a*a*b/**/c";
	for (size_t i = 0; i < sizeof(path); i++)
		path[i] = i % 32 == 0 ? '/' : 'a';
	assert_false(policy_path_matches(slice_str(pattern), slice_of(path, sizeof(path))));
}

static void stars_in_odd_places(void **state)
{
	(void)state;
	assert_null(pattern_fault(SLICE("/a/**/b*/*/**")));
	assert_non_null(pattern_fault(SLICE("/a**")));
	assert_non_null(pattern_fault(SLICE("/**a")));
	assert_non_null(pattern_fault(SLICE("/a/***")));
}

static void weights(void **state)
{
	(void)state;
	assert_int_equal(pattern_weight(SLICE("/**")), 0);
	assert_int_equal(pattern_weight(SLICE("/v1/**")), 3);
	assert_int_equal(pattern_weight(SLICE("/v1*")), 3);
	assert_int_equal(pattern_weight(SLICE("/v1")), 4);
	assert_int_equal(pattern_weight(SLICE("/v1/*")), 4);
	assert_int_equal(pattern_weight(SLICE("/v1/**/a")), 5);
	assert_int_equal(pattern_weight(SLICE("/v1/a")), 6);
}

static void prefixes(void **state)
{
	(void)state;
	assert_int_equal(pattern_prefix(SLICE("/v1/**")).len, 3);
	assert_int_equal(pattern_prefix(SLICE("/v1/*")).len, 4);
	assert_int_equal(pattern_prefix(SLICE("/v1/a*b/c")).len, 5);
	assert_int_equal(pattern_prefix(SLICE("/v1/a")).len, 5);
	assert_int_equal(pattern_prefix(SLICE("/**")).len, 0);
}

static bool meet(const char *a, const char *b)
{
	uint64_t steps = 0;
	bool result = patterns_overlap(slice_str(a), slice_str(b), &steps);
	assert_int_equal(result, patterns_overlap(slice_str(b), slice_str(a), &steps));
	assert_true(steps > 0);
	return result;
}

static void overlaps(void **state)
{
	(void)state;
	assert_false(meet("/a/**", "/b/**"));
	assert_true(meet("/a/**", "/**/b"));
	assert_true(meet("/a/*", "/*/b"));
	assert_false(meet("/a/*", "/*/b/c"));
	assert_true(meet("/v1/**", "/v1"));
	assert_false(meet("/v1/**", "/v2"));
	assert_true(meet("/a*c", "/*b*"));
	assert_false(meet("/a*c", "/b*c"));
	assert_false(meet("/*a", "/*b"));
	assert_true(meet("/**/x/**", "/**/y/**"));
	assert_false(meet("/repos/*/issues", "/repos/*/pulls"));
}

/* Text of up to n bytes over an alphabet of four, by number: all of them are tried. */
static struct slice nth_text(size_t n, const char *alphabet, size_t base, char *out)
{
	size_t len = 0;
	for (out[len++] = '/'; n > 0; n /= base + 1) {
		if (n % (base + 1) == 0)
			return SLICE_NONE;
		out[len++] = alphabet[n % (base + 1) - 1];
	}
	return slice_of(out, len);
}

#define PATTERNS 625 /* up to four bytes of a, '/', '*' and b */
#define PATHS 4096   /* up to six bytes of a, '/', b */

/* No pair of short patterns is called disjoint while a short path fits both, and the reverse: a pair that meets has a
 * short path that shows it. */
static void overlaps_agree_with_brute_force(void **state)
{
	(void)state;
	static char hits[PATTERNS][PATHS];
	static char bufs[PATTERNS][8];
	static struct slice patterns[PATTERNS];
	for (size_t i = 0; i < PATTERNS; i++) {
		patterns[i] = nth_text(i, "a/*b", 4, bufs[i]);
		if (patterns[i].ptr && pattern_fault(patterns[i]))
			patterns[i] = SLICE_NONE;
		for (size_t j = 0; j < PATHS && patterns[i].ptr; j++) {
			char buf[16];
			struct slice path = nth_text(j, "a/b", 3, buf);
			uint64_t steps = 0;
			if (!path.ptr)
				continue;
			hits[i][j] = policy_path_matches(patterns[i], path);
			/* a path is a pattern without stars: two ways to the same answer */
			if (hits[i][j] != patterns_overlap(patterns[i], path, &steps))
				fail_msg("%.*s against %.*s", SLICE_FMT(patterns[i]), SLICE_FMT(path));
			if (hits[i][j])
				assert_true(slice_starts(path, pattern_prefix(patterns[i])));
		}
	}
	for (size_t a = 0; a < PATTERNS; a++) {
		for (size_t b = a; b < PATTERNS && patterns[a].ptr; b++) {
			uint64_t steps = 0;
			bool found = false;
			if (!patterns[b].ptr)
				continue;
			for (size_t j = 0; j < PATHS && !found; j++)
				found = hits[a][j] && hits[b][j];
			if (found != patterns_overlap(patterns[a], patterns[b], &steps))
				fail_msg("%.*s and %.*s", SLICE_FMT(patterns[a]), SLICE_FMT(patterns[b]));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(globs),
		cmocka_unit_test(globs_are_not_exponential),
		cmocka_unit_test(stars_in_odd_places),
		cmocka_unit_test(weights),
		cmocka_unit_test(prefixes),
		cmocka_unit_test(overlaps),
		cmocka_unit_test(overlaps_agree_with_brute_force),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
