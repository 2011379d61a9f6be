/* Texts in pieces: what is found, where it stands and what its value is, wherever the text was cut. */
#include "tests/unit/scan/fixture.h"

/* What must be found, in order. */
struct want {
	uint64_t offset;
	const char *value;
};

static void must_be(const struct hits *hits, const struct want *wants, size_t n, size_t cut)
{
	if (hits->n != n)
		fail_msg("cut at %zu: %zu hits, not %zu", cut, hits->n, n);
	for (size_t i = 0; i < n; i++) {
		const struct seen *h = &hits->list[i];
		assert_int_equal(h->certainty, SCAN_CONFIRMED);
		if (h->offset != wants[i].offset || !slice_eq(h->value, slice_str(wants[i].value)))
			fail_msg("cut at %zu: '%.*s' at %zu, not '%s' at %zu", cut, SLICE_FMT(h->value),
				 (size_t)h->offset, wants[i].value, (size_t)wants[i].offset);
	}
}

/* At every cut, byte by byte, and in pieces of a few bytes. */
static void assert_found(struct format format, struct slice text, const struct want *wants, size_t n)
{
	static struct hits hits;
	struct arena arena;
	struct scan_set *set = set_of(&format, 1, &arena);
	struct scan *s = scan_new(set, see, NULL);
	assert_non_null(s);
	for (size_t cut = 0; cut <= text.len; cut++) {
		scan_cut(s, text, cut, 0, &hits);
		must_be(&hits, wants, n, cut);
	}
	for (size_t step = 1; step < 8; step++) {
		scan_cut(s, text, 0, step, &hits);
		must_be(&hits, wants, n, step);
	}
	hits_clear(&hits);
	scan_free(&s);
	scan_set_free(&set);
	arena_free(&arena);
}

#define FOUND(format, text, ...)                                                               \
	do {                                                                                   \
		const struct want wants_[] = {__VA_ARGS__};                                    \
		assert_found(format, SLICE(text), wants_, sizeof(wants_) / sizeof(wants_[0])); \
	} while (0)
#define NOT_FOUND(format, text) assert_found(format, SLICE(text), NULL, 0)

static void simple(void **state)
{
	(void)state;
	const struct format key = {PATTERN("key-[0-9]{4}")};
	FOUND(key, "key-1234", {0, "key-1234"});
	FOUND(key, "a key-1234 b", {2, "key-1234"});
	FOUND(key, "key-1234key-5678 key-9999", {0, "key-1234"}, {8, "key-5678"}, {17, "key-9999"});
	FOUND(key, "key-12key-5678", {6, "key-5678"});
	FOUND(key, "\0\xff\nkey-1234\0", {3, "key-1234"});
	NOT_FOUND(key, "key-123");
	NOT_FOUND(key, "KEY-1234");
	NOT_FOUND(key, "");
	FOUND(((struct format){PATTERN("key-[0-9]{4}"), .caseless = true}), "KeY-1234", {0, "KeY-1234"});
	FOUND(((struct format){PATTERN("a.b")}), "a\nb", {0, "a\nb"});
}

static void groups(void **state)
{
	(void)state;
	FOUND(((struct format){PATTERN("pass(?:word)?[:=] ?([a-z]{4,8})")}), "password= hunter;", {10, "hunter"});
	FOUND(((struct format){PATTERN("pass=(x[0-9]{2})?(end)")}), "pass=end", {0, "pass=end"});
	FOUND(((struct format){PATTERN("u(s)(e)(r)(1)")}), "user1", {1, "s"});
}

/* A value is as long as it can be, however many candidates it has, and it is one hit. */
static void values_are_whole(void **state)
{
	(void)state;
	const struct format key = {PATTERN("k-[a-z]{4,12}")};
	FOUND(key, "k-abcdefghij", {0, "k-abcdefghij"});
	FOUND(key, "'k-abcdefghij' and k-zyxw", {1, "k-abcdefghij"}, {19, "k-zyxw"});
	FOUND(key, "k-abcdefghijklmnopq", {0, "k-abcdefghijkl"});
	FOUND(key, "k-abcdk-efgh", {0, "k-abcdk"}); /* what overlaps is the same hit */
	FOUND(((struct format){PATTERN("ab(?:[c-e]{0,9}f)?")}), "abcdefabcdeg", {0, "abcdef"}, {6, "ab"});
}

static void edges(void **state)
{
	(void)state;
	const struct format word = {PATTERN("\\bkey[0-9]{3}\\b")};
	FOUND(word, "key123", {0, "key123"});
	FOUND(word, " key123 key456.", {1, "key123"}, {8, "key456"});
	NOT_FOUND(word, "xkey123 key1234 key456_");
	FOUND(((struct format){PATTERN("^key")}), "keykey\nkey", {0, "key"});
	FOUND(((struct format){PATTERN("key$")}), "keykey\nkey", {7, "key"});
	FOUND(((struct format){PATTERN("key$")}), "keykey\n", {3, "key"});
	FOUND(((struct format){PATTERN("key\\z")}), "key\nkey", {4, "key"});
	FOUND(((struct format){PATTERN("(?m)^key$")}), "key\nkeys\nkey\n", {0, "key"}, {9, "key"});
	FOUND(((struct format){PATTERN("x?abc\\b|abc")}), "xabc xabcd", {0, "xabc"}, {6, "abc"});
}

static void checks(void **state)
{
	(void)state;
	const struct format card = {PATTERN("\\b[0-9]{16}\\b"), .check = CHECK_LUHN};
	FOUND(card, "4111111111111112 4111111111111111", {17, "4111111111111111"});
	const struct format token = {PATTERN("[a-z0-9]{8}"), .min_entropy = 2.9};
	FOUND(token, "aaaaaaaaa1b2c3d4", {8, "a1b2c3d4"}); /* starts inside what failed */
	NOT_FOUND(token, "aaaaaaaaaaaaaaaaaaaa");
	/* Bytes put behind a secret do not hide it. */
	const struct format diluted = {PATTERN("key-([a-z0-9]{8,32})"), .min_entropy = 2.9};
	FOUND(diluted, "key-a1b2c3d4aaaaaaaaaaaaaaaaaaaaaaaa!", {4, "a1b2c3d4"});
	FOUND(diluted, "key-a1b2c3d4e5f6", {4, "a1b2c3d4e5f6"});
}

/* Several formats, and texts that end before they were read. */
static void resets(void **state)
{
	(void)state;
	static struct hits first, second;
	struct format formats[] = {{PATTERN("one[0-9]{2}")}, {PATTERN("[a-z]{3}1[0-9]")}};
	struct arena arena;
	struct scan_set *set = set_of(formats, 2, &arena);
	struct scan *s = scan_new(set, see, &first);
	assert_non_null(s);
	feed(s, SLICE("one1"));
	assert_int_equal(scan_reset(s, &second), CAGE_OK);
	feed(s, SLICE("2 one12"));
	assert_int_equal(scan_end(s), CAGE_OK);
	assert_int_equal(first.n, 0);
	assert_int_equal(second.n, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(second.list[i].offset, 2);
		assert_true(second.list[i].format == &formats[0] || second.list[i].format == &formats[1]);
	}
	assert_ptr_not_equal(second.list[0].format, second.list[1].format);
	scan_cut(s, SLICE("one34"), 2, 0, &first);
	assert_int_equal(first.n, 1);
	assert_int_equal(second.n, 2);
	hits_clear(&first);
	hits_clear(&second);
	scan_free(&s);
	scan_set_free(&set);
	arena_free(&arena);
}

/* Two scans of one set, side by side. */
static void side_by_side(void **state)
{
	(void)state;
	static struct hits hits[2];
	struct format key = {PATTERN("key-[0-9]{4}")};
	struct arena arena;
	struct scan_set *set = set_of(&key, 1, &arena);
	struct scan *scans[2] = {scan_new(set, see, &hits[0]), scan_new(set, see, &hits[1])};
	const struct slice texts[2] = {SLICE("key-1234"), SLICE("kex-1234")};
	for (size_t i = 0; i < 8; i++)
		for (size_t j = 0; j < 2; j++)
			feed(scans[j], slice_of(texts[j].ptr + i, 1));
	for (size_t j = 0; j < 2; j++) {
		assert_int_equal(scan_end(scans[j]), CAGE_OK);
		scan_free(&scans[j]);
	}
	assert_int_equal(hits[0].n, 1);
	assert_int_equal(hits[1].n, 0);
	hits_clear(&hits[0]);
	scan_set_free(&set);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(simple),       cmocka_unit_test(groups), cmocka_unit_test(values_are_whole),
		cmocka_unit_test(edges),        cmocka_unit_test(checks), cmocka_unit_test(resets),
		cmocka_unit_test(side_by_side),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
