/* A buffer of at most twice the reach, so that it is moved down only once in so many bytes. Of a large piece no more is
 * copied than its end. */
#include "inspectors/scan/tail.h"

#include <stdlib.h>

#define TAIL_START 512 /* bytes of a first buffer: most texts are short */

/* Doubles the room up to what there may be; false: no memory. */
static bool tail_grow(struct tail *t, size_t need)
{
	size_t room = t->room ? t->room : TAIL_START;
	while (room < need)
		room *= 2;
	if (room > 2 * t->reach)
		room = 2 * t->reach;
	char *buf = realloc(t->buf, room);
	if (!buf)
		return false;
	t->buf = buf;
	t->room = room;
	return true;
}

/* Room for n bytes behind the tail, n not above the reach. */
static bool tail_reserve(struct tail *t, size_t n)
{
	if (t->len + n > 2 * t->reach) {
		memmove(t->buf, t->buf + t->len - t->reach, t->reach);
		t->len = t->reach;
	}
	return t->len + n <= t->room || tail_grow(t, t->len + n);
}

enum cage_status tail_join(struct tail *t, struct slice piece)
{
	struct slice start = slice_head(piece, t->reach);
	if (t->joined > 0 || start.len == 0)
		return CAGE_OK;
	if (!tail_reserve(t, start.len))
		return CAGE_ENOMEM;
	memcpy(t->buf + t->len, start.ptr, start.len);
	t->joined = start.len;
	return CAGE_OK;
}

enum cage_status tail_keep(struct tail *t, struct slice piece)
{
	if (piece.len > t->reach) {
		tail_clear(t);
		piece = slice_from(piece, piece.len - t->reach);
	}
	enum cage_status status = tail_join(t, piece);
	t->len += t->joined;
	t->joined = 0;
	return status;
}

void tail_clear(struct tail *t)
{
	t->len = t->joined = 0;
}

void tail_free(struct tail *t)
{
	free(t->buf);
	*t = (struct tail){.reach = t->reach};
}
