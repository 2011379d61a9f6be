/* Hex: at least twelve bytes as digits, one behind the other or with something between ("41:42", "\x41\x42",
 * "0x41, 0x42", lines of a dump). A run is read from its first digit on and from its second, since a digit may be glued
 * to it. What stands between digits only has to be of the right kind: nothing is gained by being strict about it.
 *
 * Most runs are digests and ids. Short ones are kept until their end, and are only read when there is text in them. */
#include "inspectors/views/views_private.h"

#define LOOK_BACK 64 /* bytes: with more before, a run would have been seen to start earlier */

struct decoded {
	unsigned char bytes[2][BLOCK + LOOK_BACK];
	size_t n[2];
};

/* Of a byte that is a digit. */
static inline unsigned char value_of(unsigned char c)
{
	return (unsigned char)((c & 15) + (c >> 6) * 9);
}

/* May it stand between digits? A line end may be written as JSON does. */
static bool is_gap(unsigned char c, unsigned char last)
{
	static const char gaps[] = " \t\r\n:;,._-\\xX";
	return memchr(gaps, c, sizeof(gaps) - 1) || (last == '\\' && (c == 'n' || c == 'r'));
}

/* Each digit ends a byte of one of the two. */
static void put_digits(struct hex *h, struct decoded *d, const unsigned char *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned child = (unsigned)(h->length + 1) & 1;
		if (h->length++ > 0)
			d->bytes[child][d->n[child]++] = (unsigned char)(h->nibble << 4 | values[i]);
		h->nibble = values[i];
	}
}

static void open_children(struct layer *t)
{
	layer_open(t, CHILD_HEX, t->hex.start);
	layer_open(t, CHILD_HEX + 1, t->hex.start + 1);
}

/* Decodes the first digits, which were kept. */
static void put_begin(struct hex *h, struct decoded *d)
{
	size_t n = (size_t)h->length;
	h->length = 0;
	put_digits(h, d, h->begin, n);
}

/* Up to a block of digits. */
static void take_digits(struct layer *t, struct decoded *d, const unsigned char *bytes, size_t n)
{
	struct hex *h = &t->hex;
	unsigned char values[BLOCK];
	size_t have = h->length < SHORT_RUN ? (size_t)h->length : SHORT_RUN;
	size_t some = n < SHORT_RUN - have ? n : SHORT_RUN - have;
	for (size_t i = 0; i < n; i++)
		values[i] = value_of(bytes[i]);
	memcpy(h->begin + have, values, some);
	h->length += some;
	if (some > 0 && h->length == SHORT_RUN) {
		open_children(t);
		put_begin(h, d);
	}
	put_digits(h, d, values + some, n - some);
	h->gap = 0;
	h->last = '0'; /* whichever it is */
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
	t->hex.zero_held = is_zero && is_last;
	if (is_zero && (is_last || is_prefix(bytes[n])))
		n--;
	take_digits(t, d, bytes, n);
}

/* How many of the bytes, up to a block, belong to the run; less than n: it has ended. hex: which of them are digits. */
static size_t take_bytes(struct layer *t, struct decoded *d, const unsigned char *bytes, size_t n, uint64_t hex)
{
	struct hex *h = &t->hex;
	if (h->zero_held && n > 0 && !is_prefix(bytes[0]))
		take_digits(t, d, (const unsigned char *)"0", 1);
	h->zero_held = false;
	for (size_t i = 0; i < n;) {
		size_t group = ones_low(hex >> i);
		if (group > 0) {
			take_group(t, d, bytes + i, group, i + group == n);
			i += group;
		} else if (is_gap(bytes[i], h->last) && ++h->gap <= HEX_GAP) {
			h->last = bytes[i++];
		} else {
			return i;
		}
	}
	return n;
}

static void hand_on(struct layer *t, const struct decoded *d)
{
	layer_put(t, CHILD_HEX, d->bytes[0], d->n[0]);
	layer_put(t, CHILD_HEX + 1, d->bytes[1], d->n[1]);
}

/* The digits are kept as values. */
static void report(const struct layer *t)
{
	const struct hex *h = &t->hex;
	char digits[RUN_START];
	size_t n = h->length < RUN_START ? (size_t)h->length : RUN_START;
	for (size_t i = 0; i < n; i++)
		digits[i] = "0123456789abcdef"[h->begin[i] & 15];
	layer_report(t, VIEW_HEX, h->start, h->length, slice_of(digits, n));
}

static void finish(struct layer *t)
{
	struct hex *h = &t->hex;
	struct decoded d;
	d.n[0] = d.n[1] = 0;
	h->state = HEX_NONE;
	if (h->zero_held)
		take_digits(t, &d, (const unsigned char *)"0", 1);
	if (h->length < HEX_RUN)
		return;
	if (h->length < SHORT_RUN) {
		put_begin(h, &d);
		if (!has_text(d.bytes[0], d.n[0]) && !has_text(d.bytes[1], d.n[1]))
			return;
		open_children(t);
	}
	hand_on(t, &d);
	layer_close(t, CHILD_HEX);
	layer_close(t, CHILD_HEX + 1);
	report(t);
}

static size_t take(struct layer *t, const unsigned char *bytes, size_t n, uint64_t hex)
{
	struct decoded d;
	d.n[0] = d.n[1] = 0;
	size_t taken = take_bytes(t, &d, bytes, n, hex);
	hand_on(t, &d);
	if (taken < n)
		finish(t);
	return taken;
}

/* How many of the bytes before a digit belong to its run. *hex: which of these are digits. */
static size_t look_back(const unsigned char *bytes, size_t n, uint64_t *hex)
{
	size_t run = 0;
	*hex = 0;
	for (size_t back = 1; back <= n && back - run <= HEX_GAP; back++) {
		unsigned char c = bytes[n - back];
		bool is_digit = ascii_hex(c) >= 0;
		if (is_digit)
			*hex = *hex << (back - run) | 1;
		else if (!is_gap(c, back < n ? bytes[n - back - 1] : 0))
			break;
		run = is_digit ? back : run;
	}
	return run;
}

/* Starts a run with the digit at byte i of the block, and takes what belongs to it from byte `from` on. */
static void start(struct layer *t, const struct block *b, size_t from, size_t i)
{
	unsigned char bytes[LOOK_BACK + BLOCK];
	uint64_t hex;
	size_t n = from == 0 ? block_before(t, b, bytes, LOOK_BACK) : 0;
	memcpy(bytes + n, b->bytes + from, i - from);
	n += i - from;
	size_t known = n < LOOK_BACK ? n : LOOK_BACK;
	size_t run = look_back(bytes + n - known, known, &hex);
	t->hex.state = HEX_DIGITS;
	t->hex.start = b->at + i - run;
	t->hex.length = 0;
	t->hex.gap = 0;
	t->hex.last = 0;
	t->hex.zero_held = false;
	take(t, bytes + n - run, run, hex);
}

/* Do the groups that begin there have gaps between them that may be? Those of escapes ("%41%42", "\u0041") have not. */
static bool has_gap(const struct block *b, uint64_t hex, unsigned at)
{
	unsigned end = at + ones_low(hex >> at);
	if (end >= b->len || !is_gap(b->bytes[end], 0))
		return end >= b->len;
	return end + 1 >= b->len || b->bytes[end + 1] != 'u';
}

/* The first byte from `from` on with which a run may be seen to start, or BLOCK. */
static unsigned find_start(const struct block *b, unsigned from)
{
	uint64_t hex = block_now(b, KIND_HEX) & bits_from(from);
	if (from == 0 && hex & 1 && ones_high(block_last(b, KIND_HEX)) + ones_low(hex) >= HEX_RUN)
		return 0;
	uint64_t runs = runs_of(hex, HEX_RUN);
	unsigned first = runs ? (unsigned)__builtin_ctzll(runs) : BLOCK;
	for (uint64_t groups = hex_starts(hex); groups; groups &= groups - 1) {
		unsigned at = (unsigned)__builtin_ctzll(groups);
		if (at >= first)
			break;
		if (has_gap(b, hex, at))
			return at;
	}
	return first;
}

void hex_block(struct layer *t, const struct block *b)
{
	for (unsigned i = 0; i < b->len;) {
		if (t->hex.state == HEX_NONE) {
			unsigned at = find_start(b, i);
			if (at == BLOCK)
				return;
			start(t, b, i, at);
			i = at;
		}
		if (t->hex.state == HEX_NONE)
			i++; /* what was before has ended on its own */
		else
			i += (unsigned)take(t, b->bytes + i, b->len - i, block_now(b, KIND_HEX) >> i);
	}
}

void hex_end(struct layer *t)
{
	if (t->hex.state != HEX_NONE)
		finish(t);
}
