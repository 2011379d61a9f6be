/* Base64 and base64url, with '=' or without. What stands before the encoded text may be made of the same characters
 * ("data/QUtJQ..."), so a run is decoded from each of its first four characters on, into four texts. Line ends inside a
 * run are skipped, also as JSON writes them.
 *
 * Words, paths and numbers are runs too, and far more of them. So short runs are kept until their end, and are only read
 * when there is text in them at some alignment; most are not even looked at, by chars_are_likely(). */
#include "inspectors/views/views_private.h"

#include <endian.h>

#define PAD 64   /* value of '=' */
#define BREAKS 2 /* line ends in a row: CR and LF */

/* Of the characters of the alphabet; nothing else is looked up. */
static const unsigned char values[256] = {
	['+'] = 62, ['-'] = 62, ['/'] = 63, ['_'] = 63, ['='] = PAD, ['0'] = 52, 53, 54, 55, 56, 57, 58, 59, 60,
	61,         ['A'] = 0,  1,          2,          3,           4,          5,  6,  7,  8,  9,  10, 11, 12,
	13,         14,         15,         16,         17,          18,         19, 20, 21, 22, 23, 24, 25, ['a'] = 26,
	27,         28,         29,         30,         31,          32,         33, 34, 35, 36, 37, 38, 39, 40,
	41,         42,         43,         44,         45,          46,         47, 48, 49, 50, 51,
};

/* Decoded bytes of the four alignments, from as many characters as a short run has. */
struct decoded {
	unsigned char bytes[4][SHORT_RUN + 8];
	size_t n[4];
};

/* ---- decoding ---- */

/* The three bytes of the last four characters, and one more that does not count. */
static inline void put_quantum(unsigned char *out, uint32_t bits)
{
	uint32_t bytes = htobe32(bits << 8);
	memcpy(out, &bytes, sizeof(bytes));
}

/* Each character ends the four of one alignment. */
static inline void put_value(struct base64 *r, struct decoded *d, unsigned value)
{
	r->bits = r->bits << 6 | value;
	if (++r->n < 4)
		return;
	unsigned child = (unsigned)(r->n + r->turn) & 3;
	put_quantum(d->bytes[child] + d->n[child], r->bits);
	d->n[child] += 3;
}

/* At '=' or the end: two or three characters that wait for the rest of their four are one byte or two. */
static void put_tails(const struct base64 *r, struct decoded *d)
{
	for (unsigned skip = 0; skip < 4 && skip < r->n; skip++) {
		unsigned child = (skip + r->turn) & 3;
		unsigned char *out = d->bytes[child] + d->n[child];
		unsigned tail = (unsigned)(r->n - skip) & 3;
		if (tail == 2) {
			out[0] = (unsigned char)(r->bits >> 4);
			d->n[child] += 1;
		} else if (tail == 3) {
			out[0] = (unsigned char)(r->bits >> 10);
			out[1] = (unsigned char)(r->bits >> 2);
			d->n[child] += 2;
		}
	}
}

/* Behind '=' the four alignments begin anew. The child that was right about how many '=' there are goes on with the
 * first, so that base64 put behind base64 stays one text. */
static void begin_anew(struct base64 *r)
{
	r->turn = (unsigned)(r->n + r->turn + (r->pads == 1 ? 1 : 2)) & 3;
	r->n = 0;
	r->bits = 0;
	r->pads = 0;
}

static void put_char(struct base64 *r, struct decoded *d, unsigned char c)
{
	if (values[c] == PAD) {
		if (r->pads++ == 0)
			put_tails(r, d);
		return;
	}
	if (r->pads > 0)
		begin_anew(r);
	put_value(r, d, values[c]);
}

/* As put_char, for four at a time as long as there is no '='. Returns how many were put. */
static size_t put_fours(struct base64 *r, struct decoded *d, const unsigned char *chars, size_t n)
{
	unsigned children[4];
	unsigned char *out[4];
	size_t done = 0;
	for (unsigned i = 0; i < 4; i++) {
		children[i] = (unsigned)(r->n + r->turn + 1 + i) & 3;
		out[i] = d->bytes[children[i]] + d->n[children[i]];
	}
	for (const unsigned char *c = chars; n - done >= 4; c += 4, done += 4) {
		uint32_t one = values[c[0]], two = values[c[1]], three = values[c[2]], four = values[c[3]];
		if ((one | two | three | four) >= PAD)
			break;
		uint32_t now = one << 18 | two << 12 | three << 6 | four;
		put_quantum(out[0] + done / 4 * 3, r->bits << 6 | now >> 18);
		put_quantum(out[1] + done / 4 * 3, r->bits << 12 | now >> 12);
		put_quantum(out[2] + done / 4 * 3, r->bits << 18 | now >> 6);
		put_quantum(out[3] + done / 4 * 3, now);
		r->bits = now;
	}
	for (unsigned i = 0; i < 4; i++)
		d->n[children[i]] += done / 4 * 3;
	r->n += done;
	return done;
}

static void put_chars(struct base64 *r, struct decoded *d, const unsigned char *chars, size_t n)
{
	for (size_t i = 0; i < n;) {
		if (r->pads == 0 && r->n >= 4)
			i += put_fours(r, d, chars + i, n - i);
		if (i < n)
			put_char(r, d, chars[i++]);
	}
}

static void hand_on(struct layer *t, const struct decoded *d)
{
	for (unsigned i = 0; i < 4; i++)
		layer_put(t, CHILD_BASE64 + i, d->bytes[i], d->n[i]);
}

/* Up to SHORT_RUN characters. */
static void decode(struct layer *t, const unsigned char *chars, size_t n)
{
	struct decoded d;
	memset(d.n, 0, sizeof(d.n));
	put_chars(&t->base64, &d, chars, n);
	hand_on(t, &d);
}

/* ---- which runs to look at ---- */

static bool is_likely(const struct layer *t, const unsigned char bytes[BLOCK])
{
	struct chars c = t->views->classify->chars(bytes);
	return chars_are_likely(&c);
}

/* The end of the last block and the beginning of this one. */
static bool is_likely_at_border(const struct layer *t, const struct block *b)
{
	unsigned char bytes[BLOCK];
	if (b->before >= BASE64_RUN)
		return is_likely(t, b->bytes - BASE64_RUN);
	size_t n = block_before(t, b, bytes, BASE64_RUN);
	memcpy(bytes + n, b->bytes, BLOCK - n);
	return is_likely(t, bytes);
}

/* Long runs are, whatever they are made of: a whole block is in them. */
bool base64_is_likely(const struct layer *t, const struct block *b)
{
	uint64_t now = block_now(b, KIND_BASE64), last = block_last(b, KIND_BASE64);
	if (~now == 0)
		return true;
	if (runs_of(now, BASE64_RUN) && is_likely(t, b->bytes))
		return true;
	return now & 1 && last >> 63 && is_likely_at_border(t, b);
}

/* ---- runs ---- */

static void open_children(struct layer *t)
{
	for (unsigned i = 0; i < 4; i++)
		layer_open(t, CHILD_BASE64 + i, t->base64.start + i);
}

static void start(struct layer *t, uint64_t at)
{
	struct base64 *r = &t->base64;
	r->state = BASE64_CHARS;
	r->start = at;
	r->length = 0;
	r->line = 0;
	r->n = 0;
	r->bits = 0;
	r->turn = 0;
	r->pads = 0;
}

/* Takes characters of the run, up to a block. */
static void take(struct layer *t, const unsigned char *chars, size_t n)
{
	struct base64 *r = &t->base64;
	size_t have = r->length < SHORT_RUN ? (size_t)r->length : SHORT_RUN;
	size_t some = n < SHORT_RUN - have ? n : SHORT_RUN - have;
	memcpy(r->begin + have, chars, some);
	if (some > 0 && have + some == SHORT_RUN) {
		open_children(t);
		decode(t, r->begin, SHORT_RUN);
	}
	if (have + some == SHORT_RUN && n > some)
		decode(t, chars + some, n - some);
	r->state = BASE64_CHARS;
	r->length += n;
	r->line += n;
}

/* A run that has stayed short. */
static bool has_text_in_it(struct base64 *r, struct decoded *d)
{
	put_chars(r, d, r->begin, (size_t)r->length);
	for (unsigned i = 0; i < 4; i++)
		if (has_text(d->bytes[i], d->n[i]))
			return true;
	return false;
}

static void finish(struct layer *t)
{
	struct base64 *r = &t->base64;
	struct decoded d;
	memset(d.n, 0, sizeof(d.n));
	r->state = BASE64_NONE;
	if (r->length < SHORT_RUN) {
		if (!has_text_in_it(r, &d))
			return;
		open_children(t);
	}
	if (r->pads == 0)
		put_tails(r, &d);
	hand_on(t, &d);
	for (unsigned i = 0; i < 4; i++)
		layer_close(t, CHILD_BASE64 + i);
	size_t begin = r->length < RUN_START ? (size_t)r->length : RUN_START;
	layer_report(t, VIEW_BASE64, r->start, r->length, slice_of(r->begin, begin));
}

/* Finds where a run starts at or behind byte i of the block, and takes what it has in the block before. */
static bool find_start(struct layer *t, const struct block *b, unsigned *i)
{
	if (!base64_is_likely(t, b))
		return false;
	uint64_t chars = block_now(b, KIND_BASE64) & bits_from(*i);
	unsigned earlier = *i == 0 ? ones_high(block_last(b, KIND_BASE64)) : 0;
	if (earlier > 0 && chars & 1 && earlier + ones_low(chars) >= BASE64_RUN) {
		unsigned char begin[BLOCK];
		size_t n = block_before(t, b, begin, earlier);
		start(t, b->at - n);
		take(t, begin, n);
		return true;
	}
	uint64_t runs = runs_of(chars, BASE64_RUN);
	if (!runs)
		return false;
	*i = (unsigned)__builtin_ctzll(runs);
	start(t, b->at + *i);
	return true;
}

/* May a line end stand here? */
static bool may_break(const struct base64 *r)
{
	return r->line >= BASE64_RUN || (r->line == 0 && r->breaks < BREAKS);
}

static void take_break(struct base64 *r)
{
	r->breaks = r->line > 0 ? 1 : r->breaks + 1;
	r->line = 0;
	r->state = BASE64_BREAK;
}

/* A byte that is not of the alphabet, or one behind a backslash. False: the run ends before it. */
static bool take_other(struct base64 *r, unsigned char c)
{
	if (c == '\\' && (r->state == BASE64_BACKSLASH || may_break(r))) {
		r->state = BASE64_BACKSLASH;
		return true;
	}
	bool is_end = r->state == BASE64_BACKSLASH ? c == 'n' || c == 'r' : c == '\n' || c == '\r';
	if (!is_end || !may_break(r))
		return false;
	take_break(r);
	return true;
}

void base64_block(struct layer *t, const struct block *b)
{
	struct base64 *r = &t->base64;
	for (unsigned i = 0; i < b->len;) {
		if (r->state == BASE64_NONE && !find_start(t, b, &i))
			return;
		unsigned n = ones_low(block_now(b, KIND_BASE64) >> i);
		if (n > 0 && r->state != BASE64_BACKSLASH) {
			take(t, b->bytes + i, n);
			i += n;
		} else if (take_other(r, b->bytes[i])) {
			i++;
		} else {
			finish(t);
		}
	}
}

void base64_end(struct layer *t)
{
	if (t->base64.state != BASE64_NONE)
		finish(t);
}
