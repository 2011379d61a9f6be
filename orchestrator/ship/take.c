/* From a file into the batch: whole lines only, in their order, as they are. What is none is passed over, counted and said: sent, it would
 * have Azure refuse the whole batch for ever. A line that somebody has changed is none; that it is missing shows in the chain. */
#include <errno.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/ship/ship.h"

/* The hash says that it is as it was written; that it is JSON is for who could write hashes too. */
bool line_is_good(struct audit_hasher *h, struct slice line, struct audit_chain *after)
{
	if (line.len > LIMIT_SHIP_LINE || !audit_chain_read(h, line, after))
		return false;
	json_t *parsed = json_loadb(line.ptr, line.len, 0, NULL);
	const bool ok = json_is_object(parsed);
	json_decref(parsed);
	return ok;
}

static void tell(struct source *f, const char *what)
{
	if (!f->has_told)
		say("%s: at byte %llu there is %s: it is passed over, as all that follow in this file", f->path,
		    (unsigned long long)f->reached.offset, what);
	f->has_told = true;
}

static void pass_over(struct ship *s, struct source *f, struct slice line)
{
	f->passed++;
	if (line.len > LIMIT_SHIP_LINE) {
		s->counts.too_big++;
		tell(f, "a line that is too long");
	} else {
		s->counts.foreign++;
		tell(f, "something else than a whole line of a decision log, or one that was changed");
	}
}

static bool take_line(struct ship *s, struct source *f, struct slice line)
{
	struct audit_chain after;
	const uint64_t end = f->reached.offset + line.len + 1;
	if (f->skips) {
		f->skips = false;
	} else if (!line_is_good(&s->hasher, line, &after)) {
		pass_over(s, f, line);
	} else if (!batch_add(&s->batch, line)) {
		return false;
	} else {
		f->reached.hash_at = end;
		f->reached.seq = after.next_seq - 1;
		memcpy(f->reached.hash, after.prev, SHIP_HASH);
	}
	f->reached.offset = end;
	return true;
}

/* All whole lines of a piece. False: the batch is full. */
static bool take_lines(struct ship *s, struct source *f, struct slice piece)
{
	for (;;) {
		const size_t n = slice_find(piece, '\n');
		if (n == piece.len)
			break;
		if (!take_line(s, f, slice_head(piece, n)))
			return false;
		piece = slice_from(piece, n + 1);
	}
	const bool is_long = f->skips || piece.len > LIMIT_SHIP_LINE;
	if (is_long && !f->skips)
		pass_over(s, f, piece);
	if (is_long) {
		f->skips = true;
		f->reached.offset += piece.len;
	}
	return true;
}

/* Nothing is added to it any more: what is left is no line, and never will be. */
static void take_torn(struct ship *s, struct source *f)
{
	const bool is_over = f->kept || f->missed >= LIMIT_SHIP_MISSED;
	if (!is_over || f->reached.offset >= f->size)
		return;
	if (!f->skips)
		pass_over(s, f, SLICE_NONE);
	f->skips = false;
	f->reached.offset = f->size;
}

enum taken source_take(struct ship *s, struct source *f)
{
	if (!source_open(s, f))
		return TAKEN_ALL;
	for (uint64_t before = UINT64_MAX; f->reached.offset < f->size && f->reached.offset != before;) {
		before = f->reached.offset;
		const ssize_t n = pread(f->fd, s->piece, LIMIT_SHIP_PIECE, (off_t)before);
		if (n < 0)
			ship_trouble(s, "%s: can't be read: %s", f->path, strerror(errno));
		if (n <= 0)
			break;
		if (!take_lines(s, f, slice_of(s->piece, (size_t)n)))
			return TAKEN_FULL;
		if (f->reached.offset == before)
			take_torn(s, f);
	}
	source_rest(s, f);
	return TAKEN_ALL;
}
