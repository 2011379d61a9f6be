/* UTF-8 against its definition: every character is good, every other sequence of up to four bytes is not, and the byte
 * that is wrong is named, whatever the pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/http/ws_utf8.h"

#define LAST_CHARACTER 0x10ffffu

static size_t encode(uint32_t c, char out[4])
{
	static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(marks[n] | c);
	return n;
}

static bool is_surrogate(uint32_t c)
{
	return c >= 0xd800 && c < 0xe000;
}

static bool is_whole(struct slice s)
{
	struct utf8 u = {0};
	return utf8_span(&u, s) == s.len && utf8_is_whole(&u);
}

static void every_character(void **state)
{
	(void)state;
	for (uint32_t c = 0; c <= 0x1fffff; c++) {
		char bytes[4];
		size_t n = encode(c, bytes);
		bool wanted = c <= LAST_CHARACTER && !is_surrogate(c);
		if (is_whole(slice_of(bytes, n)) != wanted)
			fail_msg("U+%04X", c);
	}
}

/* How many sequences of n bytes are one or more whole characters: as many as there are ways to make them. */
static void count_of_all_sequences(void **state)
{
	(void)state;
	const size_t two = 0x80 * 0x80 + 0x780, three = 0x80 * two + 0x780 * 0x80 + (0xf800 - 0x800);
	size_t n = 0;
	for (uint32_t v = 0; v <= 0xffff; v++) {
		const char bytes[] = {(char)(v >> 8), (char)v};
		n += is_whole(slice_of(bytes, 2));
	}
	assert_int_equal(n, two);
	n = 0;
	for (uint32_t v = 0; v <= 0xffffff; v++) {
		const char bytes[] = {(char)(v >> 16), (char)(v >> 8), (char)v};
		n += is_whole(slice_of(bytes, 3));
	}
	assert_int_equal(n, three);
}

/* The first bad byte of each, with ASCII around it so that it is met in every place of the fast way. */
static void bad_byte_is_named(void **state)
{
	(void)state;
	static const struct {
		struct slice bytes;
		size_t good;
	} bad[] = {
		{WORD("\x80"), 0},
		{WORD("\xbf"), 0},
		{WORD("\xc0\x80"), 0},
		{WORD("\xc1\xbf"), 0},
		{WORD("\xc2\x20"), 1},
		{WORD("\xc3\xc3"), 1},
		{WORD("\xe0\x9f\xbf"), 1},
		{WORD("\xe1\x80\x20"), 2},
		{WORD("\xed\xa0\x80"), 1},
		{WORD("\xef\xbf\xc0"), 2},
		{WORD("\xf0\x8f\xbf\xbf"), 1},
		{WORD("\xf1\x80\x80\x20"), 3},
		{WORD("\xf4\x90\x80\x80"), 1},
		{WORD("\xf5\x80\x80\x80"), 0},
		{WORD("\xff"), 0},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		for (size_t before = 0; before < 20; before++) {
			char text[48];
			memset(text, 'a', sizeof(text));
			memcpy(text + before, bad[i].bytes.ptr, bad[i].bytes.len);
			for (size_t cut = 0; cut <= sizeof(text); cut++) {
				struct utf8 u = {0};
				size_t n = utf8_span(&u, slice_of(text, cut));
				if (n == cut)
					n += utf8_span(&u, slice_of(text + cut, sizeof(text) - cut));
				assert_int_equal(n, before + bad[i].good);
				assert_int_equal(utf8_span(&u, slice_of(text + n, sizeof(text) - n)), 0);
			}
		}
}

static void text_in_pieces(void **state)
{
	(void)state;
	const struct slice text =
		SLICE("\xce\xba\xe1\xbd\xb9\xcf\x83 plain ascii \xf0\x9f\x98\x80\0\x7f end\xef\xbf\xbf");
	for (size_t cut = 0; cut <= text.len; cut++) {
		struct utf8 u = {0};
		assert_int_equal(utf8_span(&u, slice_head(text, cut)), cut);
		bool is_inside = cut < text.len && ((unsigned char)text.ptr[cut] & 0xc0) == 0x80;
		assert_int_equal(utf8_is_whole(&u), !is_inside);
		assert_int_equal(utf8_span(&u, slice_from(text, cut)), text.len - cut);
		assert_true(utf8_is_whole(&u));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_character),
		cmocka_unit_test(count_of_all_sequences),
		cmocka_unit_test(bad_byte_is_named),
		cmocka_unit_test(text_in_pieces),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
