/* How a value is compared with a text in each form. The text is read a step at a time: one byte of the value, however
 * many bytes it is written with. A text that ends inside of a step is good when what is there of it is.
 *
 * Each form also says what may come next where the text ends. It may name too many bytes, for the comparison has the
 * last word, but none too few. */
#include "inspectors/known/known_private.h"

/* A comparison under way: the next byte of the value, and the next of the text. */
struct walk {
	const struct known_item *item;
	size_t n; /* bytes of the value */
	size_t i;
	struct slice text;
	size_t at;
};

typedef enum compare step_fn(struct walk *w);

size_t known_item_length(const struct known_item *item)
{
	return item->bytes.len + (item->kind == KNOWN_RANDOM_PLACEHOLDER ? KNOWN_DIGITS : 0);
}

static size_t left(const struct walk *w)
{
	return w->text.len - w->at;
}

/* Byte k of those that are left of the text. */
static unsigned char peek(const struct walk *w, size_t k)
{
	return (unsigned char)w->text.ptr[w->at + k];
}

static enum compare advance(struct walk *w, size_t value, size_t text)
{
	w->i += value;
	w->at += text;
	return COMPARE_EQUAL;
}

/* ---- the bytes of a value ---- */

static bool is_fixed(const struct known_item *item, size_t i)
{
	return i < item->bytes.len;
}

static bool is_byte(const struct known_item *item, size_t i, unsigned c)
{
	return is_fixed(item, i) ? (unsigned char)item->bytes.ptr[i] == c
				 : c < 0x80 && ascii_hex((unsigned char)c) >= 0;
}

static bool is_byte_in_any_case(const struct known_item *item, size_t i, unsigned char c)
{
	if (!is_fixed(item, i))
		return ascii_hex(c) >= 0;
	return ascii_lower((unsigned char)item->bytes.ptr[i]) == ascii_lower(c);
}

/* Can the byte have these upper bits? n: how many they are. */
static bool has_upper_bits(const struct known_item *item, size_t i, unsigned bits, unsigned n)
{
	return !is_fixed(item, i) || (unsigned)(unsigned char)item->bytes.ptr[i] >> (8 - n) == bits;
}

/* ---- as it is, percent, hex ---- */

static enum compare raw_step(struct walk *w)
{
	return is_byte(w->item, w->i, peek(w, 0)) ? advance(w, 1, 1) : COMPARE_DIFFERS;
}

/* Two hex digits, `skip` bytes behind. */
static enum compare digits_step(struct walk *w, size_t skip)
{
	if (left(w) <= skip)
		return COMPARE_GOOD;
	int high = ascii_hex(peek(w, skip));
	if (high < 0 || !has_upper_bits(w->item, w->i, (unsigned)high, 4))
		return COMPARE_DIFFERS;
	if (left(w) == skip + 1)
		return COMPARE_GOOD;
	int low = ascii_hex(peek(w, skip + 1));
	if (low < 0 || !is_byte(w->item, w->i, (unsigned)high << 4 | (unsigned)low))
		return COMPARE_DIFFERS;
	return advance(w, 1, skip + 2);
}

static enum compare hex_step(struct walk *w)
{
	return digits_step(w, 0);
}

static enum compare percent_step(struct walk *w)
{
	enum compare escaped = peek(w, 0) == '%' ? digits_step(w, 1) : COMPARE_DIFFERS;
	if (escaped != COMPARE_DIFFERS)
		return escaped;
	if (peek(w, 0) == '+' && is_byte(w->item, w->i, ' '))
		return advance(w, 1, 1);
	return raw_step(w);
}

/* ---- JSON ---- */

/* The character of two or three bytes of UTF-8 that the value has there, and how many they are; 0: none. */
static unsigned utf8_at(const struct known_item *item, size_t i, size_t *len)
{
	struct slice rest = slice_from(item->bytes, i);
	unsigned char c = rest.len > 0 ? (unsigned char)rest.ptr[0] : 0;
	*len = c >= 0xe0 ? 3 : 2;
	if (c < 0xc2 || c > 0xef || rest.len < *len)
		return 0;
	unsigned point = c & (*len == 3 ? 0x0f : 0x1f);
	for (size_t k = 1; k < *len; k++) {
		if (((unsigned char)rest.ptr[k] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | ((unsigned char)rest.ptr[k] & 0x3f);
	}
	return point;
}

/* \uXXXX: a character of UTF-8, or a byte by itself. */
static enum compare unicode_step(struct walk *w)
{
	unsigned point = 0, n = 0;
	for (; n < 4 && n + 2 < left(w); n++) {
		int digit = ascii_hex(peek(w, n + 2));
		if (digit < 0)
			return COMPARE_DIFFERS;
		point = point << 4 | (unsigned)digit;
	}
	size_t len;
	unsigned wanted = utf8_at(w->item, w->i, &len), missing = 4 * (4 - n);
	if (wanted != 0 && wanted >> missing == point)
		return n == 4 ? advance(w, len, 6) : COMPARE_GOOD;
	if (n == 4)
		return is_byte(w->item, w->i, point) ? advance(w, 1, 6) : COMPARE_DIFFERS;
	if (!is_fixed(w->item, w->i))
		return COMPARE_GOOD;
	wanted = (unsigned char)w->item->bytes.ptr[w->i];
	return wanted >> missing == point ? COMPARE_GOOD : COMPARE_DIFFERS;
}

/* What a letter behind a backslash stands for; 0, which no value has: nothing. */
static unsigned char unescaped(unsigned char letter)
{
	static const unsigned char bytes[256] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
						 ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};
	return bytes[letter];
}

static enum compare json_step(struct walk *w)
{
	enum compare escaped = COMPARE_DIFFERS;
	if (peek(w, 0) == '\\') {
		if (left(w) == 1)
			return COMPARE_GOOD;
		if (peek(w, 1) == 'u')
			escaped = unicode_step(w);
		else if (is_byte(w->item, w->i, unescaped(peek(w, 1))))
			escaped = advance(w, 1, 2);
	}
	return escaped == COMPARE_DIFFERS ? raw_step(w) : escaped;
}

/* ---- loose and reversed ---- */

/* U+200B to U+200F, U+2060, U+FEFF, U+00AD. */
static const struct slice zero_widths[] = {WORD("\xe2\x80\x8b"), WORD("\xe2\x80\x8c"), WORD("\xe2\x80\x8d"),
					   WORD("\xe2\x80\x8e"), WORD("\xe2\x80\x8f"), WORD("\xe2\x81\xa0"),
					   WORD("\xef\xbb\xbf"), WORD("\xc2\xad")};
#define N_ZERO_WIDTHS (sizeof(zero_widths) / sizeof(zero_widths[0]))

/* The zero-width character there. */
static enum compare zero_width_step(struct walk *w)
{
	struct slice rest = slice_from(w->text, w->at);
	if (!memchr("\xe2\xef\xc2", rest.ptr[0], 3))
		return COMPARE_DIFFERS;
	if (w->i == 0 || w->at - w->i >= (size_t)3 * KNOWN_SKIPS * w->n - 2)
		return COMPARE_DIFFERS;
	for (size_t k = 0; k < N_ZERO_WIDTHS; k++) {
		if (slice_starts(rest, zero_widths[k]))
			return advance(w, 0, zero_widths[k].len);
		if (slice_starts(zero_widths[k], rest))
			return COMPARE_GOOD;
	}
	return COMPARE_DIFFERS;
}

static enum compare loose_step(struct walk *w)
{
	return is_byte_in_any_case(w->item, w->i, peek(w, 0)) ? advance(w, 1, 1) : zero_width_step(w);
}

static enum compare reversed_step(struct walk *w)
{
	return is_byte_in_any_case(w->item, w->n - 1 - w->i, peek(w, 0)) ? advance(w, 1, 1) : zero_width_step(w);
}

/* ---- base64 ---- */

/* Takes whole bytes out of the bits, and compares what is left of them with the start of the next one. */
static bool bits_are_good(struct walk *w, unsigned *bits, unsigned *n_bits)
{
	if (*n_bits >= 8) {
		*n_bits -= 8;
		if (!is_byte(w->item, w->i++, *bits >> *n_bits))
			return false;
		*bits &= (1u << *n_bits) - 1;
	}
	return w->i == w->n || has_upper_bits(w->item, w->i, *bits, *n_bits);
}

/* Of the first digit those bits count that the byte before the value does not have; of the last likewise. */
static enum compare compare_base64(struct walk *w, unsigned align)
{
	unsigned bits = 0, n_bits = 0;
	for (unsigned own = 6 - 2 * align; w->i < w->n; own = 6) {
		if (left(w) == 0)
			return COMPARE_GOOD;
		int digit = ascii_base64(peek(w, 0));
		if (digit < 0)
			return COMPARE_DIFFERS;
		bits = bits << own | ((unsigned)digit & ((1u << own) - 1));
		n_bits += own;
		w->at++;
		if (!bits_are_good(w, &bits, &n_bits))
			return COMPARE_DIFFERS;
	}
	return COMPARE_EQUAL;
}

static enum compare compare_steps(struct walk *w, step_fn *step)
{
	while (w->i < w->n) {
		if (left(w) == 0)
			return COMPARE_GOOD;
		enum compare c = step(w);
		if (c != COMPARE_EQUAL)
			return c;
	}
	return COMPARE_EQUAL;
}

/* ---- what may come next ---- */

typedef void next_fn(const struct walk *w, struct known_bytes *next);

static void put(struct known_bytes *next, unsigned char c)
{
	next->bits[c / 64] |= (uint64_t)1 << c % 64;
}

static void put_hex(struct known_bytes *next, unsigned digit)
{
	put(next, (unsigned char)"0123456789abcdef"[digit & 15]);
	put(next, (unsigned char)"0123456789ABCDEF"[digit & 15]);
}

static void put_any_hex(struct known_bytes *next)
{
	for (unsigned digit = 0; digit < 16; digit++)
		put_hex(next, digit);
}

static void raw_next(const struct walk *w, struct known_bytes *next)
{
	if (is_fixed(w->item, w->i))
		put(next, (unsigned char)w->item->bytes.ptr[w->i]);
	else
		put_any_hex(next);
}

/* The hex digit of the byte that has `shift` bits behind it. */
static void digit_next(const struct walk *w, unsigned shift, struct known_bytes *next)
{
	if (is_fixed(w->item, w->i))
		put_hex(next, (unsigned)(unsigned char)w->item->bytes.ptr[w->i] >> shift);
	else
		put_any_hex(next);
}

static void hex_next(const struct walk *w, struct known_bytes *next)
{
	digit_next(w, left(w) == 0 ? 4 : 0, next);
}

/* What is left looks like an escape; when it turns out to be none, its first byte stands for itself. */
static void unescaped_next(const struct walk *w, step_fn *step, next_fn *form_next, struct known_bytes *next)
{
	struct walk rest = *w;
	if (raw_step(&rest) == COMPARE_EQUAL && compare_steps(&rest, step) == COMPARE_GOOD)
		form_next(&rest, next);
}

static void percent_next(const struct walk *w, struct known_bytes *next)
{
	if (left(w) > 0) {
		digit_next(w, left(w) == 1 ? 4 : 0, next);
		unescaped_next(w, percent_step, percent_next, next);
		return;
	}
	raw_next(w, next);
	put(next, '%');
	put(next, '+');
}

/* Behind a backslash. */
static void letter_next(const struct walk *w, struct known_bytes *next)
{
	put(next, 'u');
	for (unsigned c = 0; c < 256; c++)
		if (is_byte(w->item, w->i, unescaped((unsigned char)c)))
			put(next, (unsigned char)c);
}

/* Behind \u and some digits. */
static void unicode_next(const struct walk *w, struct known_bytes *next)
{
	size_t len;
	unsigned shift = 12 - 4 * (unsigned)(left(w) - 2);
	put_hex(next, utf8_at(w->item, w->i, &len) >> shift);
	digit_next(w, shift, next);
}

static void json_next(const struct walk *w, struct known_bytes *next)
{
	if (left(w) == 0) {
		raw_next(w, next);
		put(next, '\\');
		return;
	}
	if (left(w) == 1)
		letter_next(w, next);
	else
		unicode_next(w, next);
	unescaped_next(w, json_step, json_next, next);
}

static void zero_width_next(const struct walk *w, struct known_bytes *next)
{
	struct slice rest = slice_from(w->text, w->at);
	for (size_t k = 0; k < N_ZERO_WIDTHS; k++)
		if (rest.len < zero_widths[k].len && slice_starts(zero_widths[k], rest))
			put(next, (unsigned char)zero_widths[k].ptr[rest.len]);
}

/* Byte i of the value, or a zero-width character. */
static void any_case_next(const struct walk *w, size_t i, struct known_bytes *next)
{
	zero_width_next(w, next);
	if (left(w) > 0)
		return;
	if (!is_fixed(w->item, i)) {
		put_any_hex(next);
		return;
	}
	unsigned char c = ascii_lower((unsigned char)w->item->bytes.ptr[i]);
	put(next, c);
	if (c >= 'a' && c <= 'z')
		put(next, (unsigned char)(c - 32));
}

static void loose_next(const struct walk *w, struct known_bytes *next)
{
	any_case_next(w, w->i, next);
}

static void reversed_next(const struct walk *w, struct known_bytes *next)
{
	any_case_next(w, w->n - 1 - w->i, next);
}

static void put_base64(struct known_bytes *next, unsigned digit)
{
	static const char std[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	put(next, (unsigned char)std[digit]);
	if (digit >= 62)
		put(next, digit == 62 ? '-' : '_');
}

/* The digits that have the bits of the value which are known; the others are free. */
static void base64_next(const struct walk *w, unsigned align, struct known_bytes *next)
{
	unsigned digit = 0, open = 0;
	for (size_t k = 6 * w->at; k < 6 * w->at + 6; k++) {
		size_t bit = k - 2 * (size_t)align;
		bool is_known = k >= 2 * (size_t)align && is_fixed(w->item, bit / 8);
		unsigned byte = is_known ? (unsigned char)w->item->bytes.ptr[bit / 8] : 0;
		digit = digit << 1 | (byte >> (7 - bit % 8) & 1);
		open = open << 1 | !is_known;
	}
	put_base64(next, digit);
	for (unsigned bits = open; bits > 0; bits = (bits - 1) & open)
		put_base64(next, digit | bits);
}

/* ---- all of them ---- */

size_t known_way_reach(const struct known_way *way)
{
	size_t n = known_item_length(way->item);
	switch (way->form) {
	case KNOWN_RAW:
		return n;
	case KNOWN_PERCENT:
		return 3 * n;
	case KNOWN_JSON:
		return 6 * n;
	case KNOWN_BASE64:
		return (2 * way->align + 8 * n + 5) / 6;
	case KNOWN_HEX:
		return 2 * n;
	case KNOWN_LOOSE:
	case KNOWN_REVERSED:
		return n + (size_t)3 * KNOWN_SKIPS * n;
	case KNOWN_FORMS:
		break;
	}
	return 0;
}

static inline enum compare compare(const struct known_way *way, struct walk *w)
{
	static step_fn *const steps[KNOWN_FORMS] = {
		[KNOWN_RAW] = raw_step, [KNOWN_PERCENT] = percent_step, [KNOWN_JSON] = json_step,
		[KNOWN_HEX] = hex_step, [KNOWN_LOOSE] = loose_step,     [KNOWN_REVERSED] = reversed_step,
	};
	return way->form == KNOWN_BASE64 ? compare_base64(w, way->align) : compare_steps(w, steps[way->form]);
}

static struct walk walk_of(const struct known_way *way, struct slice text)
{
	return (struct walk){.item = way->item, .n = known_item_length(way->item), .text = text};
}

enum compare known_compare(const struct known_way *way, struct slice text, size_t *len)
{
	struct walk w = walk_of(way, text);
	enum compare c = compare(way, &w);
	*len = w.at;
	return c;
}

struct known_bytes known_next_bytes(const struct known_way *way, struct slice start)
{
	static next_fn *const nexts[KNOWN_FORMS] = {
		[KNOWN_RAW] = raw_next, [KNOWN_PERCENT] = percent_next, [KNOWN_JSON] = json_next,
		[KNOWN_HEX] = hex_next, [KNOWN_LOOSE] = loose_next,     [KNOWN_REVERSED] = reversed_next,
	};
	struct known_bytes next = {{0}};
	struct walk w = walk_of(way, start);
	if (compare(way, &w) != COMPARE_GOOD)
		return next;
	if (way->form == KNOWN_BASE64)
		base64_next(&w, way->align, &next);
	else
		nexts[way->form](&w, &next);
	return next;
}
