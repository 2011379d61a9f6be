/* Hex: at least twelve bytes as digits, one behind the other or with something between ("41:42", "\x41\x42", "4142 4344",
 * "0x41, 0x42", lists of strings, lines of a dump). A run is read from its first digit on and from its second, since a
 * digit may be glued to it. What stands between digits only has to be of the right kind: nothing is gained by being
 * strict about it.
 *
 * Most runs are digests and ids. Short ones are kept until their end, and are only read when there is text in them; so
 * are those of any length that consist of short pieces, as lists of ids and numbers do. */
#include "inspectors/views/views_private.h"

#define HEX_LOOK_BACK 64 /* bytes: with more before, a run would have been seen to start earlier */
#define PLAIN_GAP 8      /* bytes of a gap that does not end what is reported */
#define LETTERS 16       /* at least one letter in so many digits, unless there are no gaps */

struct decoded {
	unsigned char bytes[2][SHORT_RUN + 1]; /* one more is written than counts */
	size_t n[2];
};

/* Of a byte that is a digit. */
static inline unsigned char value_of(unsigned char c)
{
	return (unsigned char)((c & 15) + (c >> 6) * 9);
}

static inline bool is_letter(unsigned char digit)
{
	return digit >> 6;
}

/* ---- decoding ---- */

/* Each digit but the first ends a byte, of the two texts in turn. */
static void put_digits(struct hex *h, struct decoded *d, const unsigned char *digits, size_t n)
{
	if (n > 0 && h->n_put == 0) {
		h->nibble = value_of(*digits++);
		h->n_put++;
		n--;
	}
	unsigned even = (unsigned)(h->n_put + 1) & 1;
	unsigned char *out = d->bytes[even] + d->n[even], *other = d->bytes[1 - even] + d->n[1 - even];
	unsigned last = h->nibble;
	for (size_t i = 0; i < n; i += 2) {
		unsigned one = value_of(digits[i]), two = i + 1 < n ? value_of(digits[i + 1]) : 0;
		out[i / 2] = (unsigned char)(last << 4 | one);
		other[i / 2] = (unsigned char)(one << 4 | two);
		last = i + 1 < n ? two : one;
	}
	d->n[even] += (n + 1) / 2;
	d->n[1 - even] += n / 2;
	h->nibble = (unsigned char)last;
	h->n_put += n;
}

static void hand_on(struct layer *t, struct decoded *d)
{
	layer_put(t, CHILD_HEX, d->bytes[0], d->n[0]);
	layer_put(t, CHILD_HEX + 1, d->bytes[1], d->n[1]);
	d->n[0] = d->n[1] = 0;
}

/* Decodes the last digits, from the first of them on. */
static void put_kept(struct hex *h, struct decoded *d)
{
	unsigned char digits[SHORT_RUN];
	h->n_put = 0;
	put_digits(h, d, digits, run_last(&h->run, SHORT_RUN, digits));
}

static void open_run(struct layer *t, struct decoded *d)
{
	layer_open(t, CHILD_HEX, t->hex.run.start);
	layer_open(t, CHILD_HEX + 1, t->hex.run.start + 1);
	t->hex.run.state = RUN_OPEN;
	put_kept(&t->hex, d);
}

/* ---- is it worth reading? ---- */

static bool last_has_text(const struct run *r, size_t n, unsigned least)
{
	unsigned char digits[SHORT_RUN];
	struct hex h = {.n_put = 0};
	struct decoded d;
	d.n[0] = d.n[1] = 0;
	put_digits(&h, &d, digits, run_last(r, n, digits));
	return has_text(d.bytes[0], d.n[0], least) || has_text(d.bytes[1], d.n[1], least);
}

/* Numbers have none; hex of text has many. */
static bool last_has_letters(const struct run *r)
{
	unsigned char digits[SHORT_RUN];
	size_t n = run_last(r, SHORT_RUN, digits), letters = 0;
	for (size_t i = 0; i < n; i++)
		letters += is_letter(digits[i]);
	return letters * LETTERS >= n;
}

/* In what has no loose gaps; or over gaps, where numbers and ids are more frequent. */
static bool stretch_has_text(const struct run *r)
{
	return r->stretch >= HEX_RUN && last_has_text(r, (size_t)r->stretch, TEXT_SHORT);
}

static bool run_has_text(const struct hex *h)
{
	const struct run *r = &h->run;
	if (!h->is_loose && stretch_has_text(r))
		return true;
	return (h->is_loose || run_is_joined(r, 2)) && last_has_letters(r) && last_has_text(r, SHORT_RUN, TEXT_LONG);
}

/* Opens a run that is kept if it is worth it. One that was found by its gaps is not kept on, since lists are long. */
static void judge(struct layer *t, struct decoded *d)
{
	struct hex *h = &t->hex;
	struct run *r = &h->run;
	if ((!h->is_loose && r->stretch >= SHORT_RUN) || run_has_text(h))
		open_run(t, d);
	else if (h->is_loose)
		r->state = RUN_NONE;
	r->judged = r->length;
	r->began = t->views->root->at;
}

/* ---- runs ---- */

static void start_run(struct layer *t, uint64_t at)
{
	run_start(&t->hex.run, at, t->views->root->at);
	t->hex.zero_held = false;
}

static void report(const struct layer *t)
{
	const struct run *r = &t->hex.run;
	if (r->state == RUN_OPEN && !t->hex.is_loose && r->stretch >= HEX_RUN)
		run_report(t, r, VIEW_HEX);
}

static void finish(struct layer *t);

/* The texts may be over, and may go on. */
static void repeat(struct layer *t, struct decoded *d)
{
	hand_on(t, d);
	d->bytes[0][d->n[0]++] = '\n';
	d->bytes[1][d->n[1]++] = '\n';
	put_kept(&t->hex, d);
}

/* Digits come behind a gap with quotes or the like: if there are enough before it, they may be another value. */
static void cross_gap(struct layer *t, struct decoded *d)
{
	struct run *r = &t->hex.run;
	bool is_value = r->stretch >= HEX_RUN;
	if (is_value && r->state == RUN_KEPT)
		judge(t, d);
	if (run_cross_gap(r) || !is_value || r->state != RUN_OPEN) {
		report(t);
	} else if (r->stretch >= SHORT_RUN || stretch_has_text(r)) {
		report(t);
		repeat(t, d);
	} else {
		hand_on(t, d);
		finish(t);
		start_run(t, r->at);
	}
	run_start_stretch(r);
}

static void end_gap(struct layer *t, struct decoded *d)
{
	struct run *r = &t->hex.run;
	if (r->gap_is_loose || r->gap > PLAIN_GAP)
		cross_gap(t, d);
	r->gap = 0;
	r->gap_sum = 0;
}

/* Up to a block of digits. */
static void take_digits(struct layer *t, struct decoded *d, const unsigned char *digits, size_t n)
{
	struct hex *h = &t->hex;
	struct run *r = &h->run;
	if (r->gap > 0)
		end_gap(t, d);
	while (n > 0 && r->state == RUN_KEPT) {
		size_t some = run_until_due(r, n);
		run_take(r, digits, some);
		if (run_is_due(r))
			judge(t, d);
		digits += some;
		n -= some;
	}
	if (n > 0 && r->state == RUN_OPEN) {
		run_take(r, digits, n);
		put_digits(h, d, digits, n);
	}
}

/* Is a '0' the one of "0x"? The next byte says it. */
static bool is_prefix(unsigned char next)
{
	return next == 'x' || next == 'X';
}

/* Takes digits that stand side by side, n of them, with what is behind them: a '0' before an 'x' is no digit, and one at
 * the end of what has come waits for the next byte. */
static void take_group(struct layer *t, struct decoded *d, const unsigned char *bytes, size_t n, bool is_last)
{
	bool is_zero = bytes[n - 1] == '0';
	if (is_zero && (is_last || is_prefix(bytes[n])))
		n--;
	if (n > 0)
		take_digits(t, d, bytes, n);
	t->hex.zero_held = is_zero && is_last;
}

/* A '0' that was held back. */
static void take_zero(struct layer *t, struct decoded *d, bool is_of_prefix)
{
	bool is_digit = t->hex.zero_held && !is_of_prefix;
	t->hex.zero_held = false;
	if (is_digit)
		take_digits(t, d, (const unsigned char *)"0", 1);
}

/* A byte that is no digit. False: the run ends before it. */
static bool take_gap(struct run *r, unsigned char c)
{
	if (!hex_is_gap(c, r->gap > 0 ? r->last : 0) || !run_take_gap(r, c))
		return false;
	r->gap_is_loose |= c == '"' || c == '\'' || c == '+';
	return true;
}

/* How many of the bytes, up to a block, belong to the run; less than n, or the run is none any more: it has ended. hex:
 * which of them are digits. */
static size_t take_bytes(struct layer *t, struct decoded *d, const unsigned char *bytes, size_t n, uint64_t hex)
{
	struct hex *h = &t->hex;
	uint64_t at = h->run.at;
	if (n > 0)
		take_zero(t, d, is_prefix(bytes[0]));
	for (size_t i = 0; i < n;) {
		size_t group = ones_low(hex >> i);
		uint64_t before = h->run.length;
		h->run.at = at + i;
		if (group > 0) {
			take_group(t, d, bytes + i, group, i + group == n);
			if (h->run.state == RUN_NONE)
				return i + (size_t)(h->run.length - before);
			i += group;
		} else if (take_gap(&h->run, bytes[i])) {
			i++;
		} else {
			return i;
		}
	}
	return n;
}

static void finish(struct layer *t)
{
	struct run *r = &t->hex.run;
	struct decoded d;
	d.n[0] = d.n[1] = 0;
	take_zero(t, &d, false);
	if (r->state == RUN_KEPT && r->length - r->judged >= HEX_RUN)
		judge(t, &d);
	if (r->state == RUN_OPEN) {
		hand_on(t, &d);
		layer_close(t, CHILD_HEX);
		layer_close(t, CHILD_HEX + 1);
		report(t);
	}
	r->state = RUN_NONE;
}

/* Takes bytes that stand at that offset; returns as take_bytes does. */
static size_t take(struct layer *t, uint64_t at, const unsigned char *bytes, size_t n, uint64_t hex)
{
	struct decoded d;
	d.n[0] = d.n[1] = 0;
	t->hex.run.at = at;
	size_t taken = take_bytes(t, &d, bytes, n, hex);
	hand_on(t, &d);
	if (taken < n)
		finish(t);
	return taken;
}

/* ---- where runs start ---- */

/* Starts a run with the digit at byte i of the block, and takes what belongs to it from byte `from` on; or, if that is
 * the first and no run has ended before it, from the block before on. */
static void start(struct layer *t, const struct block *b, size_t from, size_t i, bool is_first)
{
	unsigned char bytes[HEX_LOOK_BACK + BLOCK];
	uint64_t hex;
	size_t n = is_first ? block_before(t, b, bytes, HEX_LOOK_BACK) : 0;
	memcpy(bytes + n, b->bytes + from, i - from);
	n += i - from;
	size_t known = n < HEX_LOOK_BACK ? n : HEX_LOOK_BACK;
	size_t run = hex_look_back(bytes + n - known, known, &hex);
	size_t done = 0, some;
	do {
		start_run(t, b->at + i - run + done);
		some = take(t, b->at + i - run + done, bytes + n - run + done, run - done, hex >> done);
		done += some;
	} while (t->hex.run.state == RUN_NONE && some > 0 && done < run);
}

/* A run that was found by its gaps may come to what is plainly one, and ends where there is no text any more. */
static void review(struct layer *t, const struct block *b)
{
	struct run *r = &t->hex.run;
	if (hex_find_plain(b, 0) < BLOCK) {
		t->hex.is_loose = false;
		r->at = b->at;
		run_start_stretch(r);
	} else if (r->state == RUN_OPEN && r->length - r->judged >= SHORT_RUN) {
		r->judged = r->length;
		if (!last_has_text(r, SHORT_RUN, TEXT_SHORT))
			finish(t);
	}
}

void hex_block(struct layer *t, const struct block *b)
{
	struct run *r = &t->hex.run;
	if (r->state == RUN_NONE && !block_stretches(b) &&
	    !hex_run_starts(block_now(b, KIND_HEX), block_last(b, KIND_HEX)))
		return;
	bool is_first = r->state == RUN_NONE;
	if (!is_first && t->hex.is_loose)
		review(t, b);
	for (unsigned i = 0; i < b->len;) {
		if (r->state == RUN_NONE) {
			unsigned at = hex_find(t, b, i, &t->hex.is_loose);
			if (at == BLOCK)
				return;
			start(t, b, i, at, is_first);
			is_first = false;
			i = at;
		}
		if (r->state == RUN_NONE)
			i++; /* what was before has ended on its own */
		else
			i += (unsigned)take(t, b->at + i, b->bytes + i, b->len - i, block_now(b, KIND_HEX) >> i);
	}
}

void hex_end(struct layer *t)
{
	if (t->hex.run.state != RUN_NONE)
		finish(t);
}
