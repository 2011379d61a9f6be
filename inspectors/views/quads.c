/* Decodes base64 at its four alignments at once, each into a text of its own. */
#include "inspectors/views/views_private.h"

#include <endian.h>

#define PAD 64 /* value of '=' */

/* Of the characters of the alphabet; nothing else is looked up. */
static const unsigned char values[256] = {
	['+'] = 62, ['-'] = 62, ['/'] = 63, ['_'] = 63, ['='] = PAD, ['0'] = 52, 53, 54, 55, 56, 57, 58, 59, 60,
	61,         ['A'] = 0,  1,          2,          3,           4,          5,  6,  7,  8,  9,  10, 11, 12,
	13,         14,         15,         16,         17,          18,         19, 20, 21, 22, 23, 24, 25, ['a'] = 26,
	27,         28,         29,         30,         31,          32,         33, 34, 35, 36, 37, 38, 39, 40,
	41,         42,         43,         44,         45,          46,         47, 48, 49, 50, 51,
};

/* The three bytes of the last four characters, and one more that does not count. */
static inline void put_quantum(unsigned char *out, uint32_t bits)
{
	uint32_t bytes = htobe32(bits << 8);
	memcpy(out, &bytes, sizeof(bytes));
}

/* Each character ends the four of one alignment. */
static inline void put_value(struct quads *q, struct quad_bytes *d, unsigned value)
{
	q->bits = q->bits << 6 | value;
	if (++q->n < 4)
		return;
	unsigned child = (unsigned)(q->n + q->turn) & 3;
	put_quantum(d->bytes[child] + d->n[child], q->bits);
	d->n[child] += 3;
}

/* At '=' or the end: two or three characters that wait for the rest of their four are one byte or two. */
void quads_end(const struct quads *q, struct quad_bytes *d)
{
	for (unsigned skip = 0; skip < 4 && skip < q->n; skip++) {
		unsigned child = (skip + q->turn) & 3;
		unsigned char *out = d->bytes[child] + d->n[child];
		unsigned tail = (unsigned)(q->n - skip) & 3;
		if (tail == 2) {
			out[0] = (unsigned char)(q->bits >> 4);
			d->n[child] += 1;
		} else if (tail == 3) {
			out[0] = (unsigned char)(q->bits >> 10);
			out[1] = (unsigned char)(q->bits >> 2);
			d->n[child] += 2;
		}
	}
}

/* Behind '=' the four alignments begin anew. The child that was right about how many '=' there are goes on with the
 * first, so that base64 put behind base64 stays one text. */
static void begin_anew(struct quads *q)
{
	q->turn = (unsigned)(q->n + q->turn + (q->pads == 1 ? 1 : 2)) & 3;
	q->n = 0;
	q->bits = 0;
	q->pads = 0;
}

static void put_char(struct quads *q, struct quad_bytes *d, unsigned char c)
{
	if (values[c] == PAD) {
		if (q->pads++ == 0)
			quads_end(q, d);
		return;
	}
	if (q->pads > 0)
		begin_anew(q);
	put_value(q, d, values[c]);
}

/* As put_char, for four at a time as long as there is no '='. Returns how many were put. */
static size_t put_fours(struct quads *q, struct quad_bytes *d, const unsigned char *chars, size_t n)
{
	unsigned children[4];
	unsigned char *out[4];
	size_t done = 0;
	for (unsigned i = 0; i < 4; i++) {
		children[i] = (unsigned)(q->n + q->turn + 1 + i) & 3;
		out[i] = d->bytes[children[i]] + d->n[children[i]];
	}
	for (const unsigned char *c = chars; n - done >= 4; c += 4, done += 4) {
		uint32_t one = values[c[0]], two = values[c[1]], three = values[c[2]], four = values[c[3]];
		if ((one | two | three | four) >= PAD)
			break;
		uint32_t now = one << 18 | two << 12 | three << 6 | four;
		put_quantum(out[0] + done / 4 * 3, q->bits << 6 | now >> 18);
		put_quantum(out[1] + done / 4 * 3, q->bits << 12 | now >> 12);
		put_quantum(out[2] + done / 4 * 3, q->bits << 18 | now >> 6);
		put_quantum(out[3] + done / 4 * 3, now);
		q->bits = now;
	}
	for (unsigned i = 0; i < 4; i++)
		d->n[children[i]] += done / 4 * 3;
	q->n += done;
	return done;
}

void quads_put(struct quads *q, struct quad_bytes *d, const unsigned char *chars, size_t n)
{
	for (size_t i = 0; i < n;) {
		if (q->pads == 0 && q->n >= 4)
			i += put_fours(q, d, chars + i, n - i);
		if (i < n)
			put_char(q, d, chars[i++]);
	}
}
