/* Each encoding by itself: a marker is read whole, whatever stands around it, wherever it stands and however the text is
 * cut (THREATS T29). */
#include "tests/unit/views/reading.h"

/* ---- base64 ---- */

static const char *const neighbours[][2] = {
	{"", ""},           {"{\"data\":\"", "\"}"},
	{"data/", "/more"}, {"a", "b"},
	{"ab+", "="},       {"abc", "-"},
	{"token=", "&x"},   {"Basic ", "\r\nHost: x"},
	{"x==", "==x"},     {"\\n", ","},
	{"\xff", "\0"},     {"=", "="},
	{"=====", "====="}, {"0123456789012345/", "zzzzz"},
};

static void base64_at_each_alignment(void **state)
{
	(void)state;
	static const char *const texts[] = {MARKER, "x" MARKER, "xy" MARKER "z"};
	for (size_t n = 0; n < sizeof(neighbours) / sizeof(neighbours[0]); n++)
		for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
			for (unsigned style = 0; style < STYLES; style++) {
				struct bytes encoded = {0};
				encode_base64(&encoded, slice_str(texts[t]), style);
				assert_read_placed(bytes_slice(&encoded), neighbours[n][0], neighbours[n][1],
						   VIEW_BASE64);
				bytes_free(&encoded);
			}
}

static void base64_over_lines(void **state)
{
	(void)state;
	static const char *const ends[] = {"\n", "\r", "\r\n", "\\n", "\\r\\n", "\\\\n", "\\\\r\\\\n"};
	struct bytes encoded = {0};
	encode_base64(&encoded, SLICE("some bytes before it, " MARKER " and many more bytes behind"), STYLE_STANDARD);
	for (size_t e = 0; e < sizeof(ends) / sizeof(ends[0]); e++)
		for (size_t width = 20; width < 70; width += 7) {
			struct bytes input = {0};
			for (size_t i = 0; i < encoded.len; i += width) {
				bytes_add(&input, slice_head(slice_from(bytes_slice(&encoded), i), width));
				bytes_add(&input, slice_str(ends[e]));
			}
			assert_read_placed(bytes_slice(&input), "-----\n", "-----", VIEW_BASE64);
			bytes_free(&input);
		}
	bytes_free(&encoded);
}

/* Base64 behind base64 is one text, with each number of '=' and behind something else. */
static void base64_put_together(void **state)
{
	(void)state;
	for (size_t cut = 1; cut < sizeof(MARKER) - 1; cut++) {
		struct bytes encoded = {0};
		encode_base64(&encoded, slice_head(SLICE(MARKER), cut), STYLE_STANDARD);
		encode_base64(&encoded, slice_from(SLICE(MARKER), cut), STYLE_STANDARD);
		assert_read_placed(bytes_slice(&encoded), "", "", VIEW_BASE64);
		assert_read_placed(bytes_slice(&encoded), "xyz", "\"", VIEW_BASE64);
		bytes_free(&encoded);
	}
}

/* Far behind the start of a long run, and in a run without any text around it. */
static void base64_in_long_runs(void **state)
{
	(void)state;
	for (size_t before = 0; before < 6000; before += 997) {
		struct bytes text = {0}, encoded = {0};
		for (size_t i = 0; i < before; i++)
			bytes_add_char(&text, (char)(i * i));
		bytes_add(&text, SLICE(MARKER));
		encode_base64(&encoded, bytes_slice(&text), STYLE_STANDARD);
		assert_read(bytes_slice(&encoded), encoded.len, VIEW_BASE64, bytes_slice(&text));
		assert_read(bytes_slice(&encoded), 0, VIEW_BASE64, bytes_slice(&text));
		bytes_free(&encoded);
		bytes_free(&text);
	}
}

static void base64_beyond_ascii(void **state)
{
	(void)state;
	static const struct slice secrets[] = {
		SLICE("\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb\xd1\x8c-7\xd0\xb4\xd0\xb0\xd1\x80"),
		SLICE("user:p\xc3\xa4ssw\xc3\xb6rt-\xe2\x82\xac"
		      "99"),
	};
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		struct bytes encoded = {0};
		encode_base64(&encoded, secrets[i], STYLE_STANDARD);
		assert_read_cut(bytes_slice(&encoded), VIEW_BASE64, secrets[i]);
		bytes_free(&encoded);
	}
}

/* ---- hex ---- */

static void hex_with_separators(void **state)
{
	(void)state;
	static const struct {
		const char *format, *between;
	} forms[] = {
		{"%02x", ""},      {"%02X", ""},   {"%02x", ":"},    {"%02X", " "},   {"%02x", "-"},
		{"%02x", "_"},     {"%02x", "."},  {"%02x", ","},    {"%02x", ", "},  {"\\x%02x", ""},
		{"\\\\x%02x", ""}, {"0x%02x", ""}, {"0x%02X", ","},  {"0x%02x", " "}, {"0x%02x", ", "},
		{"0X%02x", ", "},  {"%02x", "\n"}, {"%02x", "\r\n"}, {"%02x", "\\n"}, {"%02x", "    "},
	};
	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		struct bytes encoded = {0};
		encode_each(&encoded, SLICE(MARKER), forms[f].format, forms[f].between);
		assert_read_placed(bytes_slice(&encoded), "", "", VIEW_HEX);
		assert_read_placed(bytes_slice(&encoded), "{\"key\": \"", "\"}", VIEW_HEX);
		assert_read_placed(bytes_slice(&encoded), "x", "z", VIEW_HEX);
		bytes_free(&encoded);
	}
}

static void hex_behind_a_digit(void **state)
{
	(void)state;
	struct bytes encoded = {0};
	encode_each(&encoded, SLICE(MARKER), "%02x", "");
	assert_read_placed(bytes_slice(&encoded), "a", "b", VIEW_HEX);
	assert_read_placed(bytes_slice(&encoded), "00", "0", VIEW_HEX);
	assert_read_placed(bytes_slice(&encoded), "0", "0x", VIEW_HEX);
	bytes_free(&encoded);
}

/* Lines of a dump: as od, xxd -p and xxd -i write them. */
static void hex_over_lines(void **state)
{
	(void)state;
	static const struct {
		const char *format, *between, *line;
		size_t width;
	} dumps[] = {{"%02x", " ", "\n ", 16}, {"%02x", "", "\n", 30}, {"0x%02x", ", ", ",\n  ", 12}};
	const struct slice text = SLICE("bytes that stand before " MARKER " and bytes that stand behind");
	for (size_t d = 0; d < sizeof(dumps) / sizeof(dumps[0]); d++) {
		struct bytes input = {0};
		for (size_t i = 0; i < text.len; i += dumps[d].width) {
			encode_each(&input, slice_head(slice_from(text, i), dumps[d].width), dumps[d].format,
				    dumps[d].between);
			bytes_add(&input, slice_str(dumps[d].line));
		}
		assert_read_placed(bytes_slice(&input), "", "", VIEW_HEX);
		bytes_free(&input);
	}
}

/* ---- escapes ---- */

/* All of it escaped, and any one byte of it. */
static void escapes(const char *format, enum view_kind kind)
{
	struct bytes all = {0};
	encode_each(&all, SLICE(MARKER), format, "");
	assert_read_placed(bytes_slice(&all), "", "", kind);
	assert_read_placed(bytes_slice(&all), "%\\ ", "%\\", kind);
	assert_read_placed(bytes_slice(&all), "%4\\u00\\x ", "%4\\u00\\x", kind);
	bytes_free(&all);
	for (size_t i = 0; i < sizeof(MARKER) - 1; i++) {
		struct bytes one = {0};
		bytes_add(&one, slice_head(SLICE(MARKER), i));
		encode_each(&one, slice_head(slice_from(SLICE(MARKER), i), 1), format, "");
		bytes_add(&one, slice_from(SLICE(MARKER), i + 1));
		assert_read_placed(bytes_slice(&one), "\"", "\"", kind);
		bytes_free(&one);
	}
}

static void percent(void **state)
{
	(void)state;
	escapes("%%%02x", VIEW_PERCENT);
	escapes("%%%02X", VIEW_PERCENT);
}

static void json(void **state)
{
	(void)state;
	escapes("\\u%04x", VIEW_JSON);
	escapes("\\u%04X", VIEW_JSON);
	escapes("\\x%02x", VIEW_JSON);
	assert_read_cut(SLICE("a\\/b\\n\\\"c\\\\ \\t\\q"), VIEW_JSON, SLICE("a/b\n\"c\\ \t\\q"));
	assert_read_cut(SLICE("\\u00e9 \\u20ac \\ud83d\\ude00."), VIEW_JSON,
			SLICE("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80."));
	assert_read_cut(SLICE("\\ud83d!\\ude00\\u12"), VIEW_JSON, SLICE("\xed\xa0\xbd!\xed\xb8\x80\\u12"));
}

/* Every second backslash of a row is an escape itself, however many there are. */
static void json_behind_backslashes(void **state)
{
	(void)state;
	static const size_t counts[] = {1,   2,    63,   64,   255,  256,  257,  258, 320,
					321, 1023, 1024, 2047, 2048, 2049, 4500, 4501};
	const enum view_kind kind = VIEW_JSON;
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
		for (size_t place = 0; place < 66; place += 5) {
			struct bytes input = {0};
			bytes_fill(&input, '.', place);
			bytes_fill(&input, '\\', counts[c]);
			bytes_add(&input, SLICE("u0053ECRET-MARKER-0123456789"));
			for (size_t cut = 0; cut <= input.len; cut += 1 + input.len / 5) {
				keep_all(views, &kept, bytes_slice(&input), cut);
				if (kept_has(&kept, &kind, 1, SLICE(MARKER)) != (counts[c] % 2 == 1))
					fail_msg("%zu backslashes at %zu, cut at %zu", counts[c], place, cut);
			}
			bytes_free(&input);
		}
}

/* An escape reads as many plain bytes with it as were promised, before it and behind it. */
static void plain_bytes_around_escapes(void **state)
{
	(void)state;
	for (size_t distance = 0; distance <= 256 - sizeof(MARKER); distance += 29) {
		struct bytes before = {0}, behind = {0};
		bytes_add(&before, SLICE(MARKER));
		bytes_fill(&before, '.', distance);
		bytes_add(&before, SLICE("%41"));
		bytes_add(&behind, SLICE("\\u0041"));
		bytes_fill(&behind, '.', distance);
		bytes_add(&behind, SLICE(MARKER));
		assert_read_placed(bytes_slice(&before), "", "", VIEW_PERCENT);
		assert_read_placed(bytes_slice(&behind), "", "", VIEW_JSON);
		bytes_free(&before);
		bytes_free(&behind);
	}
}

/* What all JSON has in it opens no text. */
static void plain_json_is_left_alone(void **state)
{
	(void)state;
	keep_all(views, &kept, SLICE("{\"a\": \"one\\ntwo \\\"three\\\" 100% \\\\ four\\t%zz\"}"), 0);
	assert_int_equal(kept.n_texts, 1);
	assert_int_equal(kept.texts[0]->view.depth, 0);
}

/* ---- UTF-16 ---- */

static void utf16(void **state)
{
	(void)state;
	for (unsigned is_big = 0; is_big < 2; is_big++) {
		struct bytes encoded = {0};
		encode_utf16(&encoded, SLICE(MARKER), is_big);
		assert_read_placed(bytes_slice(&encoded), "", "", VIEW_UTF16);
		assert_read_placed(bytes_slice(&encoded), "\xff\xfe", "\xd8", VIEW_UTF16);
		assert_read_placed(bytes_slice(&encoded), "x", "y", VIEW_UTF16);
		bytes_free(&encoded);
	}
}

static void utf16_behind_nul(void **state)
{
	(void)state;
	for (unsigned is_big = 0; is_big < 2; is_big++)
		for (size_t n = 1; n < 70; n++) {
			struct bytes input = {0};
			bytes_fill(&input, 0, n);
			encode_utf16(&input, SLICE(MARKER), is_big);
			bytes_fill(&input, 0, n);
			assert_read(bytes_slice(&input), 0, VIEW_UTF16, SLICE(MARKER));
			assert_read(bytes_slice(&input), input.len, VIEW_UTF16, SLICE(MARKER));
			bytes_free(&input);
		}
}

/* ---- the text itself, and what is said about runs ---- */

static void the_text_itself(void **state)
{
	(void)state;
	keep_all(views, &kept, SLICE("plain " MARKER), 3);
	assert_int_equal(kept.n_texts, 1);
	assert_int_equal(kept.texts[0]->view.depth, 0);
	assert_int_equal(kept.texts[0]->offset, 0);
	assert_true(kept_has(&kept, NULL, 0, SLICE("plain " MARKER)));
	keep_all(views, &kept, SLICE(""), 0);
	assert_int_equal(kept.n_texts, 0);
}

static void words_are_left_alone(void **state)
{
	(void)state;
	static const char *const words[] = {
		"see /usr/lib/python3/dist-packages/setuptools for some_rather_long_identifier_name_of_ours",
		"id 550e8400-e29b-41d4-a716-446655440000 sha da39a3ee5e6b4b0d3255bfef95601890afd80709",
		"# ---------------------------------------------------------------------------------",
		"AnIdentifierWithCapitalsAsInJava2AnIdentifierWithCapitalsAsInJava3",
	};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		keep_all(views, &kept, slice_str(words[i]), 0);
		assert_int_equal(kept.n_texts, 1);
	}
}

static void runs_are_reported(void **state)
{
	(void)state;
	struct bytes input = {0};
	bytes_add(&input, SLICE("{\"a\": \""));
	encode_base64(&input, SLICE("something to encode, " MARKER), STYLE_STANDARD);
	bytes_add(&input, SLICE("\", \"b\": \""));
	size_t second = input.len;
	encode_each(&input, SLICE(MARKER), "%02x", ":");
	bytes_add(&input, SLICE("\"}"));
	for (size_t cut = 0; cut < input.len; cut++) {
		keep_all(views, &kept, bytes_slice(&input), cut);
		assert_int_equal(kept.n_runs, 2);
		assert_int_equal(kept.runs[0].kind, VIEW_BASE64);
		assert_int_equal(kept.runs[0].offset, 7);
		assert_int_equal(kept.runs[0].length, 60);
		assert_int_equal(kept.runs[1].kind, VIEW_HEX);
		assert_int_equal(kept.runs[1].offset, second);
		assert_int_equal(kept.runs[1].length, 48);
	}
	bytes_free(&input);
}

static void offsets_are_of_the_outermost_text(void **state)
{
	(void)state;
	struct bytes input = {0};
	bytes_fill(&input, ' ', 100);
	encode_base64(&input, SLICE("{\"x\": \"%41%42%43\", \"y\": \"" MARKER "\"}"), STYLE_STANDARD);
	keep_all(views, &kept, bytes_slice(&input), 50);
	for (size_t i = 0; i < kept.n_texts; i++) {
		uint64_t offset = kept.texts[i]->offset;
		assert_true(kept.texts[i]->view.depth == 0 ? offset == 0 : offset >= 100 && offset < 104);
	}
	bytes_free(&input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base64_at_each_alignment),
		cmocka_unit_test(base64_over_lines),
		cmocka_unit_test(base64_put_together),
		cmocka_unit_test(base64_in_long_runs),
		cmocka_unit_test(base64_beyond_ascii),
		cmocka_unit_test(hex_with_separators),
		cmocka_unit_test(hex_behind_a_digit),
		cmocka_unit_test(hex_over_lines),
		cmocka_unit_test(percent),
		cmocka_unit_test(json),
		cmocka_unit_test(json_behind_backslashes),
		cmocka_unit_test(plain_bytes_around_escapes),
		cmocka_unit_test(plain_json_is_left_alone),
		cmocka_unit_test(utf16),
		cmocka_unit_test(utf16_behind_nul),
		cmocka_unit_test(the_text_itself),
		cmocka_unit_test(words_are_left_alone),
		cmocka_unit_test(runs_are_reported),
		cmocka_unit_test(offsets_are_of_the_outermost_text),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
