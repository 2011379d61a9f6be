/* Base64 and hex in pieces: lines with indentation, groups of any size, lists of strings, strings that a program adds up.
 * The pieces are read as one text; and where they may as well be values of their own, the first one ends before the gap,
 * so that what is at its end is found (THREATS T29). */
#include "tests/unit/views/reading.h"

/* Cuts the text into pieces of these sizes, used in turn, and puts something between every two. */
static struct bytes cut_up(struct slice text, const size_t *sizes, size_t n_sizes, const char *between)
{
	struct bytes out = {0};
	for (size_t at = 0, i = 0; at < text.len; at += sizes[i++ % n_sizes]) {
		bytes_add(&out, at > 0 ? slice_str(between) : SLICE_NONE);
		bytes_add(&out, slice_head(slice_from(text, at), sizes[i % n_sizes]));
	}
	return out;
}

static void assert_pieces_read(struct slice text, const size_t *sizes, size_t n_sizes, const char *between,
			       enum view_kind kind)
{
	struct bytes input = cut_up(text, sizes, n_sizes, between);
	assert_read_placed(bytes_slice(&input), "", "", kind);
	assert_read_placed(bytes_slice(&input), "[\"", "\"]", kind);
	bytes_free(&input);
}

/* Is there a text of that view in which the marker is followed by nothing, or by a line end? */
static bool marker_ends(enum view_kind kind)
{
	for (size_t i = 0; i < kept.n_texts; i++) {
		const struct bytes *content = &kept.texts[i]->content;
		struct slice rest = bytes_slice(content);
		if (!is_view(&kept.texts[i]->view, &kind, 1))
			continue;
		const char *found;
		while ((found = memmem(rest.ptr, rest.len, MARKER, sizeof(MARKER) - 1))) {
			rest = slice_from(rest, (size_t)(found - rest.ptr) + sizeof(MARKER) - 1);
			if (rest.len == 0 || rest.ptr[0] == '\n')
				return true;
		}
	}
	return false;
}

static void assert_marker_ends(struct slice before, struct slice encoded, struct slice after, enum view_kind kind)
{
	struct bytes input = {0};
	bytes_add(&input, before);
	bytes_add(&input, encoded);
	bytes_add(&input, after);
	for (size_t cut = 0; cut <= input.len; cut++) {
		keep_all(views, &kept, bytes_slice(&input), cut);
		if (!marker_ends(kind))
			fail_msg("cut at %zu: %.*s", cut, SLICE_FMT(bytes_slice(&input)));
	}
	bytes_free(&input);
}

/* ---- hex ---- */

static void hex_in_groups(void **state)
{
	(void)state;
	static const size_t sizes[] = {3, 4, 6, 8, 10, 16, 20, 24, 32};
	static const char *const betweens[] = {" ",         "-",       ":",    ", ",       "\n",        "\\n",
					       "\",\n  \"", "\" + \"", "', '", "\"\n\t\"", "\\\", \\\""};
	struct bytes digits = {0};
	encode(&digits, SLICE("key=" MARKER), VIEW_HEX);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (size_t b = 0; b < sizeof(betweens) / sizeof(betweens[0]); b++)
			assert_pieces_read(bytes_slice(&digits), &sizes[s], 1, betweens[b], VIEW_HEX);
	bytes_free(&digits);
}

/* Groups may be far from each other when they are long enough to be seen. */
static void hex_in_groups_far_apart(void **state)
{
	(void)state;
	static const size_t sizes[] = {24, 32};
	struct bytes digits = {0};
	encode(&digits, SLICE("key=" MARKER), VIEW_HEX);
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		assert_pieces_read(bytes_slice(&digits), &sizes[s], 1, "\",\r\n                \"", VIEW_HEX);
	bytes_free(&digits);
}

static void hex_in_groups_of_different_sizes(void **state)
{
	(void)state;
	static const size_t sizes[] = {2, 5, 4, 8, 3, 12, 2, 6};
	struct bytes digits = {0};
	encode(&digits, SLICE("key=" MARKER), VIEW_HEX);
	assert_pieces_read(bytes_slice(&digits), sizes, 8, " ", VIEW_HEX);
	assert_pieces_read(bytes_slice(&digits), sizes, 8, "\", \"", VIEW_HEX);
	bytes_free(&digits);
}

static void hex_as_uuids(void **state)
{
	(void)state;
	static const size_t uuid[] = {8, 4, 4, 4, 12};
	const struct slice secret = SLICE("SECRET-MARKER-01");
	struct bytes digits = {0};
	encode(&digits, secret, VIEW_HEX);
	struct bytes one = cut_up(bytes_slice(&digits), uuid, 5, "-");
	for (size_t place = 0; place < 70; place++) {
		struct bytes input = {0};
		bytes_fill(&input, ' ', place);
		bytes_add(&input, SLICE("{\"id\": \""));
		bytes_add(&input, bytes_slice(&one));
		bytes_add(&input, SLICE("\", \"type\": \"order\"}"));
		assert_read(bytes_slice(&input), input.len, VIEW_HEX, secret);
		assert_read(bytes_slice(&input), 0, VIEW_HEX, secret);
		bytes_free(&input);
	}
	bytes_free(&one);
	bytes_free(&digits);
}

/* One byte each: as programs list them, and as strings of a list. */
static void hex_in_lists(void **state)
{
	(void)state;
	static const struct {
		const char *format, *between;
		const char *line;
		size_t width;
	} lists[] = {
		{"0x%02x", ", ", ",\n            ", 8}, {"0x%02x", ",", ",\\n", 1},
		{"\"%02x\"", ", ", ",\n    ", 8},       {"'%02x'", " + ", " +\n  ", 6},
		{"\"0x%02x\"", ",", ",\n    ", 9},      {"\\x%02x", "", "\"\n    \"", 10},
	};
	const struct slice text = SLICE("some bytes, " MARKER ", and more");
	for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++) {
		struct bytes input = {0};
		for (size_t i = 0; i < text.len; i += lists[l].width) {
			bytes_add(&input, i > 0 ? slice_str(lists[l].line) : SLICE_NONE);
			encode_each(&input, slice_head(slice_from(text, i), lists[l].width), lists[l].format,
				    lists[l].between);
		}
		assert_read_placed(bytes_slice(&input), "", "", VIEW_HEX);
		bytes_free(&input);
	}
}

static void hex_values_end(void **state)
{
	(void)state;
	static const char *const after[] = {"", "\", \"b\": \"", "\", \"", "\",\n    \"", "' + '", "\"\n"};
	struct bytes digits = {0}, other = {0};
	encode(&digits, SLICE(MARKER), VIEW_HEX);
	encode(&other, SLICE("another value of the list"), VIEW_HEX);
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
		struct bytes rest = {0};
		bytes_add(&rest, slice_str(after[i]));
		bytes_add(&rest, i > 0 ? bytes_slice(&other) : SLICE_NONE);
		assert_marker_ends(SLICE("{\"a\": \""), bytes_slice(&digits), bytes_slice(&rest), VIEW_HEX);
		bytes_free(&rest);
	}
	bytes_free(&digits);
	bytes_free(&other);
}

/* ---- base64 ---- */

static const char *const base64_betweens[] = {
	"\n    ", "\r\n\t\t",       "\\n    ", "\" + \"", "\" +\n        \"", "\\\" + \\\"", "\"\n    \"", "\",\n  \"",
	"\", \"", "\\\",\\n  \\\"", "', '",    "' '",     "\n\n\n",           "\"+\"",
};

static void base64_in_pieces(void **state)
{
	(void)state;
	static const size_t widths[] = {20, 24, 37, 48, 76};
	struct bytes encoded = {0};
	encode_base64(&encoded, SLICE("some bytes before it, " MARKER " and many more bytes behind"), STYLE_STANDARD);
	for (size_t b = 0; b < sizeof(base64_betweens) / sizeof(base64_betweens[0]); b++)
		for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++)
			assert_pieces_read(bytes_slice(&encoded), &widths[w], 1, base64_betweens[b], VIEW_BASE64);
	bytes_free(&encoded);
}

static void base64_in_pieces_of_different_sizes(void **state)
{
	(void)state;
	static const size_t sizes[] = {23, 16, 31, 17, 40};
	struct bytes encoded = {0};
	encode_base64(&encoded, SLICE("some bytes before it, " MARKER " and many more bytes behind"), STYLE_STANDARD);
	for (size_t b = 0; b < sizeof(base64_betweens) / sizeof(base64_betweens[0]); b++)
		assert_pieces_read(bytes_slice(&encoded), sizes, 5, base64_betweens[b], VIEW_BASE64);
	bytes_free(&encoded);
}

/* A long text in pieces of one length is one text, as long as it is. */
static void base64_in_many_pieces(void **state)
{
	(void)state;
	static const size_t width = 64;
	struct bytes text = {0}, encoded = {0};
	for (unsigned i = 0; i < 100; i++)
		bytes_add(&text, SLICE("many lines of it, "));
	encode_base64(&encoded, bytes_slice(&text), STYLE_STANDARD);
	struct bytes input = cut_up(bytes_slice(&encoded), &width, 1, "\" +\n    \"");
	assert_read(bytes_slice(&input), input.len, VIEW_BASE64, bytes_slice(&text));
	assert_read(bytes_slice(&input), 0, VIEW_BASE64, bytes_slice(&text));
	bytes_free(&input);
	bytes_free(&encoded);
	bytes_free(&text);
}

static void base64_values_end(void **state)
{
	(void)state;
	static const char *const after[] = {
		"",
		"\n  NEXT_VALUE: other",
		"\nNEXT_VALUE_OF_THE_LIST=1",
		"\", \"content_type_of_it\": \"x\"",
		"\", \"b\": \"x\"",
		"\",\n    \"YW5vdGhlciB2YWx1ZSBvZiB0aGUgbGlzdA\"",
		"\\nYW5vdGhlciB2YWx1ZSBvZiB0aGUgbGlzdA",
		"\" and words behind it",
	};
	struct bytes encoded = {0};
	encode_base64(&encoded, SLICE(MARKER), STYLE_STANDARD);
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++)
		assert_marker_ends(SLICE("a: \""), bytes_slice(&encoded), slice_str(after[i]), VIEW_BASE64);
	bytes_free(&encoded);
}

/* ---- what is reported ---- */

static void add_id(struct bytes *out, uint64_t *x, const size_t *sizes, size_t n_sizes, const char *between)
{
	struct bytes bytes = {0}, digits = {0};
	for (unsigned i = 0; i < 16; i++) {
		*x = *x * 6364136223846793005u + 1442695040888963407u;
		bytes_add_char(&bytes, (char)(*x >> 56));
	}
	encode(&digits, bytes_slice(&bytes), VIEW_HEX);
	struct bytes id = cut_up(bytes_slice(&digits), sizes, n_sizes, between);
	bytes_add(out, bytes_slice(&id));
	bytes_free(&id);
	bytes_free(&digits);
	bytes_free(&bytes);
}

/* A list of ids is no blob: no run of hex is longer than one of them. */
static void lists_are_no_long_runs(void **state)
{
	(void)state;
	static const size_t uuid[] = {8, 4, 4, 4, 12}, digest[] = {32};
	static const char *const betweens[] = {"\n", "\", \"", ", ", "\",\n    \""};
	for (unsigned i = 0; i < 4; i++) {
		struct bytes input = {0};
		uint64_t x = i;
		for (unsigned n = 0; n < 500; n++) {
			bytes_add(&input, n > 0 ? slice_str(betweens[i]) : SLICE_NONE);
			if (i % 2)
				add_id(&input, &x, digest, 1, "");
			else
				add_id(&input, &x, uuid, 5, "-");
		}
		keep_all(views, &kept, bytes_slice(&input), input.len);
		for (size_t r = 0; r < kept.n_runs; r++)
			assert_true(kept.runs[r].kind != VIEW_HEX || kept.runs[r].length <= 32);
		bytes_free(&input);
	}
}

/* Ids with some text in them, though not enough: each is taken up and dropped again, wherever in a block the next one
 * begins, and a secret that is the next one is read from its first byte on. */
static void hex_behind_what_was_dropped(void **state)
{
	(void)state;
	static const size_t uuid[] = {8, 4, 4, 4, 12};
	const struct slice secret = SLICE("SECRET-MARKER-01");
	struct bytes digits = {0}, secret_digits = {0};
	encode(&digits, SLICE("\x01\x02mnopqjklm\x03\x04\x05\x06\x07"), VIEW_HEX);
	encode(&secret_digits, secret, VIEW_HEX);
	struct bytes id = cut_up(bytes_slice(&digits), uuid, 5, "-");
	struct bytes last = cut_up(bytes_slice(&secret_digits), uuid, 5, "-");
	for (size_t place = 0; place < 66; place++) {
		struct bytes input = {0};
		bytes_fill(&input, '.', place);
		for (unsigned i = 0; i < 5; i++) {
			bytes_add(&input, bytes_slice(&id));
			bytes_add(&input, SLICE("\", \""));
		}
		bytes_add(&input, bytes_slice(&last));
		assert_read(bytes_slice(&input), input.len, VIEW_HEX, secret);
		assert_read(bytes_slice(&input), 0, VIEW_HEX, secret);
		bytes_free(&input);
	}
	bytes_free(&id);
	bytes_free(&last);
	bytes_free(&digits);
	bytes_free(&secret_digits);
}

/* A run with gaps is reported as long as it is, wherever in a block it begins. */
static void long_runs_are_reported(void **state)
{
	(void)state;
	for (size_t place = 0; place < 66; place++) {
		struct bytes input = {0};
		bytes_fill(&input, '.', place);
		for (unsigned i = 0; i < 60; i++)
			bytes_add(&input, SLICE("0x53, 0x4b, 0x1d, 0x80, "));
		keep_all(views, &kept, bytes_slice(&input), input.len);
		assert_int_equal(kept.n_runs, 1);
		assert_int_equal(kept.runs[0].kind, VIEW_HEX);
		assert_true(kept.runs[0].length > 440);
		bytes_free(&input);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hex_in_groups),
		cmocka_unit_test(hex_in_groups_far_apart),
		cmocka_unit_test(hex_in_groups_of_different_sizes),
		cmocka_unit_test(hex_as_uuids),
		cmocka_unit_test(hex_in_lists),
		cmocka_unit_test(hex_values_end),
		cmocka_unit_test(hex_behind_what_was_dropped),
		cmocka_unit_test(base64_in_pieces),
		cmocka_unit_test(base64_in_pieces_of_different_sizes),
		cmocka_unit_test(base64_in_many_pieces),
		cmocka_unit_test(base64_values_end),
		cmocka_unit_test(lists_are_no_long_runs),
		cmocka_unit_test(long_runs_are_reported),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
