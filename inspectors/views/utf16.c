/* UTF-16 that is ASCII: printable characters and NUL in turn. Whether the NUL comes before its character or behind it
 * need not be known: the characters are the same, so both byte orders are one text. */
#include "inspectors/views/views_private.h"

static bool is_printable(unsigned char c)
{
	return (c >= 0x20 && c <= 0x7e) || c == '\t' || c == '\n' || c == '\r';
}

static void put(struct layer *t, unsigned char c)
{
	struct utf16 *u = &t->utf16;
	if (u->run == UTF16_RUN)
		layer_put(t, CHILD_UTF16, &c, 1);
	else
		u->first[u->n_first++] = c;
}

/* The byte goes on with the run. */
static void take(struct layer *t, unsigned char c)
{
	struct utf16 *u = &t->utf16;
	if (c)
		put(t, c);
	u->zero = c == 0;
	if (u->run == UTF16_RUN || ++u->run < UTF16_RUN)
		return;
	layer_open(t, CHILD_UTF16, u->start);
	layer_put(t, CHILD_UTF16, u->first, u->n_first);
}

/* The byte does not go on with the run: it may begin the next one. */
static void start(struct layer *t, unsigned char c, uint64_t at)
{
	utf16_end(t);
	t->utf16.n_first = 0;
	t->utf16.start = at;
	if (c == 0 || is_printable(c))
		take(t, c);
}

static void feed(struct layer *t, const unsigned char *bytes, size_t n, uint64_t at)
{
	const struct utf16 *u = &t->utf16;
	for (size_t i = 0; i < n; i++) {
		bool goes_on = u->run > 0 && (u->zero ? is_printable(bytes[i]) : bytes[i] == 0);
		if (goes_on)
			take(t, bytes[i]);
		else
			start(t, bytes[i], at + i);
	}
}

void utf16_block(struct layer *t, const struct block *b)
{
	if (t->utf16.run <= 1) {
		unsigned char before[UTF16_RUN];
		if (!utf16_starts(block_now(b, KIND_ZERO)))
			return;
		size_t n = block_before(t, b, before, sizeof(before));
		t->utf16.run = 0;
		feed(t, before, n, b->at - n);
	}
	feed(t, b->bytes, b->len, b->at);
}

void utf16_end(struct layer *t)
{
	layer_close(t, CHILD_UTF16);
	t->utf16.run = 0;
}
