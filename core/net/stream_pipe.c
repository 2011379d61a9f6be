/* The table of a stream that has another stream instead of a socket. What one end writes waits at the other until it is
 * read; each move wakes the end that it concerns, since no descriptor does. The wake-ups are events, so that callbacks
 * come from the loop here as well. */
#include "core/base/limits.h"
#include "core/net/stream_internal.h"

static enum cage_status pipe_handshake(struct stream *s)
{
	(void)s;
	return CAGE_OK;
}

/* Bytes of which one side knows that they may carry secrets are overwritten on the other side, too. */
static void share_secrecy(struct stream *from, struct stream *to)
{
	bool secret = to->in.cleanses || from->out.carries_secrets;
	if (secret && from->out.len > 0)
		from->out.carries_secrets = true;
	if (secret)
		to->pipe.arriving.carries_secrets = true;
}

static size_t pipe_read(struct stream *s, void *buf, size_t room, enum cage_status *st)
{
	struct fifo *arriving = &s->pipe.arriving;
	size_t n = 0;
	if (arriving->carries_secrets)
		s->in.cleanses = true;
	if (s->in.cleanses)
		arriving->carries_secrets = true;
	while (n < room && arriving->len > 0) {
		struct slice piece = slice_head(fifo_front(arriving), room - n);
		memcpy((char *)buf + n, piece.ptr, piece.len);
		fifo_drop(arriving, piece.len);
		n += piece.len;
	}
	if (n == 0)
		*st = s->pipe.end;
	else if (s->pipe.peer)
		stream_is_writable(s->pipe.peer);
	return n;
}

static size_t pipe_room(const struct stream *reader)
{
	size_t room = stream_memory_is_short(reader) ? LIMIT_OUT_SHORT : LIMIT_PIPE;
	size_t len = reader->pipe.arriving.len;
	return len < room ? room - len : 0;
}

static size_t pipe_write(struct stream *s, const void *buf, size_t len, enum cage_status *st)
{
	struct stream *peer = s->pipe.peer;
	if (!peer) {
		*st = CAGE_TRUNCATED;
		return 0;
	}
	struct slice piece = slice_head(slice_of(buf, len), pipe_room(peer));
	*st = CAGE_AGAIN;
	if (piece.len == 0)
		return 0;
	share_secrecy(s, peer);
	*st = fifo_put(&peer->pipe.arriving, piece);
	if (*st != CAGE_OK)
		return 0;
	stream_is_readable(peer);
	return piece.len;
}

static void tell_peer(struct stream *s, enum cage_status end)
{
	struct stream *peer = s->pipe.peer;
	if (!peer)
		return;
	peer->pipe.end = end;
	stream_is_readable(peer);
}

static void pipe_end(struct stream *s)
{
	tell_peer(s, CAGE_EOF);
}

static void pipe_shut(struct stream *s)
{
	(void)s; /* pipe_end has said all of it */
}

static bool pipe_maybe_more(const struct stream *s)
{
	return s->pipe.arriving.len > 0 || s->pipe.end != CAGE_AGAIN;
}

static int pipe_unsent(const struct stream *s)
{
	return s->pipe.peer ? (int)s->pipe.peer->pipe.arriving.len : 0;
}

/* A peer that was told of our clean end before hears of it, too, if it still writes. */
static void break_peer(struct stream *s, enum cage_status why)
{
	tell_peer(s, why);
	if (s->pipe.peer)
		stream_is_broken(s->pipe.peer, why);
}

static void pipe_harden(struct stream *s)
{
	break_peer(s, CAGE_TRUNCATED);
}

/* An end that was not said is a clean one when all was sent, as that of a socket is. */
static void pipe_free(struct stream *s)
{
	struct stream *peer = s->pipe.peer;
	if (peer) {
		bool lost = s->out.len > 0 || s->writing == WRITE_BROKEN;
		share_secrecy(s, peer);
		if (peer->pipe.end == CAGE_AGAIN)
			tell_peer(s, lost ? CAGE_TRUNCATED : CAGE_EOF);
		peer->pipe.peer = NULL;
		stream_is_writable(peer);
	}
	fifo_clear(&s->pipe.arriving);
}

void stream_break(struct stream **sp, enum cage_status why)
{
	if (!*sp)
		return;
	break_peer(*sp, why);
	(*sp)->writing = WRITE_BROKEN;
	stream_close(sp);
}

/* What waits is held in memory here, so a writer has to stop earlier than before a socket. */
static const struct stream_ops pipe_ops = {
	.high = LIMIT_PIPE,
	.low = 1,
	.handshake = pipe_handshake,
	.read = pipe_read,
	.write = pipe_write,
	.end = pipe_end,
	.shut = pipe_shut,
	.maybe_more = pipe_maybe_more,
	.unsent = pipe_unsent,
	.harden = pipe_harden,
	.free = pipe_free,
};

bool stream_pair(struct loop *l, struct stream *ends[2], const struct stream_cb *cb, void *arg)
{
	ends[0] = stream_create(l, -1, &pipe_ops, cb, arg);
	ends[1] = stream_create(l, -1, &pipe_ops, cb, arg);
	if (!ends[0] || !ends[1]) {
		stream_close(&ends[0]);
		stream_close(&ends[1]);
		return false;
	}
	for (unsigned i = 0; i < 2; i++)
		ends[i]->pipe = (struct stream_pipe){
			.peer = ends[1 - i], .arriving = {.total = &loop_streams(l)->waiting}, .end = CAGE_AGAIN};
	return true;
}
