/* Percent and JSON escapes. An escape that hides a plain character opens a text that begins some way before it and goes on
 * until there was none for a while: plain bytes as they are, escapes decoded, since part of a secret may be plain. The
 * escapes that all JSON has (\n, \", \\) open none, or else every body would be read twice; in an open text they are
 * decoded too. */
#include "inspectors/views/views_private.h"

/* What is decoded of up to ESCAPE_NEAR bytes, with what was held back of an escape before them. */
struct decoded {
	unsigned char bytes[ESCAPE_NEAR + 16];
	size_t n;
};

typedef void decoder(struct escapes *e, const unsigned char *bytes, size_t n, struct decoded *out);

/* ---- both ---- */

static inline void put(struct decoded *out, unsigned char c)
{
	out->bytes[out->n++] = c;
}

/* What looked like an escape is none: it stands for itself. */
static void put_raw(struct escapes *e, struct decoded *out)
{
	for (unsigned i = 0; i < e->n_raw; i++)
		put(out, e->raw[i]);
	e->n_raw = 0;
}

/* Plain bytes from byte i up to the next c, which begins an escape; returns where that is. */
static size_t take_plain(const unsigned char *bytes, size_t i, size_t n, unsigned char c, struct decoded *out)
{
	if (bytes[i] == c)
		return i;
	const unsigned char *found = memchr(bytes + i, c, n - i);
	size_t plain = found ? (size_t)(found - bytes) - i : n - i;
	memcpy(out->bytes + out->n, bytes + i, plain);
	out->n += plain;
	return i + plain;
}

static void begin_raw(struct escapes *e, unsigned char c)
{
	e->raw[0] = c;
	e->n_raw = 1;
	e->code = 0;
}

/* The next digit of an escape; false: it is none. */
static bool take_digit(struct escapes *e, unsigned char c)
{
	int value = ascii_hex(c);
	if (value < 0)
		return false;
	e->raw[e->n_raw++] = c;
	e->code = e->code << 4 | (unsigned)value;
	return true;
}

/* The value of n digits, or -1 when they are not all digits. Without a branch for each: what they are is random. */
static inline int value_of(const unsigned char *digits, unsigned n)
{
	static const unsigned char values[256] = {
		['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
		['8'] = 9,  ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
		['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
	};
	int value = 0, all = 1;
	for (unsigned i = 0; i < n; i++) {
		int one = values[digits[i]];
		all &= one != 0;
		value = value * 16 + one - 1;
	}
	return all ? value : -1;
}

static void decode(struct layer *t, enum child child, struct escapes *e, struct slice bytes, decoder *decode_some)
{
	struct decoded out;
	out.n = 0;
	decode_some(e, (const unsigned char *)bytes.ptr, bytes.len, &out);
	layer_put(t, child, out.bytes, out.n);
}

/* What stands before the block. Where all of it is backslashes, the first may be the second half of an escape. */
static struct slice take_before(const struct layer *t, const struct block *b, unsigned char before[ESCAPE_NEAR])
{
	size_t n = block_before(t, b, before, ESCAPE_NEAR), backslashes = 0;
	while (backslashes < n && before[n - 1 - backslashes] == '\\')
		backslashes++;
	bool is_half = backslashes == n && block_is_behind_odd(t, b) != (n % 2 == 1);
	return slice_from(slice_of(before, n), is_half);
}

/* One more block. has_escape: has it an escape of the kind that opens a text? */
static void take_block(struct layer *t, const struct block *b, enum child child, struct escapes *e, bool has_escape,
		       decoder *decode_some)
{
	if (!t->children[child]) {
		unsigned char before[ESCAPE_NEAR];
		if (!has_escape)
			return;
		struct slice part = take_before(t, b, before);
		*e = (struct escapes){0};
		layer_open(t, child, b->at - part.len);
		decode(t, child, e, part, decode_some);
	}
	decode(t, child, e, slice_of(b->bytes, b->len), decode_some);
	e->quiet = has_escape ? 0 : e->quiet + b->len;
}

/* ---- percent ---- */

static void percent_decode(struct escapes *e, const unsigned char *bytes, size_t n, struct decoded *out)
{
	for (size_t i = 0; i < n;) {
		if (e->n_raw == 0) {
			int value;
			while (n - i >= 3 && bytes[i] == '%' && (value = value_of(bytes + i + 1, 2)) >= 0) {
				put(out, (unsigned char)value);
				i += 3;
			}
			if (i == n)
				return;
			i = take_plain(bytes, i, n, '%', out);
			if (i < n)
				begin_raw(e, bytes[i++]);
		} else if (!take_digit(e, bytes[i])) {
			put_raw(e, out);
		} else {
			i++;
			if (e->n_raw == 3) {
				put(out, (unsigned char)e->code);
				e->n_raw = 0;
			}
		}
	}
}

void percent_block(struct layer *t, const struct block *b)
{
	uint64_t found = percent_escapes(block_now(b, KIND_PERCENT), block_last(b, KIND_PERCENT),
					 block_now(b, KIND_HEX), block_last(b, KIND_HEX));
	take_block(t, b, CHILD_PERCENT, &t->percent, found != 0, percent_decode);
	if (t->children[CHILD_PERCENT] && t->percent.quiet >= PERCENT_AFTER)
		percent_end(t);
}

void percent_end(struct layer *t)
{
	if (!t->children[CHILD_PERCENT])
		return;
	layer_put(t, CHILD_PERCENT, t->percent.raw, t->percent.n_raw);
	layer_close(t, CHILD_PERCENT);
}

/* ---- JSON ---- */

static void put_utf8(unsigned code, struct decoded *out)
{
	if (code < 0x80) {
		put(out, (unsigned char)code);
	} else if (code < 0x800) {
		put(out, (unsigned char)(0xc0 | code >> 6));
	} else if (code < 0x10000) {
		put(out, (unsigned char)(0xe0 | code >> 12));
	} else {
		put(out, (unsigned char)(0xf0 | code >> 18));
		put(out, (unsigned char)(0x80 | (code >> 12 & 0x3f)));
	}
	if (code >= 0x800)
		put(out, (unsigned char)(0x80 | (code >> 6 & 0x3f)));
	if (code >= 0x80)
		put(out, (unsigned char)(0x80 | (code & 0x3f)));
}

/* The first half of a pair whose second half did not come. */
static void put_high(struct escapes *e, struct decoded *out)
{
	if (e->high)
		put_utf8(e->high, out);
	e->high = 0;
}

static void put_unit(struct escapes *e, unsigned code, struct decoded *out)
{
	if (e->high && code >= 0xdc00 && code <= 0xdfff) {
		code = 0x10000 + ((e->high - 0xd800) << 10) + (code - 0xdc00);
		e->high = 0;
	}
	put_high(e, out);
	if (code >= 0xd800 && code <= 0xdbff)
		e->high = code;
	else
		put_utf8(code, out);
}

/* The byte behind a backslash. */
static void take_second(struct escapes *e, unsigned char c, struct decoded *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (c == 'u' || c == 'x') {
		e->raw[e->n_raw++] = c;
		return;
	}
	const char *found = memchr(from, c, sizeof(from) - 1);
	put_high(e, out);
	if (!found)
		put_raw(e, out);
	put(out, found ? (unsigned char)to[found - from] : c);
	e->n_raw = 0;
}

/* Was that the last digit? Then the escape is decoded. */
static void end_digits(struct escapes *e, struct decoded *out)
{
	if (e->raw[1] == 'u' && e->n_raw == 6) {
		put_unit(e, e->code, out);
		e->n_raw = 0;
	} else if (e->raw[1] == 'x' && e->n_raw == 4) {
		put_high(e, out);
		put(out, (unsigned char)e->code);
		e->n_raw = 0;
	}
}

static void json_decode(struct escapes *e, const unsigned char *bytes, size_t n, struct decoded *out)
{
	for (size_t i = 0; i < n;) {
		if (e->n_raw == 0) {
			int value;
			while (n - i >= 6 && bytes[i] == '\\' && bytes[i + 1] == 'u' &&
			       (value = value_of(bytes + i + 2, 4)) >= 0) {
				put_unit(e, (unsigned)value, out);
				i += 6;
			}
			if (i == n)
				return;
			if (bytes[i] != '\\')
				put_high(e, out);
			i = take_plain(bytes, i, n, '\\', out);
			if (i < n)
				begin_raw(e, bytes[i++]);
		} else if (e->n_raw == 1) {
			take_second(e, bytes[i++], out);
		} else if (take_digit(e, bytes[i])) {
			i++;
			end_digits(e, out);
		} else {
			put_high(e, out);
			put_raw(e, out);
		}
	}
}

void json_block(struct layer *t, const struct block *b)
{
	uint64_t found =
		json_escapes(block_now(b, KIND_BACKSLASH), block_last(b, KIND_BACKSLASH), block_now(b, KIND_ESCAPE));
	take_block(t, b, CHILD_JSON, &t->json, found != 0, json_decode);
	if (t->children[CHILD_JSON] && t->json.quiet >= JSON_AFTER)
		json_end(t);
}

void json_end(struct layer *t)
{
	if (!t->children[CHILD_JSON])
		return;
	struct decoded out;
	out.n = 0;
	put_high(&t->json, &out);
	put_raw(&t->json, &out);
	layer_put(t, CHILD_JSON, out.bytes, out.n);
	layer_close(t, CHILD_JSON);
}
