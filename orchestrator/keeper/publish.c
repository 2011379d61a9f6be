/* Listeners and connections. */
#include "orchestrator/keeper/publish.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/keeper/keeper.h"

/* ---- listening ---- */

static int listen_at(const struct spec_port *p)
{
	const int on = 1;
	const bool is_v6 = p->at.any.sa_family == AF_INET6;
	int fd = socket(p->at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, &p->at.any, is_v6 ? sizeof(p->at.v6) : sizeof(p->at.v4)) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	int why = errno;
	fd_close(&fd);
	errno = why;
	return -1;
}

static uint16_t host_port(const struct spec_port *p)
{
	return ntohs(p->at.any.sa_family == AF_INET6 ? p->at.v6.sin6_port : p->at.v4.sin_port);
}

static bool write_address(FILE *to, int fd, uint16_t port)
{
	struct spec_port at = {0};
	char text[INET6_ADDRSTRLEN];
	socklen_t len = sizeof(at.at);
	if (getsockname(fd, &at.at.any, &len) != 0)
		return false;
	bool is_v6 = at.at.any.sa_family == AF_INET6;
	inet_ntop(at.at.any.sa_family, is_v6 ? (void *)&at.at.v6.sin6_addr : (void *)&at.at.v4.sin_addr, text,
		  sizeof(text));
	return fprintf(to, is_v6 ? "%u [%s]:%u\n" : "%u %s:%u\n", port, text, host_port(&at)) > 0;
}

static bool write_addresses(struct keeper *k)
{
	FILE *to = fopen("published.part", "we");
	bool ok = to != NULL;
	for (size_t i = 0; ok && i < k->spec.n_ports; i++)
		ok = write_address(to, k->publish.listening[i], k->spec.ports[i].port);
	if (to)
		ok = fclose(to) == 0 && ok;
	return ok && rename("published.part", "published") == 0;
}

/* In the result too: who asked for it reads that. */
static void refuse_port(struct keeper *k, const struct spec_port *p)
{
	char text[LIMIT_KEEPER_MESSAGE];
	int n = snprintf(text, sizeof(text), "port %u can't be published on port %u of this machine: %s", p->port,
			 host_port(p), strerror(errno));
	say("%s", text);
	result_say(&k->result, slice_of(text, (size_t)n));
}

bool publish_open(struct keeper *k)
{
	for (size_t i = 0; i < k->spec.n_ports; i++) {
		k->publish.listening[i] = listen_at(&k->spec.ports[i]);
		if (k->publish.listening[i] < 0) {
			refuse_port(k, &k->spec.ports[i]);
			return false;
		}
	}
	if (k->spec.n_ports == 0 || write_addresses(k))
		return true;
	say("published: %s", strerror(errno));
	return false;
}

/* ---- one connection ---- */

static bool may_enter(enum conn_state from, enum conn_state to)
{
	return to == CONN_FREE || (to == CONN_OPEN ? from == CONN_FREE : from == CONN_OPEN);
}

static void conn_enter(struct conn *c, enum conn_state next)
{
	if (!may_enter(c->state, next))
		abort();
	c->state = next;
	if (next != CONN_FREE)
		return;
	fd_close(&c->fd);
	fifo_clear(&c->out);
	if (c->task)
		c->task->arg = NULL; /* what still comes of it is nobody's */
	c->task = NULL;
}

/* Who has connected is gone, or has to go. */
static void drop(struct keeper *k, struct conn *c)
{
	if (c->task)
		wire_send(k, FRAME_CANCEL, c->task->id, SLICE_NONE);
	conn_enter(c, CONN_FREE);
}

static void finish_if_sent(struct conn *c)
{
	if (c->out.len > 0 || c->state != CONN_FINISHING)
		return;
	if (c->task)
		shutdown(c->fd, SHUT_WR); /* it may still have something to say */
	else
		conn_enter(c, CONN_FREE);
}

static void write_some(struct keeper *k, void *arg, int fd, short events)
{
	struct conn *c = arg;
	(void)events;
	while (c->state != CONN_FREE && c->fd == fd && c->out.len > 0) {
		struct slice front = fifo_front(&c->out);
		ssize_t n = send(fd, front.ptr, front.len, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			drop(k, c);
			return;
		}
		fifo_drop(&c->out, (size_t)n);
		if (c->task)
			wire_took(k, c->task, (size_t)n);
	}
	if (c->state != CONN_FREE)
		finish_if_sent(c);
}

static void read_some(struct keeper *k, void *arg, int fd, short events)
{
	struct conn *c = arg;
	char bytes[LIMIT_INSIDE_FRAME];
	(void)events;
	if (c->state == CONN_FREE || c->fd != fd || !c->task || c->has_ended)
		return;
	ssize_t n = read(fd, bytes, c->credit < sizeof(bytes) ? c->credit : sizeof(bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		drop(k, c);
		return;
	}
	c->credit -= (size_t)n;
	c->has_ended = n == 0;
	wire_send(k, n > 0 ? FRAME_DATA : FRAME_END, c->task->id, slice_of(bytes, (size_t)n));
}

/* ---- what comes from the room ---- */

static void take_out(struct keeper *k, struct conn *c, struct slice payload)
{
	if (c->state != CONN_OPEN || c->out.len + payload.len > LIMIT_INSIDE_WINDOW ||
	    fifo_put(&c->out, payload) != CAGE_OK)
		drop(k, c);
	else
		write_some(k, c, c->fd, POLLOUT);
}

static void take_more(struct conn *c, struct slice payload)
{
	c->credit += frame_more(payload);
	if (c->credit > LIMIT_INSIDE_WINDOW)
		c->credit = LIMIT_INSIDE_WINDOW;
}

static void take_end(struct conn *c)
{
	if (c->state == CONN_OPEN)
		conn_enter(c, CONN_FINISHING);
	finish_if_sent(c);
}

/* Nobody listens there: who has connected is told so. */
static void take_done(struct conn *c, const struct frame *f)
{
	const struct linger reset = {.l_onoff = 1};
	int why;
	c->task = NULL;
	if (!done_is_good(f, &why)) {
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		conn_enter(c, CONN_FREE);
		return;
	}
	take_end(c);
}

static void heard(struct keeper *k, struct task *t, const struct frame *f)
{
	struct conn *c = t->arg;
	if (!c)
		return;
	if (f->kind == FRAME_DONE)
		take_done(c, f);
	else if (f->kind == FRAME_OUT)
		take_out(k, c, f->payload);
	else if (f->kind == FRAME_MORE)
		take_more(c, f->payload);
	else if (f->kind == FRAME_END)
		take_end(c);
}

/* ---- all of them ---- */

static struct conn *find_free(struct publish *p)
{
	for (size_t i = 0; i < LIMIT_KEEPER_CONNS; i++)
		if (p->conns[i].state == CONN_FREE)
			return &p->conns[i];
	return NULL;
}

static void begin(struct keeper *k, int fd, uint16_t port)
{
	struct conn *c = find_free(&k->publish);
	struct task *t = c ? wire_begin(k, heard, c) : NULL;
	char text[8];
	if (!t) {
		close(fd);
		return;
	}
	*c = (struct conn){.fd = fd, .task = t, .credit = LIMIT_INSIDE_WINDOW};
	conn_enter(c, CONN_OPEN);
	int n = snprintf(text, sizeof(text), "%u", port);
	wire_send(k, FRAME_CONNECT, t->id, slice_of(text, (size_t)n + 1));
}

static void accept_one(struct keeper *k, void *arg, int fd, short events)
{
	const struct spec_port *port = arg;
	int conn = find_free(&k->publish) && wire_has_room(&k->wire)
			   ? accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)
			   : -1;
	(void)events;
	if (conn >= 0)
		begin(k, conn, port->port);
}

static void watch_conn(struct keeper *k, struct conn *c)
{
	const bool can_read = c->task && !c->has_ended && c->credit > 0 && !wire_is_clogged(&k->wire);
	if (c->state == CONN_FREE)
		return;
	polls_add(&k->polls, c->fd, c->out.len > 0 ? POLLOUT : 0, write_some, c);
	polls_add(&k->polls, c->fd, can_read ? POLLIN : 0, read_some, c);
}

void publish_watch(struct keeper *k)
{
	const bool has_room = keeper_takes_jobs(k) && find_free(&k->publish) && wire_has_room(&k->wire);
	for (size_t i = 0; i < k->spec.n_ports; i++)
		polls_add(&k->polls, k->publish.listening[i], has_room ? POLLIN : 0, accept_one, &k->spec.ports[i]);
	for (size_t i = 0; i < LIMIT_KEEPER_CONNS; i++)
		watch_conn(k, &k->publish.conns[i]);
}

void publish_close(struct keeper *k)
{
	for (size_t i = 0; i < LIMIT_KEEPER_PUBLISHED; i++)
		fd_close(&k->publish.listening[i]);
	for (size_t i = 0; i < LIMIT_KEEPER_CONNS; i++)
		if (k->publish.conns[i].state != CONN_FREE)
			drop(k, &k->publish.conns[i]);
	unlink("published");
}
