/* The forms in which a value is found, and what is close to one and is not. */
#include "tests/unit/known/fixture.h"

#define VALUE "sk-A9 x/\"%\\7zQ" /* 14 bytes that every form has something to say about */

static struct known_set *set_of(struct slice value, enum known_kind kind, unsigned forms)
{
	struct known_item item = {kind, 3, value};
	struct known_set *set = known_set_new(&item, 1, forms);
	assert_non_null(set);
	return set;
}

/* In the middle of other text, and cut at every byte: partial as long as it is not all there, found when it is. */
static void must_be_found(const struct known_set *set, struct slice written, enum known_form form)
{
	struct bytes text = {0};
	struct known_match m;
	bytes_add(&text, SLICE("~. "));
	bytes_add(&text, written);
	bytes_add(&text, SLICE(" .~"));
	assert_int_equal(known_find(set, bytes_slice(&text), 0, true, &m), KNOWN_FOUND);
	assert_int_equal(m.form, form);
	assert_int_equal(m.item->secret, 3);
	assert_int_equal(m.start, 3);
	assert_int_equal(m.end, 3 + written.len);
	assert_int_equal(known_find(set, bytes_slice(&text), 4, true, &m), KNOWN_NONE);
	for (size_t n = 1; n < written.len; n++) {
		struct slice start = slice_head(bytes_slice(&text), 3 + n);
		assert_int_equal(known_find(set, start, 0, false, &m), KNOWN_PARTIAL);
		assert_int_equal(m.start, 3);
		assert_int_equal(known_find(set, start, 0, true, &m), KNOWN_NONE);
	}
	assert_true(written.len <= known_set_reach(set));
	bytes_free(&text);
}

static void must_be_in(struct slice value, const char *written, enum known_form form, unsigned forms)
{
	struct known_set *set = set_of(value, KNOWN_VALUE, forms);
	must_be_found(set, slice_str(written), form);
	known_set_unref(&set);
}

static void must_not_be_in(struct slice value, const char *written, unsigned forms)
{
	struct known_set *set = set_of(value, KNOWN_VALUE, forms);
	struct known_match m;
	enum known_answer answer = known_find(set, slice_str(written), 0, true, &m);
	if (answer != KNOWN_NONE)
		fail_msg("found in %s", written);
	known_set_unref(&set);
}

static void finds_it_as_it_is(void **state)
{
	(void)state;
	must_be_in(SLICE(VALUE), VALUE, KNOWN_RAW, KNOWN_REDACTED);
	must_not_be_in(SLICE(VALUE), "sk-A9 x/\"%\\7zq", KNOWN_REDACTED);
	must_not_be_in(SLICE(VALUE), "sk-A9 x/\"%\\7z", KNOWN_REDACTED);
}

static void finds_percent(void **state)
{
	(void)state;
	must_be_in(SLICE(VALUE), "sk-A9%20x%2F%22%25%5C7zQ", KNOWN_PERCENT, KNOWN_REDACTED);
	must_be_in(SLICE(VALUE), "sk-A9+x%2f%22%25%5c7zQ", KNOWN_PERCENT, KNOWN_REDACTED);
	must_be_in(SLICE(VALUE), "%73%6B%2d%41%39%20%78%2f%22%25%5c%37%7a%51", KNOWN_PERCENT, KNOWN_REDACTED);
	must_be_in(SLICE(VALUE), "sk-A9 x/\"%25\\7zQ", KNOWN_PERCENT, KNOWN_REDACTED);
	must_be_in(SLICE("a+b c+d e"), "a+b+c%2Bd+e", KNOWN_PERCENT, KNOWN_REDACTED);
	must_not_be_in(SLICE("a+b c+d e"), "a%20b+c%2Bd+e", KNOWN_REDACTED);
	must_not_be_in(SLICE(VALUE), "sk-A9%20x%2G%22%25%5C7zQ", KNOWN_REDACTED);
}

static void finds_json(void **state)
{
	(void)state;
	must_be_in(SLICE(VALUE), "sk-A9 x\\/\\\"%\\\\7zQ", KNOWN_JSON, KNOWN_REDACTED);
	must_be_in(SLICE(VALUE), "\\u0073k-A9\\u0020x/\\u0022%\\u005C7z\\u0051", KNOWN_JSON, KNOWN_REDACTED);
	must_be_in(SLICE("tab\there\band\f."), "tab\\there\\band\\f.", KNOWN_JSON, KNOWN_REDACTED);
	must_be_in(SLICE("p\xc3\xa4ss\xe2\x82\xacword"), "p\\u00e4ss\\u20ACword", KNOWN_JSON, KNOWN_REDACTED);
	must_be_in(SLICE("p\xc3\xa4ss\xe2\x82\xacword"), "p\\u00c3\\u00A4ss\xe2\x82\xacword", KNOWN_JSON,
		   KNOWN_REDACTED);
	must_be_in(SLICE("\xe4ss\xffword"), "\\u00e4ss\xffword", KNOWN_JSON, KNOWN_REDACTED);
	must_not_be_in(SLICE("p\xc3\xa4ssword"), "p\\u00e5ssword", KNOWN_REDACTED);
	must_not_be_in(SLICE("password"), "p\\u1061ssword", KNOWN_REDACTED);
	must_not_be_in(SLICE("password"), "p\\u006ssword", KNOWN_REDACTED);
}

static void finds_hex(void **state)
{
	(void)state;
	must_be_in(SLICE("JKLMNOjklmno"), "4a4b4c4d4e4f6a6b6c6d6e6f", KNOWN_HEX, KNOWN_REDACTED);
	must_be_in(SLICE("JKLMNOjklmno"), "4A4B4C4D4E4F6A6b6C6d6E6f", KNOWN_HEX, KNOWN_REDACTED);
	must_not_be_in(SLICE("JKLMNOjklmno"), "4a4b4c4d4e 4f6a6b6c6d6e6f", KNOWN_REDACTED);
}

/* At each alignment, with any bits around it, in either alphabet. */
static void finds_base64(void **state)
{
	(void)state;
	static const char value[] = "\xfb\xff?>~k\x01\xfe\xbf";
	for (size_t len = 8; len <= 9; len++) {
		struct known_set *set = set_of(slice_of(value, len), KNOWN_VALUE, KNOWN_REDACTED);
		for (unsigned k = 0; k < 3 * 2 * 256; k++) {
			struct bytes plain = {0}, text = {0};
			struct known_match m;
			unsigned align = k % 3;
			for (unsigned i = 0; i < 3 + align; i++)
				bytes_add_char(&plain, (char)(k / 6));
			bytes_add(&plain, slice_of(value, len));
			bytes_add_char(&plain, (char)~(k / 6));
			add_base64(&text, bytes_slice(&plain), k / 3 % 2 ? ALPHABET_URL : ALPHABET_STD, true);
			assert_int_equal(known_find(set, bytes_slice(&text), 0, false, &m), KNOWN_FOUND);
			assert_int_equal(m.form, KNOWN_BASE64);
			assert_int_equal(m.align, align);
			assert_int_equal(m.start, 4 + align);
			assert_int_equal(m.end, 4 + (8 * (align + len) + 5) / 6);
			bytes_free(&plain);
			bytes_free(&text);
		}
		known_set_unref(&set);
	}
	must_be_in(SLICE("password"), "cGFzc3dvcmQ", KNOWN_BASE64, KNOWN_REDACTED);
	must_be_in(SLICE("password"), "cGFzc3dvcmT", KNOWN_BASE64, KNOWN_REDACTED); /* other bits behind it */
	must_be_in(SLICE("password"), "NwYXNzd29yZP", KNOWN_BASE64, KNOWN_REDACTED);
	must_be_in(SLICE("password"), "HBhc3N3b3Jk", KNOWN_BASE64, KNOWN_REDACTED);
	must_not_be_in(SLICE("password"), "cGFzc3dvcmU", KNOWN_REDACTED);
	must_not_be_in(SLICE("password"), "cGFzc3dv\ncmQ", KNOWN_REDACTED);
}

static void finds_loose_and_reversed(void **state)
{
	(void)state;
	must_be_in(SLICE("Pass-Word_1"), "pASS-wORD_1", KNOWN_LOOSE, KNOWN_IN_VIEWS);
	must_be_in(SLICE("Pass-Word_1"),
		   "p\xe2\x80\x8b\xe2\x80\x8f"
		   "ass\xe2\x81\xa0-wo\xef\xbb\xbfrd_\xc2\xad"
		   "1",
		   KNOWN_LOOSE, KNOWN_IN_VIEWS);
	must_be_in(SLICE("Pass-Word_1"),
		   "1_DROW\xe2\x80\x8c-ssa\xc2\xad"
		   "P",
		   KNOWN_REVERSED, KNOWN_IN_VIEWS);
	must_not_be_in(SLICE("Pass-Word_1"),
		       "p\xe2\x80\x8a"
		       "ass-word_1",
		       KNOWN_IN_VIEWS);
	must_not_be_in(SLICE("Pass-Word_1"), "pass_word_1", KNOWN_IN_VIEWS);
}

/* What can be skipped is bounded, and so is what has to be kept. */
static void zero_width_is_bounded(void **state)
{
	(void)state;
	struct known_set *set = set_of(SLICE("password"), KNOWN_VALUE, KNOWN_IN_VIEWS);
	for (size_t skips = 60; skips < 70; skips++) {
		struct bytes text = {0};
		struct known_match m;
		bytes_add(&text, SLICE("p"));
		for (size_t i = 0; i < skips; i++)
			bytes_add(&text, SLICE("\xe2\x80\x8b"));
		bytes_add(&text, SLICE("assword"));
		bool is_found = known_find(set, bytes_slice(&text), 0, true, &m) == KNOWN_FOUND;
		assert_int_equal(is_found, skips <= 64);
		assert_true(!is_found || m.end - m.start <= known_set_reach(set));
		bytes_free(&text);
	}
	known_set_unref(&set);
}

static void finds_random_placeholders(void **state)
{
	(void)state;
	struct known_set *set = set_of(SLICE("cage-ph-"), KNOWN_RANDOM_PLACEHOLDER, KNOWN_REDACTED | KNOWN_IN_VIEWS);
	struct known_match m;
	must_be_found(set, SLICE("cage-ph-0123456789abcdef0123456789abcdef"), KNOWN_RAW);
	must_be_found(set, SLICE("cage-ph-0123456789abcdef%30123456789abcdef"), KNOWN_PERCENT);
	must_be_found(set, SLICE("cage-ph-0123456789abcdef\\u0030123456789abcdef"), KNOWN_JSON);
	must_be_found(set, SLICE("CAGE-ph-0123456789abcdef0123456789abcdef"), KNOWN_LOOSE);
	must_be_found(set, SLICE("Y2FnZS1waC0wMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg"), KNOWN_BASE64);
	assert_int_equal(known_find(set, SLICE("cage-ph-0123456789abcdef0123456789abcdeg"), 0, true, &m), KNOWN_NONE);
	known_set_unref(&set);
}

/* ---- which of several ---- */

static void the_first_and_longest_is_found(void **state)
{
	(void)state;
	const struct known_item items[] = {{KNOWN_VALUE, 0, SLICE("abcdefgh")},
					   {KNOWN_VALUE, 1, SLICE("abcdefghij")},
					   {KNOWN_VALUE, 2, SLICE("zabcdefg")}};
	struct known_set *set = known_set_new(items, 3, KNOWN_REDACTED);
	struct known_match m;
	assert_non_null(set);
	assert_int_equal(known_find(set, SLICE("..abcdefghij"), 0, false, &m), KNOWN_FOUND);
	assert_int_equal(m.item->secret, 1);
	assert_int_equal(known_find(set, SLICE("..abcdefghi"), 0, false, &m), KNOWN_PARTIAL);
	assert_int_equal(m.start, 2);
	assert_int_equal(known_find(set, SLICE("..abcdefghi"), 0, true, &m), KNOWN_FOUND);
	assert_int_equal(m.item->secret, 0);
	assert_int_equal(known_find(set, SLICE(".zabcdefghij"), 0, false, &m), KNOWN_FOUND);
	assert_int_equal(m.item->secret, 2);
	assert_int_equal(known_find(set, SLICE(".zabcdefghij"), 2, false, &m), KNOWN_FOUND);
	assert_int_equal(m.item->secret, 1);
	/* Nothing before what is partial is a beginning: a false start is given up. */
	assert_int_equal(known_find(set, SLICE("..abcdef.abc"), 0, false, &m), KNOWN_PARTIAL);
	assert_int_equal(m.start, 9);
	known_set_unref(&set);
}

static void an_empty_set_finds_nothing(void **state)
{
	(void)state;
	struct known_set *set = known_set_new(NULL, 0, KNOWN_REDACTED);
	struct known_match m;
	assert_non_null(set);
	assert_true(known_set_is_empty(set));
	assert_int_equal(known_set_reach(set), 0);
	assert_int_equal(known_find(set, SLICE("anything at all"), 0, false, &m), KNOWN_NONE);
	assert_int_equal(known_find(set, SLICE_NONE, 0, false, &m), KNOWN_NONE);
	struct known_set *again = known_set_ref(set);
	known_set_unref(&set);
	assert_null(set);
	assert_true(known_set_is_empty(again));
	known_set_unref(&again);
	known_set_unref(&again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_it_as_it_is),
		cmocka_unit_test(finds_percent),
		cmocka_unit_test(finds_json),
		cmocka_unit_test(finds_hex),
		cmocka_unit_test(finds_base64),
		cmocka_unit_test(finds_loose_and_reversed),
		cmocka_unit_test(zero_width_is_bounded),
		cmocka_unit_test(finds_random_placeholders),
		cmocka_unit_test(the_first_and_longest_is_found),
		cmocka_unit_test(an_empty_set_finds_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
