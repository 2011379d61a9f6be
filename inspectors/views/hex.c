/* Hex: at least twelve bytes as digits, one behind the other or with something between ("41:42", "\x41\x42",
 * "0x41, 0x42", lines of a dump). A run is read from its first digit on and from its second, since a digit may be glued
 * to it. What stands between digits only has to be of the right kind: nothing is gained by being strict about it. */
#include "inspectors/views/views_private.h"

#define LOOK_BACK 128 /* bytes: in so many before, a run would have been seen */

struct decoded {
	unsigned char bytes[2][BLOCK + LOOK_BACK];
	size_t n[2];
};

static bool is_gap(unsigned char c)
{
	static const char gaps[] = " \t\r\n:;,._-\\xX";
	return c != 0 && memchr(gaps, c, sizeof(gaps) - 1);
}

/* Each digit ends a byte of one of the two. */
static inline void put_digit(struct hex *h, struct decoded *d, unsigned value)
{
	unsigned child = (unsigned)(h->length + 1) & 1;
	if (h->length > 0)
		d->bytes[child][d->n[child]++] = (unsigned char)((unsigned)h->nibble << 4 | value);
	h->nibble = (unsigned char)value;
	h->length++;
}

/* As many digits as make a run: now it is one. */
static void open_children(struct layer *t, struct decoded *d)
{
	struct hex *h = &t->hex;
	layer_open(t, CHILD_HEX, h->start);
	layer_open(t, CHILD_HEX + 1, h->start + 1);
	h->length = 0;
	for (unsigned i = 0; i < HEX_RUN; i++)
		put_digit(h, d, h->first[i]);
}

static void take_digit(struct layer *t, struct decoded *d, unsigned value)
{
	struct hex *h = &t->hex;
	if (h->length >= HEX_RUN) {
		put_digit(h, d, value);
		return;
	}
	h->first[h->length++] = (unsigned char)value;
	if (h->length == HEX_RUN)
		open_children(t, d);
}

/* Is the '0' that was held back the one of "0x"? If not, it is a digit. */
static bool take_held(struct layer *t, struct decoded *d, unsigned char c)
{
	t->hex.zero_held = false;
	if (c == 'x' || c == 'X')
		return true;
	take_digit(t, d, 0);
	return false;
}

static bool take_gap(struct hex *h, unsigned char c)
{
	bool is_line_end = h->last == '\\' && (c == 'n' || c == 'r');
	return (is_line_end || is_gap(c)) && ++h->gap <= HEX_GAP;
}

/* How many of the bytes belong to the run; less than n: it has ended. */
static size_t take_bytes(struct layer *t, struct decoded *d, const unsigned char *bytes, size_t n)
{
	struct hex *h = &t->hex;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = bytes[i];
		int value = ascii_hex(c);
		bool is_prefix = h->zero_held && take_held(t, d, c);
		if (value > 0)
			take_digit(t, d, (unsigned)value);
		else if (value == 0)
			h->zero_held = true;
		else if (!is_prefix && !take_gap(h, c))
			return i;
		if (value >= 0)
			h->gap = 0;
		h->last = c;
	}
	return n;
}

static void hand_on(struct layer *t, const struct decoded *d)
{
	layer_put(t, CHILD_HEX, d->bytes[0], d->n[0]);
	layer_put(t, CHILD_HEX + 1, d->bytes[1], d->n[1]);
}

static void finish(struct layer *t)
{
	struct hex *h = &t->hex;
	struct decoded d;
	d.n[0] = d.n[1] = 0;
	if (h->zero_held)
		take_held(t, &d, 0);
	hand_on(t, &d);
	layer_close(t, CHILD_HEX);
	layer_close(t, CHILD_HEX + 1);
	h->state = HEX_NONE;
	if (h->length >= HEX_RUN)
		layer_report(t, VIEW_HEX, h->start, h->length);
}

static size_t take(struct layer *t, const unsigned char *bytes, size_t n)
{
	struct decoded d;
	d.n[0] = d.n[1] = 0;
	size_t taken = take_bytes(t, &d, bytes, n);
	hand_on(t, &d);
	if (taken < n)
		finish(t);
	return taken;
}

/* How many of the bytes before a digit belong to its run. */
static size_t look_back(const unsigned char *bytes, size_t n)
{
	size_t run = 0;
	for (size_t back = 1; back <= n && back - run <= HEX_GAP; back++) {
		unsigned char c = bytes[n - back];
		if (ascii_hex(c) >= 0)
			run = back;
		else if (!is_gap(c))
			break;
	}
	return run;
}

/* Starts a run with the digit at byte i of the block, and takes what belongs to it from byte `from` on. */
static void start(struct layer *t, const struct block *b, size_t from, size_t i)
{
	unsigned char bytes[LOOK_BACK + BLOCK];
	size_t n = from == 0 ? block_before(t, b, bytes, LOOK_BACK) : 0;
	memcpy(bytes + n, b->bytes + from, i - from);
	n += i - from;
	size_t run = look_back(bytes, n);
	t->hex = (struct hex){.state = HEX_DIGITS, .start = b->at + i - run};
	take(t, bytes + n - run, run);
}

/* The first byte from `from` on with which a run may be seen to start, or BLOCK. */
static unsigned find_start(const struct block *b, unsigned from)
{
	uint64_t hex = block_now(b, KIND_HEX) & bits_from(from);
	uint64_t found = hex_starts(hex) | runs_of(hex, HEX_RUN);
	if (from == 0 && hex & 1 && ones_high(block_last(b, KIND_HEX)) + ones_low(hex) >= HEX_RUN)
		return 0;
	return found ? (unsigned)__builtin_ctzll(found) : BLOCK;
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
			i += (unsigned)take(t, b->bytes + i, b->len - i);
	}
}

void hex_end(struct layer *t)
{
	if (t->hex.state != HEX_NONE)
		finish(t);
}
