/* The admin port of the proxy, asked whether all workers have what it has read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/net/stream.h"
#include "orchestrator/gateway/gateway.h"

#define ASK "GET /metrics HTTP/1.1\r\nHost: cage-proxy\r\nConnection: close\r\n\r\n"
#define ROW "\ncage_workers_behind "
#define SOCKET "/admin.sock" /* as proxy.c says to the proxy */

_Static_assert(LIMIT_GATEWAY_STATE + sizeof(SOCKET) <= sizeof(((struct sockaddr_un *)0)->sun_path),
	       "the path has no room");

struct question {
	struct gateway *gateway;
	behind_told *told;
	struct stream *stream;
	size_t len;
	char answer[LIMIT_ADMIN_BODY + KIB(2)];
};

static uint64_t find_number(const struct question *q)
{
	uint64_t n;
	const struct slice row = SLICE(ROW), all = slice_of(q->answer, q->len);
	const char *at = memmem(all.ptr, all.len, row.ptr, row.len);
	if (!at || !slice_starts(all, SLICE("HTTP/1.1 200 ")))
		return UINT64_MAX;
	struct slice rest = slice_from(all, (size_t)(at - all.ptr) + row.len);
	return slice_to_u64(slice_cut(&rest, '\n'), UINT64_MAX - 1, &n) ? n : UINT64_MAX;
}

static void on_data(struct stream *s, void *arg)
{
	struct question *q = arg;
	struct slice input = stream_input(s);
	const size_t room = sizeof(q->answer) - q->len, n = input.len < room ? input.len : room;
	memcpy(q->answer + q->len, input.ptr, n);
	q->len += n;
	stream_consume(s, input.len);
}

static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	struct question *q = arg;
	struct gateway *g = q->gateway;
	behind_told *told = q->told;
	(void)s;
	const uint64_t n = why == CAGE_EOF ? find_number(q) : UINT64_MAX;
	stream_close(&q->stream);
	free(q);
	told(g, n);
}

static void on_nothing(struct stream *s, void *arg)
{
	(void)s, (void)arg;
}

static const struct stream_cb callbacks = {
	.on_ready = on_nothing, .on_data = on_data, .on_drained = on_nothing, .on_end = on_end};

static int dial(const char *state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	snprintf(at.sun_path, sizeof(at.sun_path), "%.*s" SOCKET, LIMIT_GATEWAY_STATE, state);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

bool behind_ask(struct gateway *g, behind_told *told)
{
	struct question *q = calloc(1, sizeof(*q));
	int fd = q ? dial(g->options->state) : -1;
	if (fd >= 0)
		q->stream = stream_new(g->loop, fd, &callbacks, q);
	if (!q || !q->stream) {
		free(q);
		return false;
	}
	q->gateway = g;
	q->told = told;
	stream_set_deadline(q->stream, LIMIT_GATEWAY_ADMIN_MS);
	stream_write(q->stream, slice_of(ASK, sizeof(ASK) - 1));
	return true;
}
