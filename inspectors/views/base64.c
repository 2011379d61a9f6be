/* Base64 and base64url, with '=' or without. What stands before the encoded text may be made of the same characters
 * ("data/QUtJQ..."), so a run is decoded from each of its first four characters on, into four texts. Between its pieces
 * there may be line ends with indentation, also as JSON writes them, quotes, commas and a plus.
 *
 * Words, paths and numbers are runs too, and far more of them. So short runs are kept until their end, and are only read
 * when there is text in them at some alignment; most are not even looked at, by chars_are_likely(). */
#include "inspectors/views/views_private.h"

#define BREAKS 2 /* line ends in a row that do not end what is reported: CR and LF */
#define PIECE 16 /* characters that a piece has to have when something may go on behind it */

static void hand_on(struct layer *t, const struct quad_bytes *d)
{
	for (unsigned i = 0; i < 4; i++)
		layer_put(t, CHILD_BASE64 + i, d->bytes[i], d->n[i]);
}

/* Up to SHORT_RUN characters. */
static void decode(struct layer *t, const unsigned char *chars, size_t n)
{
	struct quad_bytes d;
	memset(d.n, 0, sizeof(d.n));
	quads_put(&t->base64.quads, &d, chars, n);
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

/* ---- is there text in it? ---- */

/* In the last n characters of the run. */
static bool last_has_text(const struct run *r, size_t n, unsigned least)
{
	unsigned char chars[SHORT_RUN];
	struct quads q = {0};
	struct quad_bytes d;
	memset(d.n, 0, sizeof(d.n));
	quads_put(&q, &d, chars, run_last(r, n, chars));
	for (unsigned i = 0; i < 4; i++)
		if (has_text(d.bytes[i], d.n[i], least))
			return true;
	return false;
}

/* Of a run that is kept: in what has no loose gaps. */
static bool stretch_has_text(const struct run *r)
{
	return r->stretch >= PIECE && last_has_text(r, (size_t)r->stretch, TEXT_SHORT);
}

/* In that, or over the gaps. */
static bool run_has_text(const struct run *r)
{
	return stretch_has_text(r) || (run_is_joined(r, 1) && last_has_text(r, SHORT_RUN, TEXT_LONG));
}

/* ---- runs ---- */

static void start(struct layer *t, uint64_t at)
{
	run_start(&t->base64.run, at, t->views->root->at);
	t->base64.held = 0;
}

/* Decodes the last characters, from the first of them on. */
static void decode_kept(struct layer *t)
{
	unsigned char chars[SHORT_RUN];
	t->base64.quads = (struct quads){0};
	decode(t, chars, run_last(&t->base64.run, SHORT_RUN, chars));
}

static void open_run(struct layer *t)
{
	for (unsigned i = 0; i < 4; i++)
		layer_open(t, CHILD_BASE64 + i, t->base64.run.start + i);
	t->base64.run.state = RUN_OPEN;
	decode_kept(t);
}

/* Opens a run that is kept if it is worth it. */
static void judge(struct layer *t, bool is_worth)
{
	struct run *r = &t->base64.run;
	if (is_worth)
		open_run(t);
	r->judged = r->length;
	r->began = t->views->root->at;
}

/* The texts end here: bytes that wait for others are put. */
static void put_end(struct layer *t, const char *last)
{
	struct quad_bytes d;
	memset(d.n, 0, sizeof(d.n));
	if (t->base64.quads.pads == 0)
		quads_end(&t->base64.quads, &d);
	for (unsigned i = 0; i < 4 && *last; i++)
		d.bytes[i][d.n[i]++] = (unsigned char)*last;
	hand_on(t, &d);
}

static void report(const struct layer *t)
{
	const struct run *r = &t->base64.run;
	if (r->state == RUN_OPEN && r->stretch >= BASE64_RUN)
		run_report(t, r, VIEW_BASE64);
}

static void finish(struct layer *t);

/* Another piece comes: what is before the gap may be over, and may go on with it. */
static void cross_gap(struct layer *t)
{
	struct run *r = &t->base64.run;
	bool is_loose = r->gap_is_loose;
	if (r->state == RUN_KEPT && (is_loose || r->last_piece == 0))
		judge(t, stretch_has_text(r));
	bool is_alike = run_cross_gap(r) || r->state != RUN_OPEN;
	if (!is_alike && is_loose && r->stretch < SHORT_RUN && !stretch_has_text(r)) {
		finish(t);
		start(t, r->at);
		return;
	}
	if (!is_alike) {
		put_end(t, "\n");
		decode_kept(t);
	}
	if (is_loose) {
		report(t);
		run_start_stretch(r);
	}
}

/* Takes characters of the run, up to a block. */
static void take(struct layer *t, const unsigned char *chars, size_t n)
{
	struct run *r = &t->base64.run;
	if (n > 0 && r->gap > 0)
		cross_gap(t);
	while (n > 0 && r->state == RUN_KEPT) {
		size_t some = run_until_due(r, n);
		run_take(r, chars, some);
		if (run_is_due(r))
			judge(t, r->stretch >= SHORT_RUN || run_has_text(r));
		chars += some;
		n -= some;
	}
	if (n > 0) {
		run_count(r, chars, n);
		decode(t, chars, n);
	}
}

static void finish(struct layer *t)
{
	struct run *r = &t->base64.run;
	t->base64.held = 0;
	if (r->state == RUN_KEPT && r->length - r->judged >= PIECE)
		judge(t, run_has_text(r));
	if (r->state == RUN_OPEN) {
		put_end(t, "");
		for (unsigned i = 0; i < 4; i++)
			layer_close(t, CHILD_BASE64 + i);
		report(t);
	}
	r->state = RUN_NONE;
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

/* ---- gaps ---- */

/* Does a character of the alphabet belong to the gap: of "\n" behind its backslash, or a plus outside of quotes? */
static bool is_in_gap(const struct run *r, unsigned char c)
{
	return r->gap > 0 && (r->last == '\\' || (c == '+' && r->quotes % 2 == 1));
}

/* A byte between pieces. False: the run ends before it. */
static bool take_gap(struct run *r, unsigned char c)
{
	bool is_escaped = r->gap > 0 && r->last == '\\';
	if (r->gap == 0 && r->piece < PIECE)
		return false;
	if (c == '\n' || c == '\r' || (is_escaped && (c == 'n' || c == 'r')))
		r->breaks++;
	else if (c == '"' || c == '\'')
		r->quotes++;
	else if (c != '\\' && !(is_escaped ? c == 't' : memchr(" \t,+", c, 4) != NULL))
		return false;
	else
		r->gap_is_loose |= c != '\\';
	r->commas += c == ',';
	r->gap_is_loose |= r->quotes > 0 || r->breaks > BREAKS;
	return run_take_gap(r, c);
}

/* Keeps the end of the piece that ends before byte i of the block. */
static void keep_piece(struct layer *t, const struct block *b, unsigned i)
{
	struct run *r = &t->base64.run;
	unsigned char chars[SHORT_RUN];
	size_t n = r->piece < SHORT_RUN ? (size_t)r->piece : SHORT_RUN;
	size_t near = n < i ? n : i;
	size_t far = block_before(t, b, chars, n - near);
	memcpy(chars + far, b->bytes + i - near, near);
	run_keep(r, chars, far + near);
}

/* ---- what comes behind a gap ---- */

/* Does it belong to the run? Held: the next block says it. */
enum fate { FATE_TAKEN, FATE_HELD, FATE_OTHER };

/* Is a piece base64 rather than a word? It has n characters from byte i of the block on, behind those that are held. */
static bool is_likely_piece(const struct layer *t, const struct block *b, unsigned i, unsigned n)
{
	unsigned char bytes[BLOCK];
	size_t held = block_before(t, b, bytes, t->base64.held);
	memcpy(bytes + held, b->bytes + i, n < BLOCK - held ? n : BLOCK - held);
	struct chars c = t->views->classify->chars(bytes);
	uint64_t piece = ~bits_from((unsigned)held + n < BLOCK ? (unsigned)held + n : BLOCK);
	c.base64 &= piece;
	c.first &= piece;
	c.upper &= piece;
	c.lower &= piece;
	c.digit &= piece;
	return chars_are_likely(&c);
}

/* The next word of a list is no last piece, unless the list was one of pieces. */
static bool may_be_short(const struct run *r)
{
	return r->commas == 0 || r->gap_sum == r->last_gap_sum;
}

static enum fate fate_of(const struct layer *t, const struct block *b, unsigned i, unsigned n)
{
	const struct run *r = &t->base64.run;
	unsigned length = t->base64.held + n;
	if (!r->gap_is_loose)
		return FATE_TAKEN;
	if (r->quotes % 2 == 1 || r->kept[(r->length - 1) % SHORT_RUN] == '=')
		return FATE_OTHER;
	if (length >= PIECE)
		return is_likely_piece(t, b, i, n) ? FATE_TAKEN : FATE_OTHER;
	if (i + n == BLOCK)
		return FATE_HELD;
	return may_be_short(r) ? FATE_TAKEN : FATE_OTHER;
}

/* Takes n characters at byte i of the block, behind those that are held. */
static void take_piece(struct layer *t, const struct block *b, unsigned i, unsigned n)
{
	unsigned char held[PIECE];
	t->base64.run.at = b->at + i - t->base64.held;
	if (t->base64.held > 0)
		take(t, held, block_before(t, b, held, t->base64.held));
	t->base64.held = 0;
	take(t, b->bytes + i, n);
}

void base64_block(struct layer *t, const struct block *b)
{
	struct run *r = &t->base64.run;
	for (unsigned i = 0; i < b->len;) {
		if (r->state == RUN_NONE && !find_start(t, b, &i))
			return;
		unsigned n = ones_low(block_now(b, KIND_BASE64) >> i);
		if (n > 0 && r->gap == 0) {
			take(t, b->bytes + i, n);
			i += n;
			continue;
		}
		bool is_piece = t->base64.held > 0 || (n > 0 && !is_in_gap(r, b->bytes[i]));
		enum fate fate = is_piece ? fate_of(t, b, i, n) : FATE_OTHER;
		if (fate == FATE_HELD) {
			t->base64.held = n;
			return;
		}
		if (fate == FATE_TAKEN) {
			take_piece(t, b, i, n);
			i += n;
		} else if (!is_piece && take_gap(r, b->bytes[i])) {
			if (r->gap == 1 && r->state == RUN_OPEN)
				keep_piece(t, b, i);
			i++;
		} else {
			finish(t);
		}
	}
}

void base64_end(struct layer *t)
{
	struct run *r = &t->base64.run;
	if (r->state == RUN_NONE)
		return;
	if (t->base64.held > 0 && may_be_short(r))
		take(t, t->history + sizeof(t->history) - t->base64.held, t->base64.held);
	finish(t);
}
