/* Blocks of 64 bytes in which a long word is, or ends, are widened and joined to stretches. */
#include "inspectors/scan/near.h"

#define LEAD (SCAN_WORD + SCAN_AROUND) /* bytes before the block in which a word ends */

struct sink {
	near_stretch *stretch;
	void *arg;
};

/* Hands out what there is of the stretch under way, up to `end`. */
static bool hand_out(struct near *n, uint64_t end, const struct sink *sink)
{
	uint64_t from = n->done, to = n->until < end ? n->until : end;
	if (to <= from)
		return true;
	n->done = to;
	return sink->stretch(sink->arg, from, to);
}

/* There is a word in the block at that place of the text. */
static bool touch(struct near *n, uint64_t block, const struct sink *sink)
{
	uint64_t from = block > LEAD ? block - LEAD : 0;
	if (from > n->until + SCAN_GAP) {
		if (!hand_out(n, n->until, sink))
			return false;
		if (from > n->done)
			n->done = from;
	}
	n->until = block + BLOCK + SCAN_AROUND;
	return true;
}

static bool touch_blocks(struct near *n, const struct masks *m, size_t n_blocks, uint64_t at, const struct sink *sink)
{
	for (size_t i = 0; i < n_blocks; i++)
		if (m->runs[i] && !touch(n, at + i * BLOCK, sink))
			return false;
	return true;
}

/* What is left of a piece that is no whole block. */
static bool feed_rest(struct near *n, struct slice rest, struct masks *m, uint64_t at, const struct sink *sink)
{
	unsigned char block[BLOCK] = {0};
	unsigned len = (unsigned)rest.len;
	if (len == 0)
		return true;
	memcpy(block, rest.ptr, len);
	classify_best()->words(block, 1, m);
	n->last = m->of[KIND_BASE64][1] << (BLOCK - len) | m->of[KIND_BASE64][0] >> len;
	return touch_blocks(n, m, 1, at, sink);
}

bool near_feed(struct near *n, struct slice piece, near_stretch *stretch, void *arg)
{
	struct sink sink = {stretch, arg};
	struct masks m = {0};
	uint64_t at = n->pos;
	m.of[KIND_BASE64][0] = n->last;
	for (size_t blocks; (blocks = piece.len / BLOCK) > 0;) {
		if (blocks > BLOCKS)
			blocks = BLOCKS;
		classify_best()->words((const unsigned char *)piece.ptr, blocks, &m);
		if (!touch_blocks(n, &m, blocks, at, &sink))
			return false;
		n->last = m.of[KIND_BASE64][0] = m.of[KIND_BASE64][blocks];
		at += blocks * BLOCK;
		piece = slice_from(piece, blocks * BLOCK);
	}
	if (!feed_rest(n, piece, &m, at, &sink))
		return false;
	n->pos = at + piece.len;
	return hand_out(n, n->pos, &sink);
}
