/* Formats that are looked for near long words only, or by names that are assigned something: they are found wherever the
 * same formats are found that are looked for everywhere, in random texts cut at random. */
#include "tests/unit/scan/fixture.h"

#define TEXTS 3000
#define TEXT_MAX 1200
#define FORMATS 4

#define PREFIXED "\\btok_[A-Za-z0-9]{24}\\b"
#define NAMED "(?i:aws_?key)[\"']?\\s{0,3}[:=]\\s{0,3}[\"']?([A-Za-z0-9/+]{40})\\b"
#define QUOTED                                                                                                         \
	"(?i:api_?key|passw(?:or)?d|secret)[a-z0-9]{0,8}[\"']?\\]?\\s{0,3}(?:=>|:=|[:=])\\s{0,3}[\"']([A-Za-z0-9]{10," \
	"40})[\"']"
#define SHORT "://[a-z]{1,20}:([0-9]{4})@"

static const struct format everywhere[FORMATS] = {
	{PATTERN(PREFIXED)}, {PATTERN(NAMED)}, {PATTERN(QUOTED)}, {PATTERN(SHORT)}};

/* What texts are made of: whole matches, parts of them, words and what stands between. */
static const char *const parts[] = {"tok_0123456789abcdefghijKLMN",
				    "tok_0123456789abcdefg",
				    "hijKLMN",
				    "aws_key",
				    "AWSKEY",
				    "0123456789abcdefghijKLMN0123456789abcdef",
				    "api_key",
				    "PassWord",
				    "secret9",
				    "\"Zm9vYmFyMTIzNDU2\"",
				    "\"short\"",
				    "://ada:1234@",
				    " = ",
				    ": ",
				    ":",
				    "=>",
				    "\"",
				    "']",
				    " ",
				    "\n",
				    "word ",
				    "the quick brown fox jumps over the lazy dog and the next one, too; ",
				    "a_long_identifier_in_some_code(",
				    "ke",
				    "y",
				    "se",
				    "cret"};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t make_text(char *text, uint64_t *state)
{
	size_t len = 0, want = next_random(state) % (TEXT_MAX - 100);
	while (len < want) {
		const char *part = parts[next_random(state) % PARTS];
		memcpy(text + len, part, strlen(part));
		len += strlen(part);
	}
	return len;
}

/* By format, then by place. */
static int compare(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	int by_pattern = memcmp(x->format->pattern.ptr, y->format->pattern.ptr, 4);
	if (by_pattern != 0)
		return by_pattern;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void must_agree(struct hits *a, struct hits *b, struct slice text)
{
	qsort(a->list, a->n, sizeof(a->list[0]), compare);
	qsort(b->list, b->n, sizeof(b->list[0]), compare);
	for (size_t i = 0; i < a->n && i < b->n; i++)
		if (compare(&a->list[i], &b->list[i]) != 0 || !slice_eq(a->list[i].value, b->list[i].value))
			fail_msg("hit %zu differs in: %.*s", i, SLICE_FMT(text));
	if (a->n != b->n)
		fail_msg("%zu hits, and %zu everywhere, in: %.*s", b->n, a->n, SLICE_FMT(text));
}

static void as_everywhere(void **unused)
{
	(void)unused;
	static struct hits all, some;
	struct arena arenas[2];
	struct format plain[FORMATS], fast[FORMATS];
	memcpy(plain, everywhere, sizeof(plain));
	memcpy(fast, everywhere, sizeof(fast));
	fast[0].worded = fast[1].worded = true;
	fast[2].assigned = true;
	struct scan_set *sets[2] = {set_of(plain, FORMATS, &arenas[0]), set_of(fast, FORMATS, &arenas[1])};
	struct scan *scans[2] = {scan_new(sets[0], see, NULL), scan_new(sets[1], see, NULL)};
	size_t found = 0;
	uint64_t random = 0x9e3779b97f4a7c15u;
	for (unsigned i = 0; i < TEXTS; i++) {
		char bytes[TEXT_MAX];
		struct slice text = slice_of(bytes, make_text(bytes, &random));
		scan_cut(scans[0], text, 0, 0, &all);
		scan_cut(scans[1], text, next_random(&random) % (text.len + 1), next_random(&random) % 90, &some);
		must_agree(&all, &some, text);
		found += all.n;
	}
	assert_true(found > TEXTS);
	for (size_t i = 0; i < 2; i++) {
		scan_free(&scans[i]);
		scan_set_free(&sets[i]);
		arena_free(&arenas[i]);
	}
	hits_clear(&all);
	hits_clear(&some);
}

static void at_every_cut(void **state)
{
	(void)state;
	static struct hits hits;
	struct arena arena;
	struct format formats[] = {{PATTERN(NAMED), .worded = true}, {PATTERN(QUOTED), .assigned = true}};
	struct slice text =
		SLICE("here and there, but long after all that: aws_key = '0123456789abcdefghijKLMN0123456789abcdef', "
		      "and behind a good many words of no interest to anybody [\"api_key\"] => \"Zm9vYmFyMTIzNDU2\"");
	struct scan_set *set = set_of(formats, 2, &arena);
	struct scan *s = scan_new(set, see, NULL);
	for (size_t cut = 0; cut <= text.len; cut++) {
		scan_cut(s, text, cut, 0, &hits);
		assert_int_equal(hits.n, 2);
	}
	for (size_t step = 1; step < 100; step++) {
		scan_cut(s, text, 0, step, &hits);
		assert_int_equal(hits.n, 2);
	}
	hits_clear(&hits);
	scan_free(&s);
	scan_set_free(&set);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_everywhere),
		cmocka_unit_test(at_every_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
