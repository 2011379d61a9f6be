/* What entropy finds in bodies and heads, wherever it stands and however it is cut; and what it leaves alone. */
#include "tests/unit/inspectors/corpus.h"
#include "inspectors/sniff.h"
#include "inspectors/table.h"
#include "inspectors/shannon.h"

#define BIG KIB(256)

static char big[BIG];

static void fill_text(char *out, size_t n)
{
	static const char words[] = "The quick brown fox jumps over 13 lazy dogs, {\"and\": [so, on]}. ";
	for (size_t k = 0; k < n; k++)
		out[k] = words[k % (sizeof(words) - 1)];
}

/* Where it is found, or -1. */
static int64_t found_in(struct slice body, size_t size)
{
	struct inspection i;
	stub_begin(&i, &entropy_inspector);
	stub_body(&i, body, size);
	assert_true(i.n_findings <= 1);
	int64_t offset = i.n_findings > 0 ? (int64_t)i.findings[0].spot.offset : -1;
	if (i.n_findings > 0) {
		assert_int_equal(i.findings[0].reason, REASON_ENTROPY_HIGH);
		assert_int_equal(i.findings[0].action, ACTION_FLAG);
		assert_int_equal(i.findings[0].spot.place, PLACE_BODY);
	}
	stub_finish(&i);
	return offset;
}

/* In one piece and in pieces of many sizes: always the same. */
static int64_t found(struct slice body)
{
	static const size_t sizes[] = {7, 1000, 1023, 1024, 1025, 4096, 16384, 65537};
	int64_t whole = found_in(body, 0);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
		assert_int_equal(found_in(body, sizes[k]), whole);
	return whole;
}

static void test_shannon(void **state)
{
	(void)state;
	char all[1024];
	for (size_t k = 0; k < sizeof(all); k++)
		all[k] = (char)k;
	assert_true(shannon(SLICE_NONE) == 0);
	assert_true(shannon(SLICE("aaaa")) == 0);
	assert_true(shannon(SLICE("abab")) == 1);
	assert_true(shannon(slice_of(all, sizeof(all))) == 8);
	assert_true(shannon_ceiling(slice_of(all, sizeof(all))) == 8);
	assert_true(shannon_ceiling(SLICE("ascii")) == 7);
	for (size_t n = 1; n <= 1024; n += 13) {
		fill_random(all, n, n);
		assert_true(shannon_ceiling(slice_of(all, n)) >= shannon(slice_of(all, n)));
		for (size_t k = 0; k < n; k++)
			all[k] = (char)(all[k] & (k % 5 ? 0x7f : 0xff));
		assert_true(shannon_ceiling(slice_of(all, n)) >= shannon(slice_of(all, n)));
	}
}

static void test_small_bodies(void **state)
{
	(void)state;
	fill_random(big, BIG, 1);
	big[0] = 'x'; /* no signature */
	for (size_t n = 256; n <= 3000; n += 101)
		assert_int_equal(found(slice_of(big, n)), 0);
	assert_int_equal(found(slice_of(big, 255)), -1);
	fill_text(big, BIG);
	for (size_t n = 0; n <= 3000; n += 101)
		assert_int_equal(found(slice_of(big, n)), -1);
}

/* Random bytes stand there, with text before and behind them, and are found there: not before the window they begin in. */
static void assert_found_behind(size_t at, size_t random, size_t len)
{
	fill_text(big, len);
	fill_random(big + at, random, at + 1);
	int64_t where = found(slice_of(big, len));
	assert_true(where >= 0 && where > (int64_t)at - 1024 && where < (int64_t)(at + random));
}

static void test_padding(void **state)
{
	(void)state;
	for (size_t at = 0; at <= KIB(6); at += 256)
		assert_found_behind(at, KIB(2), KIB(8));
	for (size_t at = 0; at <= BIG - KIB(32); at += KIB(14))
		assert_found_behind(at, KIB(32), BIG);
	fill_text(big, BIG);
	assert_int_equal(found(slice_of(big, BIG)), -1);
}

static void test_every_cut(void **state)
{
	(void)state;
	fill_text(big, KIB(4));
	fill_random(big + 1500, KIB(2), 3);
	struct slice body = slice_of(big, KIB(4));
	for (size_t cut = 0; cut <= body.len; cut++) {
		struct inspection i;
		stub_begin(&i, &entropy_inspector);
		stub_piece(&i, slice_head(body, cut));
		stub_piece(&i, slice_from(body, cut));
		stub_end(&i);
		assert_int_equal(i.n_findings, 1);
		assert_int_equal(i.findings[0].spot.offset, KIB(2));
		stub_finish(&i);
	}
	assert_int_equal(found_in(body, 1), KIB(2));
}

static void test_expected_kinds(void **state)
{
	(void)state;
	static const struct slice starts[] = {{"\x89PNG\r\n\x1a\n", 8}, {"PK\3\4", 4},     {"\x1f\x8b\x08", 3},
					      {"PACK\0\0\0\2", 8},      {"%PDF-1.7\n", 9}, {"\1\0\0\xff\0", 5}};
	for (size_t k = 0; k < sizeof(starts) / sizeof(starts[0]); k++) {
		fill_random(big, KIB(40), k + 1);
		memcpy(big, starts[k].ptr, starts[k].len);
		assert_int_equal(found(slice_of(big, KIB(40))), -1);
	}
}

/* A multipart body with one part of text and one with these bytes. */
static size_t make_parts(const char *content, size_t n)
{
	static const char first[] = "--b0\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nvalue\r\n--b0\r\n"
				    "Content-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n";
	static const char last[] = "\r\n--b0--\r\n";
	memcpy(big, first, sizeof(first) - 1);
	memcpy(big + sizeof(first) - 1, content, n);
	memcpy(big + sizeof(first) - 1 + n, last, sizeof(last) - 1);
	return sizeof(first) + sizeof(last) - 2 + n;
}

static void test_multipart(void **state)
{
	(void)state;
	static char content[KIB(20)];
	fill_random(content, sizeof(content), 5);
	content[0] = 'x';
	assert_true(found(slice_of(big, make_parts(content, sizeof(content)))) > 64);
	assert_true(found(slice_of(big, make_parts(content, 300))) > 64);
	memcpy(content, "\x89PNG\r\n\x1a\n", 8);
	size_t n = make_parts(content, sizeof(content));
	assert_int_equal(found(slice_of(big, n)), -1);
	/* what stands behind the picture's part is judged anew, also behind an empty part */
	static const char more[] = "\r\nContent-Type: x\r\n\r\n--b0\r\n\r\n";
	memcpy(big + n - 4, more, sizeof(more) - 1); /* over "--" and the line's end */
	n += sizeof(more) - 1 - 4;
	fill_random(big + n, KIB(4), 6);
	assert_int_equal(found(slice_of(big, n + KIB(4))), (int64_t)n);
	assert_int_equal(found_in(slice_of(big, n + KIB(4)), 1), (int64_t)n);
}

/* A part head that does not end hides nothing. */
static void test_endless_part_head(void **state)
{
	(void)state;
	fill_random(big, BIG, 7);
	for (size_t k = 0; k < BIG; k++)
		if (big[k] == '\n')
			big[k] = 'n';
	memcpy(big, "--b0\r\nContent-Type: ", 20);
	assert_true(found(slice_of(big, KIB(16))) > 0);
}

/* ---- heads ---- */

static const char base64[] = "q83vEjRWeJq83vASNFZ4mkLzKpTtXwYhQbNcUdGaRfSeoi7J5V21gPMHlu0D6CO9Fr3yBkIjAtEsZxWv";
#define SENTENCE "the quick brown fox jumps over the lazy dog and runs away from all of it"

static size_t found_in_head(struct inspection *i)
{
	stub_head(i);
	size_t n = i->n_findings;
	stub_finish(i);
	return n;
}

static size_t found_in_target(const char *path, const char *query)
{
	struct inspection i;
	stub_begin(&i, &entropy_inspector);
	i.target.path = slice_str(path);
	i.target.query = slice_str(query);
	return found_in_head(&i);
}

static void test_targets(void **state)
{
	(void)state;
	char text[4096], *p = text;
	assert_int_equal(found_in_target("/v1/messages", "?a=1&b=2"), 0);
	assert_int_equal(found_in_target("/", ""), 0);
	snprintf(text, sizeof(text), "/x/%s/y", base64);
	assert_int_equal(found_in_target(text, ""), 1);
	snprintf(text, sizeof(text), "?a=1&b=%s&c=2", base64);
	assert_int_equal(found_in_target("/", text), 1);
	snprintf(text, sizeof(text), "?%s", base64);
	assert_int_equal(found_in_target("/", text), 1);
	snprintf(text, sizeof(text), "?a=%.63s", base64);
	assert_int_equal(found_in_target("/", text), 0);
	snprintf(text, sizeof(text), "?a=%s%s%s", SENTENCE SENTENCE SENTENCE, base64, SENTENCE SENTENCE SENTENCE);
	assert_int_equal(found_in_target("/", text), 1);
	assert_int_equal(found_in_target("/", "?a=" SENTENCE SENTENCE), 0);
	/* a digest in hex, and the name of a wheel */
	assert_int_equal(
		found_in_target("/d74ff0e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
				"/charset_normalizer-3.4.9-cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
				""),
		0);
	/* random bytes in percent escapes, which as they stand are no more than hex */
	char bytes[80];
	fill_random(bytes, sizeof(bytes), 9);
	p += sprintf(p, "?a=");
	for (size_t k = 0; k < sizeof(bytes); k++)
		p += sprintf(p, "%%%02X", (unsigned char)bytes[k]);
	assert_int_equal(found_in_target("/", text), 1);
	assert_int_equal(found_in_target("/", "?a=%4&b=%&c=%zz"), 0);
}

static size_t found_in_field(const char *name, const char *value)
{
	struct inspection i;
	stub_begin(&i, &entropy_inspector);
	stub_field(&i, slice_str(name), slice_str(value));
	return found_in_head(&i);
}

static void test_fields(void **state)
{
	(void)state;
	char long_value[4096] = "";
	for (int k = 0; k < 4; k++)
		strcat(long_value, base64);
	assert_int_equal(found_in_field("x-data", base64), 1);
	assert_int_equal(found_in_field("X-Data", "short"), 0);
	assert_int_equal(found_in_field("Authorization", base64), 0);
	assert_int_equal(found_in_field("COOKIE", base64), 0);
	assert_int_equal(found_in_field("x-amz-security-token", base64), 0);
	assert_int_equal(found_in_field("If-None-Match", base64), 0);
	assert_int_equal(found_in_field("If-None-Match", long_value), 1); /* too long for what it says to be */
	assert_int_equal(found_in_field("x-amzn", base64), 1);
	assert_int_equal(found_in_field("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like "
						      "Gecko) Chrome/126.0.0.0 Safari/537.36"),
			 0);
}

static void test_trailers(void **state)
{
	(void)state;
	struct inspection i;
	struct field field = {.name = SLICE("x-sum"), .value = slice_str(base64)};
	stub_begin(&i, &entropy_inspector);
	stub_body(&i, SLICE("\x89PNG\r\n\x1a\n"), 0);
	i.by->on_trailers(&i, &field, 1);
	assert_int_equal(i.n_findings, 1);
	assert_int_equal(i.findings[0].spot.place, PLACE_TRAILER);
	stub_finish(&i);
}

/* ---- policy ---- */

struct conf {
	double threshold, value_threshold;
	uint64_t value_length;
};

static size_t read_key(const char *name, const char *text, struct conf *conf)
{
	static struct policy_errors errs;
	struct node node = {.kind = NODE_TEXT, .text = slice_str(text), .key = slice_str(name), .at = {.file = "t"}};
	struct loader l = {.errs = &errs};
	errs.n = 0;
	for (size_t k = 0; k < entropy_inspector.n_keys; k++)
		if (slice_eq(entropy_inspector.keys[k].name, slice_str(name)))
			entropy_inspector.keys[k].read(&l, &node, conf);
	return errs.n;
}

static void test_keys(void **state)
{
	(void)state;
	struct conf conf;
	assert_int_equal(entropy_inspector.conf_size, sizeof(conf));
	assert_int_equal(read_key("threshold", "7.25", &conf), 0);
	assert_true(conf.threshold == 7.25);
	assert_int_equal(read_key("value_threshold", "4", &conf), 0);
	assert_true(conf.value_threshold == 4);
	assert_int_equal(read_key("value_length", "128", &conf), 0);
	assert_int_equal(conf.value_length, 128);
	static const char *const wrong[] = {"", "0", "9", "8.1", "-1", "7.", ".5", "7.12345", "x", "7.x"};
	for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++)
		assert_int_equal(read_key("threshold", wrong[k], &conf), 1);
	assert_int_equal(read_key("value_length", "63", &conf), 1);
}

/* A lower threshold finds what the default does not: base64 as a body. */
static void test_threshold(void **state)
{
	(void)state;
	struct inspection i;
	struct conf conf = {.threshold = 5.5, .value_threshold = 5, .value_length = 64};
	fill_random(big, KIB(4), 11);
	for (size_t k = 0; k < KIB(4); k++)
		big[k] = base64[(unsigned char)big[k] % 64];
	assert_int_equal(found(slice_of(big, KIB(4))), -1);
	stub_begin(&i, &entropy_inspector);
	i.conf = &conf;
	stub_body(&i, slice_of(big, KIB(4)), 100);
	assert_int_equal(i.n_findings, 1);
	stub_finish(&i);
}

static void look(const struct corpus_item *item)
{
	static const size_t sizes[] = {0, 1000, 16384};
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
		if (found_in(slice_of(item->body, item->len), sizes[k]) >= 0)
			fail_msg("%s", item->file);
}

static void test_corpus(void **state)
{
	(void)state;
	corpus_each(look);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shannon),
		cmocka_unit_test(test_small_bodies),
		cmocka_unit_test(test_padding),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_expected_kinds),
		cmocka_unit_test(test_multipart),
		cmocka_unit_test(test_endless_part_head),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_trailers),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_threshold),
		cmocka_unit_test(test_corpus),
	};
	return corpus_exit(cmocka_run_group_tests(tests, NULL, NULL));
}
