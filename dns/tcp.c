/* TCP: each query with its length in front, many on one connection, answered in the order in which the answers come.
 *
 *	IDLE <-> PARTIAL	some of a query is here, and the rest has its time
 *	WAITING			there are more queries, but it is the turn of others, or the log is half full
 *	FULL			so many wait for an answer that no more is read
 *	ENDING			the client has ended its side, or we drain: what is outstanding is answered
 *
 * A connection that could be the cause of harm is cut: nobody is left to wait for it. */
#include "dns/server_internal.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/net/listener.h"
#include "core/net/stream.h"
#include "dns/octets.h"
#include "dns/wire.h"

enum conn_state { CONN_FREE, CONN_IDLE, CONN_PARTIAL, CONN_WAITING, CONN_FULL, CONN_ENDING };

struct conn {
	enum conn_state state;
	struct dns_tcp *tcp;
	struct stream *stream;
	uint64_t serial;
	uint64_t active_us;
	unsigned outstanding;
	struct addr from;
	struct deferred work; /* answers have made room: go on */
};

struct dns_tcp {
	struct dns_server *server;
	struct listener **listeners;
	size_t n_listeners;
	struct event *turn; /* when those that are WAITING go on */
	uint64_t serials;
	struct conn conns[LIMIT_DNS_CONNS];
};

/* In the next pass, or when there may be room. Without memory their time without progress ends them. */
static void set_turn(struct dns_tcp *t)
{
	struct timeval tv = loop_ms(dns_server_has_room(t->server) ? 0 : LIMIT_DNS_REST_MS);
	if (!evtimer_pending(t->turn, NULL))
		(void)evtimer_add(t->turn, &tv);
}

/* The only place that changes the state. */
static void conn_enter(struct conn *c, enum conn_state state)
{
	c->state = state;
	switch (state) {
	case CONN_PARTIAL:
		stream_set_deadline(c->stream, LIMIT_DNS_READ_MS);
		break;
	case CONN_WAITING:
		set_turn(c->tcp);
		stream_set_idle(c->stream, LIMIT_DNS_IDLE_MS);
		break;
	case CONN_IDLE:
	case CONN_FULL:
	case CONN_ENDING:
		stream_set_idle(c->stream, LIMIT_DNS_IDLE_MS);
		break;
	case CONN_FREE:
		loop_undefer(c->tcp->server->loop, &c->work);
		break;
	}
}

static void conn_close(struct conn *c)
{
	conn_enter(c, CONN_FREE);
	stream_close(&c->stream);
}

static void conn_cut(struct conn *c, enum reason why)
{
	struct dns_server *s = c->tcp->server;
	conn_enter(c, CONN_FREE);
	stream_reset(&c->stream);
	s->stats.tcp_cut++;
	s->cb->on_refused(s->arg, why, &c->from);
}

/* ---- queries */

static void hand_out(struct conn *c, struct slice packet)
{
	struct dns_server *s = c->tcp->server;
	struct dns_client client = {
		.is_verified = true, .server = s, .tcp = {.slot = (unsigned)(c - c->tcp->conns), .serial = c->serial}};
	c->outstanding++;
	s->stats.tcp_queries++;
	dns_server_ask(s, &client, packet);
}

static bool is_query_length(size_t len)
{
	return len >= DNS_HEADER && len <= LIMIT_DNS_QUERY;
}

/* Is there something to take? */
static bool has_query(const struct conn *c)
{
	struct slice in = stream_input(c->stream);
	return in.len >= 2 && (!is_query_length(octets_get16(in.ptr)) || in.len >= 2u + octets_get16(in.ptr));
}

/* Takes one query from the input: false when there is none, or nobody any more. */
static bool take_query(struct conn *c)
{
	uint64_t serial = c->serial;
	struct slice in = stream_input(c->stream);
	if (!has_query(c))
		return false;
	size_t len = octets_get16(in.ptr);
	if (!is_query_length(len)) {
		conn_cut(c, len < DNS_HEADER ? REASON_HEAD_MALFORMED : REASON_HEAD_TOO_LARGE);
		return false;
	}
	hand_out(c, slice_of(in.ptr + 2, len));
	if (c->state == CONN_FREE || c->serial != serial)
		return false;
	stream_consume(c->stream, 2 + len);
	return true;
}

static bool may_read(const struct conn *c)
{
	return c->outstanding < LIMIT_DNS_PIPELINE && c->tcp->server->state == DNS_SERVER_SERVING;
}

/* What it waits for now. Answers that an ended client does not take wait in the kernel; for more there is the time
 * without progress. */
static void conn_settle(struct conn *c)
{
	bool is_over = stream_has_ended(c->stream) || c->tcp->server->state != DNS_SERVER_SERVING;
	if (may_read(c) && has_query(c))
		conn_enter(c, CONN_WAITING);
	else if (is_over && c->outstanding == 0 && stream_flush(c->stream))
		conn_close(c);
	else if (is_over)
		conn_enter(c, CONN_ENDING);
	else if (!may_read(c))
		conn_enter(c, CONN_FULL);
	else if (stream_input(c->stream).len == 0)
		conn_enter(c, CONN_IDLE);
	else if (c->state != CONN_PARTIAL) /* its time began with its first byte */
		conn_enter(c, CONN_PARTIAL);
}

static void conn_read(struct conn *c)
{
	uint64_t serial = c->serial;
	unsigned taken = 0;
	c->active_us = loop_now_us(c->tcp->server->loop);
	while (taken < LIMIT_DNS_TURN && may_read(c) && dns_server_has_room(c->tcp->server) && take_query(c))
		taken++;
	if (c->state == CONN_FREE || c->serial != serial)
		return;
	if (taken > 0)
		conn_enter(c, CONN_IDLE); /* so that the time of what is behind it begins now */
	conn_settle(c);
}

static void on_data(struct stream *stream, void *arg)
{
	(void)stream;
	struct conn *c = arg;
	if (c->state != CONN_WAITING)
		conn_read(c);
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct dns_tcp *t = arg;
	for (size_t i = 0; i < LIMIT_DNS_CONNS; i++)
		if (t->conns[i].state == CONN_WAITING)
			conn_read(&t->conns[i]);
}

static void on_end(struct stream *stream, enum cage_status why, void *arg)
{
	struct conn *c = arg;
	bool is_slow = c->state == CONN_PARTIAL || c->outstanding > 0 || stream_unsent(stream) > 0;
	if (why == CAGE_EOF)
		conn_read(c);
	else if (why == CAGE_ETIMEOUT && is_slow)
		conn_cut(c, REASON_CLIENT_TIMEOUT);
	else
		conn_close(c);
}

static void on_nothing(struct stream *stream, void *arg)
{
	(void)stream;
	(void)arg;
}

static void on_work(struct deferred *d)
{
	conn_read((struct conn *)(void *)((char *)d - offsetof(struct conn, work)));
}

/* ---- answers */

static void send_answer(struct conn *c, struct slice answer)
{
	char len[2];
	struct dns_server_stats *stats = &c->tcp->server->stats;
	if (stream_unsent(c->stream) + answer.len > LIMIT_DNS_UNSENT && !stream_flush(c->stream) &&
	    stream_unsent(c->stream) + answer.len > LIMIT_DNS_UNSENT) {
		conn_cut(c, REASON_CLIENT_TIMEOUT);
		return;
	}
	octets_put16(len, (uint16_t)answer.len);
	stream_write(c->stream, slice_of(len, sizeof(len)));
	stream_write(c->stream, answer);
	stats->tcp_answers++;
}

/* Reading goes on from the loop, never from here: who answers is not asked meanwhile. */
void dns_tcp_reply(struct dns_tcp *t, const struct dns_client *client, struct slice answer)
{
	struct conn *c = &t->conns[client->tcp.slot];
	if (c->state == CONN_FREE || c->serial != client->tcp.serial)
		return;
	c->outstanding--;
	if (answer.len > 0 && answer.len <= LIMIT_DNS_TCP)
		send_answer(c, answer);
	if (c->state == CONN_FULL || c->state == CONN_ENDING)
		loop_defer(t->server->loop, &c->work);
}

/* ---- connections */

/* A place for one more: a free one, or that of the one that has been idle longest; or NULL. */
static struct conn *find_place(struct dns_tcp *t)
{
	struct conn *oldest = NULL;
	for (size_t i = 0; i < LIMIT_DNS_CONNS; i++) {
		struct conn *c = &t->conns[i];
		if (c->state == CONN_FREE)
			return c;
		bool is_idle = c->state == CONN_IDLE && c->outstanding == 0 && stream_unsent(c->stream) == 0;
		if (is_idle && (!oldest || c->active_us < oldest->active_us))
			oldest = c;
	}
	if (oldest)
		conn_close(oldest);
	return oldest;
}

static struct addr peer_of(int fd)
{
	union dns_sockaddr ss;
	struct addr from = {.family = ADDR_V4};
	socklen_t len = sizeof(ss);
	uint16_t port;
	if (getpeername(fd, &ss.any, &len) == 0)
		(void)addr_from_sockaddr(&ss.any, &from, &port);
	return from;
}

static void refuse(struct dns_tcp *t, int fd, const struct addr *from)
{
	close(fd);
	t->server->stats.tcp_refused++;
	t->server->cb->on_refused(t->server->arg, REASON_LIMIT_CONNECTIONS, from);
}

static void on_accept(void *arg, int fd)
{
	static const struct stream_cb cb = {on_nothing, on_data, on_nothing, on_end};
	struct dns_tcp *t = arg;
	struct addr from = peer_of(fd);
	struct conn *c = find_place(t);
	if (!c) {
		refuse(t, fd, &from);
		return;
	}
	struct stream *stream = stream_new(t->server->loop, fd, &cb, c);
	if (!stream)
		return;
	*c = (struct conn){.tcp = t, .stream = stream, .serial = ++t->serials, .from = from, .work = {.run = on_work}};
	c->active_us = loop_now_us(t->server->loop);
	t->server->stats.tcp_taken++;
	conn_enter(c, CONN_IDLE);
}

struct dns_tcp *dns_tcp_new(struct dns_server *server, const int *fds, size_t n)
{
	struct dns_tcp *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->server = server;
	t->listeners = calloc(n ? n : 1, sizeof(struct listener *));
	t->n_listeners = t->listeners ? n : 0;
	t->turn = evtimer_new(loop_base(server->loop), on_turn, t);
	bool good = t->listeners && t->turn;
	for (size_t i = 0; i < t->n_listeners; i++) {
		t->listeners[i] = listener_new(server->loop, fds[i], on_accept, t);
		good = good && t->listeners[i];
	}
	if (!good)
		dns_tcp_free(&t);
	return t;
}

static void stop_listening(struct dns_tcp *t)
{
	for (size_t i = 0; i < t->n_listeners; i++)
		listener_free(&t->listeners[i]);
}

void dns_tcp_stop(struct dns_tcp *t)
{
	stop_listening(t);
	for (size_t i = 0; i < LIMIT_DNS_CONNS; i++)
		if (t->conns[i].state != CONN_FREE)
			loop_defer(t->server->loop, &t->conns[i].work);
}

void dns_tcp_free(struct dns_tcp **tp)
{
	struct dns_tcp *t = *tp;
	if (!t)
		return;
	*tp = NULL;
	stop_listening(t);
	for (size_t i = 0; i < LIMIT_DNS_CONNS; i++)
		if (t->conns[i].state != CONN_FREE)
			conn_close(&t->conns[i]);
	free(t->listeners);
	if (t->turn)
		event_free(t->turn);
	free(t);
}
