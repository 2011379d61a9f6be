/* Base64 and base64url, with '=' or without. What stands before the encoded text may be made of the same characters
 * ("data/QUtJQ..."), so a run is decoded from each of its first four characters on, into four texts. Line ends inside a
 * run are skipped, also as JSON writes them.
 *
 * Words, paths and numbers are runs too, and far more of them. chars_are_likely() says which ones to leave alone:
 * short ones that have no text in them, at any alignment, and don't look random either. */
#include "inspectors/views/views_private.h"

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

/* Decoded bytes of the four alignments, from up to a block of characters. */
struct decoded {
	unsigned char bytes[4][BLOCK + 8];
	size_t n[4];
};

/* ---- decoding ---- */

/* The three bytes of the last four characters. */
static inline void put_quantum(struct decoded *d, unsigned child, uint32_t bits)
{
	unsigned char *out = d->bytes[child] + d->n[child];
	out[0] = (unsigned char)(bits >> 16);
	out[1] = (unsigned char)(bits >> 8);
	out[2] = (unsigned char)bits;
	d->n[child] += 3;
}

/* Each character ends the four of one alignment. */
static inline void put_value(struct base64 *r, struct decoded *d, unsigned value)
{
	r->bits = r->bits << 6 | value;
	if (++r->n >= 4)
		put_quantum(d, (unsigned)(r->n + r->turn) & 3, r->bits);
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

static void put_chars(struct base64 *r, struct decoded *d, const unsigned char *chars, size_t n)
{
	size_t i = 0;
	while (i < n) {
		for (; r->pads == 0 && r->n >= 4 && n - i >= 4; i += 4) {
			const unsigned char *c = chars + i;
			unsigned first = (unsigned)(r->n + r->turn + 1);
			uint32_t bits = r->bits;
			unsigned a = values[c[0]], b = values[c[1]], e = values[c[2]], f = values[c[3]];
			if ((a | b | e | f) >= PAD)
				break;
			put_quantum(d, first & 3, bits << 6 | a);
			put_quantum(d, (first + 1) & 3, bits << 12 | a << 6 | b);
			put_quantum(d, (first + 2) & 3, bits << 18 | a << 12 | b << 6 | e);
			r->bits = a << 18 | b << 12 | e << 6 | f;
			put_quantum(d, (first + 3) & 3, r->bits);
			r->n += 4;
		}
		if (i < n)
			put_char(r, d, chars[i++]);
	}
}

static void hand_on(struct layer *t, const struct decoded *d)
{
	for (unsigned i = 0; i < 4; i++)
		layer_put(t, CHILD_BASE64 + i, d->bytes[i], d->n[i]);
}

static void decode(struct layer *t, const unsigned char *chars, size_t n)
{
	while (n > 0) {
		struct decoded d;
		size_t some = n < BLOCK ? n : BLOCK;
		memset(d.n, 0, sizeof(d.n));
		put_chars(&t->base64, &d, chars, some);
		hand_on(t, &d);
		chars += some;
		n -= some;
	}
}

/* ---- words ---- */

static bool is_likely(const struct layer *t, const unsigned char bytes[BLOCK])
{
	struct chars c = t->views->classify->chars(bytes);
	return chars_are_likely(&c);
}

/* Long runs are, whatever they are made of: a whole block is in them. */
bool base64_is_likely(const struct layer *t, const struct block *b)
{
	unsigned char border[BLOCK];
	if (~block_now(b, KIND_BASE64) == 0 || is_likely(t, b->bytes))
		return true;
	if (b->before >= BASE64_RUN)
		return is_likely(t, b->bytes - BASE64_RUN);
	size_t n = block_before(t, b, border, BASE64_RUN);
	memcpy(border + n, b->bytes, BLOCK - n);
	return is_likely(t, border);
}

/* Is the run a word or a path, and not base64? */
static bool is_word(const struct layer *t)
{
	const struct base64 *r = &t->base64;
	unsigned char bytes[BASE64_WORD];
	size_t n = (size_t)r->length;
	if (n >= BASE64_WORD)
		return false;
	memcpy(bytes, r->word, n);
	memset(bytes + n, PADDING, sizeof(bytes) - n);
	return !is_likely(t, bytes) && !is_likely(t, bytes + BLOCK - BASE64_RUN) && !is_likely(t, bytes + BLOCK);
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

/* Takes characters of the run: to see whether it is a word, until it is too long for one. */
static void take(struct layer *t, const unsigned char *chars, size_t n)
{
	struct base64 *r = &t->base64;
	if (r->length < BASE64_WORD) {
		size_t have = (size_t)r->length;
		size_t some = n < BASE64_WORD - have ? n : BASE64_WORD - have;
		memcpy(r->word + have, chars, some);
		if (have + some == BASE64_WORD) {
			open_children(t);
			decode(t, r->word, BASE64_WORD);
			decode(t, chars + some, n - some);
		}
	} else {
		decode(t, chars, n);
	}
	r->state = BASE64_CHARS;
	r->length += n;
	r->line += n;
}

static void finish(struct layer *t)
{
	struct base64 *r = &t->base64;
	struct decoded tails = {.n = {0}};
	r->state = BASE64_NONE;
	if (r->length < BASE64_WORD) {
		if (is_word(t))
			return;
		open_children(t);
		decode(t, r->word, (size_t)r->length);
	}
	if (r->pads == 0)
		put_tails(r, &tails);
	hand_on(t, &tails);
	for (unsigned i = 0; i < 4; i++)
		layer_close(t, CHILD_BASE64 + i);
	layer_report(t, VIEW_BASE64, r->start, r->length);
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
