/* A buffer that grows to the longest beginning of a value that had to be kept so far, and some of a piece behind it. */
#include "inspectors/known/held.h"

#include <stdlib.h>

#define HELD_STEP 64 /* bytes of a piece that are first put behind what is kept */

/* Not realloc, which would leave the old bytes lying about. */
static bool held_grow(struct held *h, size_t need)
{
	size_t room = h->room ? h->room : 2 * HELD_STEP;
	while (room < need)
		room *= 2;
	char *buf = malloc(room);
	if (!buf)
		return false;
	if (h->len > 0)
		memcpy(buf, h->buf, h->len);
	size_t len = h->len;
	held_free(h);
	*h = (struct held){buf, len, room};
	return true;
}

static enum cage_status held_put(struct held *h, struct slice s)
{
	if (s.len == 0)
		return CAGE_OK;
	if (s.len > h->room - h->len && !held_grow(h, h->len + s.len))
		return CAGE_ENOMEM;
	memcpy(h->buf + h->len, s.ptr, s.len);
	h->len += s.len;
	return CAGE_OK;
}

static void held_drop(struct held *h, size_t n)
{
	h->len -= n;
	memmove(h->buf, h->buf + n, h->len);
}

/* Puts more and more of the piece behind what is kept, until that is decided. *done: how much of the piece is read; all
 * of it when it is kept. */
static enum cage_status decide(struct held *h, struct slice piece, held_read *read, void *arg, size_t *done)
{
	size_t kept = h->len, joined = 0;
	for (size_t step = HELD_STEP; kept > 0 && joined < piece.len; step *= 2) {
		struct slice some = slice_head(slice_from(piece, joined), step);
		enum cage_status status = held_put(h, some);
		if (status != CAGE_OK)
			return status;
		joined += some.len;
		size_t n = read(arg, slice_of(h->buf, h->len), kept, false);
		if (n >= kept) {
			*done = n - kept;
			h->len = 0;
			return CAGE_OK;
		}
		held_drop(h, n);
		kept -= n;
	}
	*done = joined;
	return CAGE_OK;
}

enum cage_status held_feed(struct held *h, struct slice piece, held_read *read, void *arg)
{
	size_t done = 0;
	enum cage_status status = decide(h, piece, read, arg, &done);
	struct slice rest = slice_from(piece, done);
	if (status != CAGE_OK || rest.len == 0)
		return status;
	return held_put(h, slice_from(rest, read(arg, rest, rest.len, false)));
}

void held_end(struct held *h, held_read *read, void *arg)
{
	if (h->len > 0)
		read(arg, slice_of(h->buf, h->len), h->len, true);
	held_clear(h);
}

void held_clear(struct held *h)
{
	if (h->room > 0)
		explicit_bzero(h->buf, h->room);
	h->len = 0;
}

void held_free(struct held *h)
{
	held_clear(h);
	free(h->buf);
	*h = (struct held){0};
}
