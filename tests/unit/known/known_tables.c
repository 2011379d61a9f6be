/* The tables of a set are those that come of trying every byte at every place, which is slow and needs no thought. */
#include "inspectors/known/set.h"
#include "tests/unit/known/fixture.h"

#define ALL_FORMS ((1u << KNOWN_FORMS) - 1)
#define STARTS_MAX 65536

/* What the tables are to be. */
struct tables {
	bool firsts[256];
	unsigned char pairs[65536];
	struct known_start starts[STARTS_MAX]; /* as they are found */
	size_t n;
};

static void try_all(const struct known_set *set, size_t way, char *text, size_t len, struct tables *t)
{
	for (unsigned c = 0; c < 256; c++) {
		size_t ignored;
		text[len] = (char)c;
		if (known_compare(&set->ways[way], slice_of(text, len + 1), &ignored) == COMPARE_DIFFERS)
			continue;
		if (len == 0)
			t->firsts[c] = true;
		else if (len < KNOWN_START)
			t->pairs[known_pair(text + len - 1)] |= (unsigned char)(1u << (len - 1));
		if (len + 1 < KNOWN_START || len + 1 < known_start_length(text)) {
			try_all(set, way, text, len + 1, t);
			continue;
		}
		assert_true(t->n < STARTS_MAX);
		t->starts[t->n++] = (struct known_start){known_start_key(text), (uint32_t)way};
	}
}

/* Those of each bucket are there, in the order in which they were found. */
static void must_have_starts(const struct known_set *set, const struct tables *t)
{
	uint32_t next[KNOWN_BUCKETS];
	memcpy(next, set->buckets, sizeof(next));
	assert_int_equal(set->buckets[KNOWN_BUCKETS], t->n);
	for (size_t i = 0; i < t->n; i++) {
		unsigned bucket = known_bucket(t->starts[i].key);
		assert_true(next[bucket] < set->buckets[bucket + 1]);
		const struct known_start *s = &set->starts[next[bucket]++];
		assert_int_equal(s->key, t->starts[i].key);
		assert_int_equal(s->way, t->starts[i].way);
	}
}

static void must_be_complete(const struct known_item *items, size_t n, unsigned forms)
{
	struct known_set *set = known_set_new(items, n, forms);
	struct tables *t = calloc(1, sizeof(*t));
	char text[KNOWN_START_MAX];
	assert_non_null(set);
	assert_non_null(t);
	for (size_t way = 0; way < set->n_ways; way++)
		try_all(set, way, text, 0, t);
	assert_memory_equal(set->firsts, t->firsts, sizeof(t->firsts));
	assert_memory_equal(set->pairs, t->pairs, sizeof(t->pairs));
	must_have_starts(set, t);
	free(t);
	known_set_unref(&set);
}

/* Bytes that are escapes themselves, that look like the start of one, or that some form writes in its own way; at both
 * ends, for the reversed form. */
static void of_values_with_escapes(void **state)
{
	(void)state;
	static const struct slice values[] = {
		WORD("%25%2525"),
		WORD("%%%%%%%%"),
		WORD("%2%2%2%2"),
		WORD("%%25+ +%"),
		WORD("\\\\\\\\\\\\\\\\"),
		WORD("\\u005cu0"),
		WORD("\\u\\u\\u\\u"),
		WORD("\\\"/\b\f\n\r\t"),
		WORD("\t\r\n\f\b/\"\\"),
		WORD("\\n\\t\\\\u"),
		WORD("\xc3\xa4\xe2\x82\xac\xc2\xad\xc3\xa4"),
		WORD("\xe2\x80\x8b\xe2\x80\x8b\xe2\x80\x8b"),
		WORD("\xc3\xc3\xe2\x82zz\xef\xbb"),
		WORD("\xfb\xff\xbf\xfe\xff\xff\xff\xff"),
		WORD("a+b c+d e"),
		WORD("JKLMjklm"),
		WORD("\\\xc3\xa4\\\xc3\xa4\\\\\\"),
		WORD("a\0b\0\0c\0\0"),
		WORD("\\u00\\u00"),
		WORD("u0000u0000"),
	};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct known_item item = {KNOWN_VALUE, 0, values[i]};
		must_be_complete(&item, 1, ALL_FORMS);
	}
}

/* Each byte at each of the places that matter. */
static void of_every_byte(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		char a[8], b[8] = "x.%\\Q\\%x";
		memset(a, (int)c, sizeof(a));
		b[c % 4] = (char)c;
		b[7 - c % 4] = (char)c;
		const struct known_item items[] = {{KNOWN_VALUE, 0, slice_of(a, 8)}, {KNOWN_VALUE, 1, slice_of(b, 8)}};
		must_be_complete(items, 2, ALL_FORMS);
	}
}

/* The digits come behind what the tables see, but with a prefix that is too short, too. */
static void of_placeholders(void **state)
{
	(void)state;
	const struct known_item items[] = {{KNOWN_PLACEHOLDER, 0, SLICE("my-placeholder")},
					   {KNOWN_RANDOM_PLACEHOLDER, 0, SLICE("cage-ph-")}};
	must_be_complete(items, 2, ALL_FORMS);
	struct known_item item = {KNOWN_RANDOM_PLACEHOLDER, 0, SLICE("cag")};
	must_be_complete(&item, 1, ALL_FORMS & ~(1u << KNOWN_PERCENT | 1u << KNOWN_JSON));
}

/* Few different bytes, most of them special, so that they meet in all ways. */
static void of_random_values(void **state)
{
	(void)state;
	static const char bytes[] = "%%\\\\u0025c+ /nK\xc3\xa4\xe2\x80\x8b\xad";
	uint32_t seed = 1;
	for (unsigned round = 0; round < 150; round++) {
		char values[2][12];
		struct known_item items[2];
		for (size_t v = 0; v < 2; v++) {
			for (size_t i = 0; i < sizeof(values[v]); i++) {
				seed = seed * 1664525 + 1013904223;
				values[v][i] = v == 0 ? bytes[(seed >> 16) % (sizeof(bytes) - 1)] : (char)(seed >> 24);
			}
			items[v] =
				(struct known_item){KNOWN_VALUE, (unsigned)v, slice_of(values[v], sizeof(values[v]))};
		}
		must_be_complete(items, 2, ALL_FORMS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_values_with_escapes),
		cmocka_unit_test(of_every_byte),
		cmocka_unit_test(of_placeholders),
		cmocka_unit_test(of_random_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
