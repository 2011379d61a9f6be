/* Where hex starts. Plainly: at twelve bytes of digits without gaps, or at six groups of digits at one distance. Otherwise
 * where digits stand close together, with whatever gaps, and look like text: ids, digests, dates and numbers do so too. */
#include "inspectors/views/views_private.h"

#define STRETCH 24 /* bytes that hex_stretches() looks for; ... */
#define BEFORE 16  /* ... as many of them may lie in the block before */

/* May it stand between digits? A line end may be written as JSON does. */
bool hex_is_gap(unsigned char c, unsigned char last)
{
	static const bool gaps[256] = {
		[' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true, [':'] = true,  [';'] = true,
		[','] = true, ['.'] = true,  ['_'] = true,  ['-'] = true,  ['\\'] = true, ['x'] = true,
		['X'] = true, ['"'] = true,  ['\''] = true, ['+'] = true,
	};
	return gaps[c] || (last == '\\' && (c == 'n' || c == 'r' || c == 't'));
}

/* How many of the bytes before a digit belong to its run. *hex: which of these are digits. */
size_t hex_look_back(const unsigned char *bytes, size_t n, uint64_t *hex)
{
	size_t run = 0;
	*hex = 0;
	for (size_t back = 1; back <= n && back - run <= RUN_GAP; back++) {
		unsigned char c = bytes[n - back];
		bool is_digit = ascii_hex(c) >= 0;
		if (is_digit)
			*hex = *hex << (back - run) | 1;
		else if (!hex_is_gap(c, back < n ? bytes[n - back - 1] : 0))
			break;
		run = is_digit ? back : run;
	}
	return run;
}

/* Do the groups that begin there have gaps between them that may be? Those of escapes ("%41%42", "\u0041") have not. */
static bool has_gap(const struct block *b, uint64_t hex, unsigned at)
{
	unsigned end = at + ones_low(hex >> at);
	if (end >= b->len || !hex_is_gap(b->bytes[end], 0))
		return end >= b->len;
	return end + 1 >= b->len || b->bytes[end + 1] != 'u';
}

/* The first byte from `from` on with which a run may be seen to start, or BLOCK. */
unsigned hex_find_plain(const struct block *b, unsigned from)
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

/* The digits of the block, but for those of "0x"; and of the block before it. */
static uint64_t digits_now(const struct block *b)
{
	return block_now(b, KIND_HEX) & ~(block_now(b, KIND_ESCAPE) >> 1);
}

static uint64_t digits_last(const struct block *b)
{
	return block_last(b, KIND_HEX) & ~(block_last(b, KIND_ESCAPE) >> 1);
}

/* What the digits from that byte of the block on are, or those over the border to it when only there some stand close
 * together. Returns which bytes they are. */
static uint64_t look(const struct layer *t, const struct block *b, unsigned from, struct digits *d)
{
	if (from > 0 || block_stretches(b) & bits_from(BEFORE)) {
		*d = t->views->classify->digits(b->bytes);
		return digits_now(b) & bits_from(from);
	}
	unsigned char bytes[BLOCK] = {0};
	size_t n = block_before(t, b, bytes, BEFORE);
	memcpy(bytes + BEFORE, b->bytes, BLOCK - BEFORE);
	*d = t->views->classify->digits(bytes);
	return n == BEFORE ? digits_now(b) << BEFORE | digits_last(b) >> (BLOCK - BEFORE) : 0;
}

/* As hex_find_plain, for digits of which only is known that they stand close together. */
static unsigned find_loose_start(const struct layer *t, const struct block *b, unsigned from)
{
	struct digits d;
	uint64_t pairs = block_now(b, KIND_HEX) & block_now(b, KIND_HEX) >> 1 & bits_from(from);
	if (!pairs || !block_stretches(b))
		return BLOCK;
	uint64_t hex = look(t, b, from, &d);
	return digits_are_likely(&d, hex) ? (unsigned)__builtin_ctzll(pairs) : BLOCK;
}

bool hex_is_likely(const struct layer *t, const struct block *b)
{
	struct digits d;
	uint64_t hex = look(t, b, 0, &d);
	return hex & d.high && (hex_find_plain(b, 0) < BLOCK || digits_are_likely(&d, hex));
}

/* Where a run starts, or BLOCK. What belongs to a run that is plainly one is found from there on backwards. */
unsigned hex_find(const struct layer *t, const struct block *b, unsigned from, bool *is_loose)
{
	unsigned at = hex_find_plain(b, from), loose = find_loose_start(t, b, from);
	*is_loose = loose < BLOCK && (at == BLOCK || loose + STRETCH <= at);
	return *is_loose ? loose : at;
}
