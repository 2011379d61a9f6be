/* The fast pass: both ways of classifying must give what the header says, for every byte at every place. */
#include "tests/unit/views/fixture.h"

#include "inspectors/views/classify.h"

#define BASE64_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="

static bool is_one_of(unsigned char c, const char *list)
{
	return c != 0 && strchr(list, c);
}

static bool is_kind(unsigned char c, enum byte_kind kind)
{
	switch (kind) {
	case KIND_BASE64:
		return is_one_of(c, BASE64_CHARS);
	case KIND_HEX:
		return ascii_hex(c) >= 0;
	case KIND_PERCENT:
		return c == '%';
	case KIND_BACKSLASH:
		return c == '\\';
	case KIND_ESCAPE:
		return is_one_of(c, "ux/");
	case KIND_ZERO:
		return c == 0;
	case KINDS:
		break;
	}
	return false;
}

/* Six bits of a character that is not '='. */
static unsigned six_bits(unsigned char c)
{
	static const char standard[] = BASE64_CHARS;
	unsigned v = (unsigned)(strchr(standard, c) - standard);
	return v >= 64 ? v - 2 : v;
}

static bool is_text(unsigned byte)
{
	return byte < 0x10 || (byte >= 0x20 && byte < 0x80);
}

/* Can a letter or digit be at that place of four characters that decode to text? It can if some others beside it do. */
static bool can_be_text(unsigned char c, unsigned place)
{
	unsigned v = six_bits(c);
	for (unsigned other = 0; other < 64; other++) {
		if (place == 0 && is_text(v << 2 | other >> 4) && v << 2 < 0x80 && (v < 4 || v >= 8))
			return true;
		if (place == 1 && is_text((v & 15) << 4))
			return true;
		if (place == 2 && is_text((v & 3) << 6 | other))
			return true;
	}
	return false;
}

static void check_blocks(const struct classifier *c, const unsigned char *bytes)
{
	struct masks m = {0};
	c->blocks(bytes, BLOCKS, &m);
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < (size_t)BLOCKS * BLOCK; i++) {
			bool got = m.of[kind][1 + i / BLOCK] >> (i % BLOCK) & 1;
			if (got != is_kind(bytes[i], kind))
				fail_msg("kind %u, byte %02x", kind, bytes[i]);
		}
}

/* `words` says the same of base64 characters, and of their runs alone. */
static void check_words(const struct classifier *c, const unsigned char *bytes)
{
	struct masks m = {0};
	c->words(bytes, BLOCKS, &m);
	for (size_t i = 0; i < (size_t)BLOCKS * BLOCK; i++)
		if ((m.of[KIND_BASE64][1 + i / BLOCK] >> (i % BLOCK) & 1) != is_kind(bytes[i], KIND_BASE64))
			fail_msg("word character %02x", bytes[i]);
	for (size_t i = 0; i < BLOCKS; i++)
		assert_int_equal(m.runs[i], base64_starts(m.of[KIND_BASE64][i + 1], m.of[KIND_BASE64][i]));
}

static void check_chars(const struct classifier *c, const unsigned char bytes[BLOCK])
{
	struct chars chars = c->chars(bytes);
	const uint64_t places[] = {chars.first, chars.second, chars.third};
	for (unsigned i = 0; i < BLOCK; i++) {
		unsigned char b = bytes[i];
		bool is_letter = (b | 0x20) >= 'a' && (b | 0x20) <= 'z';
		bool is_upper = is_letter && b <= 'Z', is_digit = b >= '0' && b <= '9';
		assert_int_equal(chars.base64 >> i & 1, is_kind(b, KIND_BASE64));
		assert_int_equal(chars.digit >> i & 1, is_digit);
		assert_int_equal(chars.upper >> i & 1, is_upper);
		assert_true(!(chars.lower >> i & 1) || (is_letter && !is_upper));
		for (unsigned place = 0; place < 3; place++)
			if ((is_letter || is_digit) && (places[place] >> i & 1) != can_be_text(b, place))
				fail_msg("place %u, byte %02x", place, b);
	}
}

static void check_digits(const struct classifier *c, const unsigned char bytes[BLOCK])
{
	struct digits digits = c->digits(bytes);
	for (unsigned i = 0; i < BLOCK; i++) {
		int value = ascii_hex(bytes[i]);
		if (value < 0)
			continue;
		assert_int_equal(digits.high >> i & 1, value >= 2 && value <= 7);
		assert_int_equal(digits.letter >> i & 1, value > 9);
	}
}

static void every_byte_at_every_place(void **state)
{
	(void)state;
	static unsigned char bytes[BLOCKS * BLOCK];
	const struct classifier *both[] = {classify_best(), &classify_plain};
	for (unsigned shift = 0; shift < 256; shift++) {
		for (unsigned i = 0; i < sizeof(bytes); i++)
			bytes[i] = (unsigned char)(i + shift);
		for (unsigned k = 0; k < 2; k++) {
			check_blocks(both[k], bytes);
			check_words(both[k], bytes);
			check_chars(both[k], bytes);
			check_digits(both[k], bytes);
		}
	}
}

/* Digits, gaps and words in any order: both ways find the same eights. */
static void stretches_are_the_same(void **state)
{
	(void)state;
	static const char bytes_of[] = "0123456789abcdef41 -:,\\xn\"zq";
	static unsigned char bytes[BLOCKS * BLOCK];
	static struct masks best, plain;
	size_t n_found = 0;
	uint64_t x = 1;
	for (unsigned round = 0; round < 100; round++) {
		for (unsigned i = 0; i < sizeof(bytes); i++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			bytes[i] = (unsigned char)bytes_of[(x >> 33) % (sizeof(bytes_of) - 1)];
		}
		classify_best()->blocks(bytes, BLOCKS, &best);
		classify_plain.blocks(bytes, BLOCKS, &plain);
		for (unsigned i = 0; i < BLOCKS; i++) {
			assert_true((best.stretches[i] & 0x80 * EACH) == plain.stretches[i]);
			n_found += plain.stretches[i] != 0;
		}
		for (unsigned kind = 0; kind < KINDS; kind++)
			best.of[kind][0] = plain.of[kind][0] = plain.of[kind][BLOCKS];
	}
	assert_true(n_found > 0 && n_found < 100 * BLOCKS);
}

static bool is_likely(const char *text)
{
	unsigned char bytes[BLOCK];
	memset(bytes, ' ', sizeof(bytes));
	memcpy(bytes, text, strlen(text));
	struct chars c = classify_best()->chars(bytes), same = classify_plain.chars(bytes);
	assert_int_equal(chars_are_likely(&c), chars_are_likely(&same));
	return chars_are_likely(&c);
}

static void words_are_not_likely(void **state)
{
	(void)state;
	static const char *const words[] = {
		"/usr/lib/python3/dist-packages/setuptools", "some_rather_long_identifier_name_of_ours",
		"AnIdentifierWithCapitalsAsInJava",          "----------------------------------------",
		"550e8400-e29b-41d4-a716-446655440000",      "da39a3ee5e6b4b0d3255bfef95601890afd80709",
	};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (is_likely(words[i]))
			fail_msg("%s", words[i]);
}

/* Any text of eleven bytes, at each alignment, in any case of UTF-16, and bytes that are no text as far as they are mixed. */
static void text_is_likely(void **state)
{
	(void)state;
	for (unsigned c = 0x20; c < 0x7f; c++) {
		for (unsigned skip = 0; skip < 3; skip++) {
			struct bytes text = {0};
			bytes_fill(&text, (char)c, 11 + skip);
			memset(text.ptr, 0xff, skip);
			struct bytes out = {0};
			encode_base64(&out, bytes_slice(&text), STYLE_UNPADDED);
			bytes_add_char(&out, 0);
			if (!is_likely(out.ptr))
				fail_msg("%s", out.ptr);
			bytes_free(&out);
			bytes_free(&text);
		}
	}
	assert_true(is_likely("QQBCAEMARABFAEYARwBIAA"));
	assert_true(is_likely("0L/QsNGA0L7Qu9GM0LTQsNGA"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_at_every_place),
		cmocka_unit_test(stretches_are_the_same),
		cmocka_unit_test(words_are_not_likely),
		cmocka_unit_test(text_is_likely),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
