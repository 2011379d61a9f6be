/* How a value is compared with a text in each form. The text is read a step at a time: one byte of the value, however
 * many bytes it is written with. A text that ends inside of a step is good when what is there of it is. */
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

/* The zero-width character there: U+200B to U+200F, U+2060, U+FEFF, U+00AD. */
static enum compare zero_width_step(struct walk *w)
{
	static const struct slice words[] = {WORD("\xe2\x80\x8b"), WORD("\xe2\x80\x8c"), WORD("\xe2\x80\x8d"),
					     WORD("\xe2\x80\x8e"), WORD("\xe2\x80\x8f"), WORD("\xe2\x81\xa0"),
					     WORD("\xef\xbb\xbf"), WORD("\xc2\xad")};
	struct slice rest = slice_from(w->text, w->at);
	if (!memchr("\xe2\xef\xc2", rest.ptr[0], 3))
		return COMPARE_DIFFERS;
	if (w->i == 0 || w->at - w->i >= (size_t)3 * KNOWN_SKIPS * w->n - 2)
		return COMPARE_DIFFERS;
	for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
		if (slice_starts(rest, words[k]))
			return advance(w, 0, words[k].len);
		if (slice_starts(words[k], rest))
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

enum compare known_compare(const struct known_way *way, struct slice text, size_t *len)
{
	static step_fn *const steps[KNOWN_FORMS] = {
		[KNOWN_RAW] = raw_step, [KNOWN_PERCENT] = percent_step, [KNOWN_JSON] = json_step,
		[KNOWN_HEX] = hex_step, [KNOWN_LOOSE] = loose_step,     [KNOWN_REVERSED] = reversed_step,
	};
	struct walk w = {.item = way->item, .n = known_item_length(way->item), .text = text};
	enum compare c =
		way->form == KNOWN_BASE64 ? compare_base64(&w, way->align) : compare_steps(&w, steps[way->form]);
	*len = w.at;
	return c;
}
