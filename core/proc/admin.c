/* A very small HTTP server: one GET per connection, then it closes. */
#include "core/proc/admin.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/http/h1.h"
#include "core/net/listener.h"
#include "core/net/stream.h"

struct admin {
	struct loop *loop;
	struct listener *listener;
	const struct admin_source *source;
	size_t n_conns;
};

struct admin_conn {
	struct admin *admin;
	struct stream *stream;
	struct h1_gate gate;
};

static char body_room[LIMIT_ADMIN_BODY]; /* the master has one thread */

static void conn_done(struct admin_conn *c)
{
	c->admin->n_conns--;
	stream_finish(&c->stream);
	free(c);
}

static void respond(struct admin_conn *c, const char *status, const char *type, struct slice body, bool head_only)
{
	char room[512];
	struct text t = text_in(room, sizeof(room));
	text_put(&t, SLICE("HTTP/1.1 "));
	text_put(&t, slice_str(status));
	text_put(&t, SLICE("\r\nContent-Type: "));
	text_put(&t, slice_str(type));
	text_put(&t, SLICE("\r\nContent-Length: "));
	text_put_u64(&t, body.len);
	text_put(&t, SLICE("\r\nConnection: close\r\n\r\n"));
	stream_write(c->stream, text_slice(&t));
	if (!head_only)
		stream_write(c->stream, body);
	conn_done(c);
}

static void respond_ca(struct admin_conn *c, bool head_only)
{
	FILE *f = fopen(c->admin->source->ca_file, "re");
	size_t n = f ? fread(body_room, 1, sizeof(body_room), f) : 0;
	if (f)
		fclose(f);
	if (n == 0)
		respond(c, "503 Service Unavailable", "text/plain", SLICE("no CA yet\n"), head_only);
	else
		respond(c, "200 OK", "application/x-pem-file", slice_of(body_room, n), head_only);
}

static void respond_metrics(struct admin_conn *c, bool head_only)
{
	const struct admin_source *source = c->admin->source;
	struct text t = text_in(body_room, sizeof(body_room));
	source->metrics(source->arg, &t);
	respond(c, "200 OK", "text/plain; version=0.0.4", text_slice(&t), head_only);
}

static void respond_ready(struct admin_conn *c, bool head_only)
{
	const struct admin_source *source = c->admin->source;
	if (source->is_ready(source->arg))
		respond(c, "200 OK", "text/plain", SLICE("ready\n"), head_only);
	else
		respond(c, "503 Service Unavailable", "text/plain", SLICE("not ready\n"), head_only);
}

static void serve(struct admin_conn *c, const struct message *m)
{
	bool head_only = slice_eq(m->method, SLICE("HEAD"));
	if (!head_only && !slice_eq(m->method, SLICE("GET")))
		respond(c, "405 Method Not Allowed", "text/plain", SLICE("only GET\n"), false);
	else if (slice_eq(m->target, SLICE("/healthz")))
		respond(c, "200 OK", "text/plain", SLICE("alive\n"), head_only);
	else if (slice_eq(m->target, SLICE("/readyz")))
		respond_ready(c, head_only);
	else if (slice_eq(m->target, SLICE("/metrics")))
		respond_metrics(c, head_only);
	else if (c->admin->source->ca_file && slice_eq(m->target, SLICE("/ca.pem")))
		respond_ca(c, head_only);
	else
		respond(c, "404 Not Found", "text/plain",
			c->admin->source->ca_file ? SLICE("/healthz /readyz /metrics /ca.pem\n")
						  : SLICE("/healthz /readyz /metrics\n"),
			head_only);
}

static void on_data(struct stream *s, void *arg)
{
	struct admin_conn *c = arg;
	struct message m = {0};
	struct h1_error err;
	struct arena arena;
	size_t len = 0;
	enum cage_status st = h1_gate(&c->gate, stream_input(s), &len);
	if (st == CAGE_AGAIN)
		return;
	arena_init(&arena, LIMIT_TXN_ARENA);
	if (st == CAGE_OK)
		st = h1_parse_request(slice_head(stream_input(s), len), &arena, &m, &err);
	if (st == CAGE_OK)
		serve(c, &m);
	else
		respond(c, "400 Bad Request", "text/plain", SLICE("bad request\n"), false);
	arena_free(&arena);
}

static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s, (void)why;
	conn_done(arg);
}

static void on_nothing(struct stream *s, void *arg)
{
	(void)s, (void)arg;
}

static const struct stream_cb admin_cb = {
	.on_ready = on_nothing, .on_data = on_data, .on_drained = on_nothing, .on_end = on_end};

static void on_accept(void *arg, int fd)
{
	struct admin *a = arg;
	struct admin_conn *c = a->n_conns < LIMIT_ADMIN_CONNS ? calloc(1, sizeof(*c)) : NULL;
	struct stream *s = stream_new(a->loop, fd, &admin_cb, c);
	if (!c || !s) {
		stream_close(&s);
		free(c);
		return;
	}
	c->admin = a;
	c->stream = s;
	a->n_conns++;
	stream_set_deadline(s, LIMIT_ADMIN_MS);
}

struct admin *admin_new(struct loop *l, int listen_fd, const struct admin_source *source)
{
	struct admin *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->loop = l;
	a->source = source;
	a->listener = listener_new(l, listen_fd, on_accept, a);
	if (!a->listener) {
		free(a);
		return NULL;
	}
	return a;
}

void admin_free(struct admin **ap)
{
	if (!*ap)
		return;
	listener_free(&(*ap)->listener);
	free(*ap);
	*ap = NULL;
}
