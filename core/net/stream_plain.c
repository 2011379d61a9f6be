/* What lies under a stream: the socket itself, the plain table over it, and the input buffers, which are recycled. */
#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/net/stream_internal.h"

#define READ_ROOM 16384 /* room wanted before a read */
#define SPARE_BUFFERS 16

/* ---- input buffers, recycled ---- */

static char *spare[SPARE_BUFFERS];
static size_t n_spare;

bool stream_buffer_reserve(struct stream_buffer *b)
{
	if (!b->data) {
		b->data = n_spare > 0 ? spare[--n_spare] : malloc(LIMIT_STREAM_IN);
		b->start = b->end = 0;
	} else if (b->start > 0 && LIMIT_STREAM_IN - b->end < READ_ROOM) {
		memmove(b->data, b->data + b->start, b->end - b->start);
		b->end -= b->start;
		if (b->cleanses)
			OPENSSL_cleanse(b->data + b->end, b->start);
		b->start = 0;
	}
	return b->data != NULL;
}

void stream_buffer_drop(struct stream_buffer *b)
{
	if (!b->data)
		return;
	if (b->cleanses)
		OPENSSL_cleanse(b->data, b->end);
	if (n_spare < SPARE_BUFFERS)
		spare[n_spare++] = b->data;
	else
		free(b->data);
	*b = (struct stream_buffer){.cleanses = b->cleanses};
}

void stream_buffer_release(struct stream_buffer *b)
{
	if (b->start == b->end)
		stream_buffer_drop(b);
}

/* ---- the socket ---- */

static enum cage_status socket_status(void)
{
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
		return CAGE_AGAIN;
	return errno == ECONNRESET || errno == EPIPE ? CAGE_TRUNCATED : CAGE_ESYS;
}

size_t stream_recv(struct stream *s, void *buf, size_t room, enum cage_status *st)
{
	ssize_t n = recv(s->fd, buf, room, 0);
	if (n > 0)
		return (size_t)n;
	*st = n == 0 ? CAGE_EOF : socket_status();
	return 0;
}

size_t stream_send(struct stream *s, const void *buf, size_t len, enum cage_status *st)
{
	ssize_t n = send(s->fd, buf, len, s->more_follows ? MSG_NOSIGNAL | MSG_MORE : MSG_NOSIGNAL);
	if (n > 0)
		return (size_t)n;
	*st = socket_status();
	return 0;
}

void stream_shut_socket(struct stream *s)
{
	shutdown(s->fd, SHUT_WR);
}

/* The kernel keeps them for the peer. */
int stream_socket_unsent(const struct stream *s)
{
	int n = 0;
	return ioctl(s->fd, SIOCOUTQ, &n) == 0 ? n : 0;
}

void stream_harden_socket(struct stream *s)
{
	struct linger hard = {.l_onoff = 1, .l_linger = 0};
	setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

void stream_close_socket(struct stream *s)
{
	close(s->fd);
}

static enum cage_status plain_handshake(struct stream *s)
{
	(void)s;
	return CAGE_OK;
}

static size_t plain_read(struct stream *s, void *buf, size_t room, enum cage_status *st)
{
	size_t n = stream_recv(s, buf, room, st);
	s->socket_filled = n == room;
	return n;
}

static void plain_end(struct stream *s)
{
	(void)s; /* the FIN that follows is the end */
}

static bool plain_maybe_more(const struct stream *s)
{
	return s->socket_filled;
}

const struct stream_ops stream_plain_ops = {
	.high = LIMIT_OUT_HIGH,
	.low = LIMIT_OUT_LOW,
	.handshake = plain_handshake,
	.read = plain_read,
	.write = stream_send,
	.end = plain_end,
	.shut = stream_shut_socket,
	.maybe_more = plain_maybe_more,
	.unsent = stream_socket_unsent,
	.harden = stream_harden_socket,
	.free = stream_close_socket,
};
