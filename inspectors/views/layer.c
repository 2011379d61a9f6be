/* One layer: cuts its text into blocks, has them classified, and gives those that matter to the decoders. This is the
 * loop that every byte of every body goes through. */
#include "inspectors/views/views_private.h"

size_t block_before(const struct layer *t, const struct block *b, unsigned char *out, size_t n)
{
	size_t near = n < b->before ? n : b->before;
	size_t far = n - near < t->n_history ? n - near : t->n_history;
	memcpy(out, t->history + sizeof(t->history) - far, far);
	memcpy(out + far, b->bytes - near, near);
	return far + near;
}

/* Is the number of backslashes directly before block i odd? Blocks that are nothing else do not change it. */
static bool is_odd(const struct layer *t, const struct masks *m, size_t i)
{
	const uint64_t *last = m->of[KIND_BACKSLASH];
	while (i > 0 && ~last[i] == 0)
		i--;
	return ~last[i] == 0 ? t->is_odd : ones_high(last[i]) % 2 == 1;
}

bool block_is_behind_odd(const struct layer *t, const struct block *b)
{
	return is_odd(t, b->masks, b->index);
}

static bool is_busy(const struct layer *t)
{
	return t->base64.run.state != RUN_NONE || t->hex.run.state != RUN_NONE || t->children[CHILD_PERCENT] ||
	       t->children[CHILD_JSON] || t->utf16.run > 1;
}

static void attend(struct layer *t, const struct block *b)
{
	base64_block(t, b);
	hex_block(t, b);
	percent_block(t, b);
	json_block(t, b);
	utf16_block(t, b);
	t->is_busy = is_busy(t);
}

/* Block i of a text of that length. */
static struct block block_at(const struct masks *m, size_t i, const unsigned char *bytes, size_t len)
{
	size_t offset = i * BLOCK;
	return (struct block){.bytes = bytes + offset,
			      .len = len - offset < BLOCK ? len - offset : BLOCK,
			      .before = offset,
			      .at = offset,
			      .masks = m,
			      .index = i};
}

/* Base64 characters or digits: are they some of those that are worth looking at? */
static bool is_wanted_run(const struct layer *t, const struct block *b)
{
	return hex_run_starts(block_now(b, KIND_HEX), block_last(b, KIND_HEX)) ||
	       (block_stretches(b) && hex_is_likely(t, b)) || base64_is_likely(t, b);
}

bool layer_may_open(struct layer *t, const unsigned char *bytes, size_t len)
{
	struct masks *m = &t->views->masks[0];
	size_t n = (len + BLOCK - 1) / BLOCK;
	for (unsigned kind = 0; kind < KINDS; kind++)
		m->of[kind][0] = 0;
	t->views->classify->blocks(bytes, n, m);
	for (size_t i = 0; i < n; i++) {
		struct block b = block_at(m, i, bytes, len);
		if (m->starts[i] || (m->runs[i] && is_wanted_run(t, &b)))
			return true;
	}
	return false;
}

/* Up to BLOCKS blocks: classifies them, and attends to those that matter. `before` is as in struct block. */
static void run_some(struct layer *t, const unsigned char *bytes, size_t len, size_t before)
{
	struct masks *m = &t->views->masks[t->view.depth];
	size_t n = (len + BLOCK - 1) / BLOCK;
	for (unsigned kind = 0; kind < KINDS; kind++)
		m->of[kind][0] = t->last[kind];
	t->views->classify->blocks(bytes, n, m);
	for (size_t i = 0; i < n; i++) {
		if (!t->is_busy && !(m->starts[i] | m->runs[i]))
			continue;
		struct block b = block_at(m, i, bytes, len);
		b.before += before;
		b.at += t->at;
		if (t->is_busy || m->starts[i] || is_wanted_run(t, &b))
			attend(t, &b);
	}
	for (unsigned kind = 0; kind < KINDS; kind++)
		t->last[kind] = m->of[kind][n];
	if (~t->last[KIND_BACKSLASH] == 0)
		t->is_odd = is_odd(t, m, n);
	t->at += len;
}

/* Whole blocks that lie one behind the other. */
static void run_blocks(struct layer *t, const unsigned char *bytes, size_t n)
{
	const size_t at_once = BLOCKS * BLOCK;
	for (size_t done = 0, len = n * BLOCK; done < len && t->views->status == CAGE_OK; done += at_once)
		run_some(t, bytes + done, len - done < at_once ? len - done : at_once, done);
}

/* What blocks behind these may look back to. */
static void remember(struct layer *t, const unsigned char *bytes, size_t n)
{
	unsigned char *end = t->history + sizeof(t->history);
	size_t new = n < sizeof(t->history) ? n : sizeof(t->history);
	size_t kept = sizeof(t->history) - new;
	if (kept > t->n_history)
		kept = t->n_history;
	memmove(end - new - kept, end - kept, kept);
	memcpy(end - new, bytes + n - new, new);
	t->n_history = kept + new;
}

/* Fills up the pending block; what does not fit is returned. */
static struct slice fill_pending(struct layer *t, struct slice bytes)
{
	struct slice part = slice_head(bytes, BLOCK - t->n_pending);
	memcpy(t->pending + t->n_pending, part.ptr, part.len);
	t->n_pending += part.len;
	if (t->n_pending == BLOCK) {
		run_blocks(t, t->pending, 1);
		remember(t, t->pending, BLOCK);
		t->n_pending = 0;
	}
	return slice_from(bytes, part.len);
}

void layer_feed(struct layer *t, struct slice bytes)
{
	if (t->n_pending > 0)
		bytes = fill_pending(t, bytes);
	size_t blocks = bytes.len / BLOCK;
	if (blocks > 0 && t->views->status == CAGE_OK) {
		run_blocks(t, (const unsigned char *)bytes.ptr, blocks);
		remember(t, (const unsigned char *)bytes.ptr, blocks * BLOCK);
	}
	bytes = slice_from(bytes, blocks * BLOCK);
	if (bytes.len > 0 && t->views->status == CAGE_OK)
		fill_pending(t, bytes);
}

/* The last bytes, which fill no block. */
static void run_rest(struct layer *t)
{
	memset(t->pending + t->n_pending, PADDING, BLOCK - t->n_pending);
	run_some(t, t->pending, t->n_pending, 0);
}

void layer_end(struct layer *t)
{
	if (t->n_pending > 0 && t->views->status == CAGE_OK)
		run_rest(t);
	if (!t->is_busy)
		return;
	base64_end(t);
	hex_end(t);
	percent_end(t);
	json_end(t);
	utf16_end(t);
	t->is_busy = false;
}
