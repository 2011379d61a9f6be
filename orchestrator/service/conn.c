/* Connections: bytes to heads and bodies with the strict reader of core/http, one request after the other. */
#include <event2/buffer.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/net/loop.h"
#include "orchestrator/service/http_private.h"

/* ---- ends ---- */

static void bury(evutil_socket_t fd, short what, void *arg)
{
	struct http *h = arg;
	(void)fd, (void)what;
	while (h->dead) {
		struct conn *c = h->dead;
		h->dead = c->next;
		bufferevent_free(c->bev);
		event_free(c->head_clock);
		free(c);
	}
}

struct event *conn_burial(struct http *h)
{
	return evtimer_new(h->service->base, bury, h);
}

static bool is_tcp(const struct conn *c)
{
	return c->peer == PEER_TCP || c->peer == PEER_TOKEN;
}

void conn_close(struct conn *c)
{
	const struct timeval now = {0, 0};
	struct http *h = c->http;
	struct conn **at = &h->conns;
	if (c->state == CONN_DEAD)
		return;
	c->state = CONN_DEAD;
	bufferevent_disable(c->bev, EV_READ | EV_WRITE);
	evtimer_del(c->head_clock);
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	c->next = h->dead;
	h->dead = c;
	h->n_conns--;
	h->n_tcp -= is_tcp(c);
	if (c->request) {
		if (c->request->gone)
			c->request->gone(c->request->work);
		request_drop(c->request);
		c->request = NULL;
	}
	evtimer_add(h->burial, &now);
	http_listen(h);
}

void conns_free(struct http *h)
{
	while (h->conns)
		conn_close(h->conns);
	bury(-1, 0, h);
}

static size_t unsent(const struct conn *c)
{
	return evbuffer_get_length(bufferevent_get_output(c->bev));
}

size_t conns_unsent(const struct http *h)
{
	size_t n = 0;
	for (const struct conn *c = h->conns; c; c = c->next)
		n += unsent(c) > 0;
	return n;
}

/* The bufferevent's own timeouts begin anew with each byte. */
static void bound_head(struct conn *c)
{
	const struct timeval time = {LIMIT_SERVE_HEAD_S, 0};
	if (!evtimer_pending(c->head_clock, NULL))
		evtimer_add(c->head_clock, &time);
}

static void on_head_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	conn_close(arg);
}

static void await_head(struct conn *c)
{
	const struct timeval idle = {LIMIT_SERVE_IDLE_S, 0}, stall = loop_ms(LIMIT_STALL_MS);
	c->state = CONN_HEAD;
	c->gate = (struct h1_gate){.kind = H1_GATE_REQUEST};
	c->discarded = 0;
	bufferevent_set_timeouts(c->bev, &idle, &stall);
	if (c->peer == PEER_TCP)
		bound_head(c);
}

/* What the client still sends is read and thrown away until it has seen the end: closing at once would take the answer from
 * it. */
static void say_last(struct conn *c)
{
	if (shutdown(bufferevent_getfd(c->bev), SHUT_WR) != 0)
		conn_close(c);
}

static void throw_away(struct conn *c)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	c->discarded += evbuffer_get_length(in);
	evbuffer_drain(in, evbuffer_get_length(in));
	if (c->discarded > LIMIT_SERVE_FILE)
		conn_close(c);
}

void conn_answered(struct conn *c, bool keep)
{
	const struct timeval linger = loop_ms(LIMIT_LINGER_MS), stall = loop_ms(LIMIT_STALL_MS);
	c->request = NULL;
	if (keep && c->state == CONN_WORKING && h1_body_is_done(&c->body) && !c->http->service->stopping) {
		await_head(c);
		if (evbuffer_get_length(bufferevent_get_input(c->bev)) > 0)
			bufferevent_trigger(c->bev, EV_READ, BEV_TRIG_DEFER_CALLBACKS);
		return;
	}
	c->state = CONN_LAST;
	bufferevent_set_timeouts(c->bev, &linger, &stall);
	if (unsent(c) == 0)
		say_last(c);
	bufferevent_trigger(c->bev, EV_READ, BEV_TRIG_DEFER_CALLBACKS);
}

/* ---- heads ---- */

static struct slice input_of(struct conn *c, size_t most)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	size_t n = evbuffer_get_length(in);
	n = n < most ? n : most;
	return slice_of(n ? (const char *)evbuffer_pullup(in, (ev_ssize_t)n) : "", n);
}

static void refuse_head(struct conn *c, int status, const char *why)
{
	struct request *r = c->request ? c->request : request_new(c);
	c->state = CONN_WORKING;
	if (!r) {
		conn_close(c);
		return;
	}
	c->body.state = H1_BODY_DATA; /* what follows can't be told apart: the connection ends */
	r->head.keep_alive = false;
	r->head.version = HTTP_11;
	answer_problem(r, status, "%s", why);
}

static void begin_body(struct conn *c)
{
	struct request *r = c->request;
	h1_body_init(&c->body, &r->head);
	request_begin(r);
	c->state = CONN_BODY;
	if (!r->head.expect_continue || h1_body_is_done(&c->body))
		return;
	if (!r->refused) {
		bufferevent_write(c->bev, "HTTP/1.1 100 Continue\r\n\r\n", 25);
		return;
	}
	c->state = CONN_WORKING; /* it can be spared the sending */
	request_handle(r);
}

static void take_head(struct conn *c, struct slice head)
{
	struct h1_error why = {0};
	struct request *r = request_new(c);
	struct slice copy = r ? arena_dup(&r->arena, head) : SLICE_NONE;
	evtimer_del(c->head_clock);
	evbuffer_drain(bufferevent_get_input(c->bev), head.len);
	if (!copy.ptr) {
		refuse_head(c, 503, "too many requests at the same time");
		return;
	}
	if (h1_parse_request(copy, &r->arena, &r->head, &why) != CAGE_OK)
		refuse_head(c, 400, why.what ? why.what : "the head can't be read");
	else
		begin_body(c);
}

/* False: nothing more can be done with what is there. */
static bool read_head(struct conn *c)
{
	size_t len = 0;
	struct slice input = input_of(c, LIMIT_SERVE_HEAD + 1);
	if (input.len == 0)
		return false;
	enum cage_status st = h1_gate(&c->gate, input, &len);
	if (st == CAGE_OK && len <= LIMIT_SERVE_HEAD) {
		take_head(c, slice_head(input, len));
		return true;
	}
	if (st == CAGE_AGAIN && input.len <= LIMIT_SERVE_HEAD) {
		bound_head(c);
		return false;
	}
	evtimer_del(c->head_clock);
	if (st == CAGE_EPROTO)
		refuse_head(c, 400, "the head is malformed");
	else
		refuse_head(c, 431, "the head is too large");
	return false;
}

/* ---- bodies ---- */

static void end_body(struct conn *c)
{
	static const struct timeval stall = {LIMIT_STALL_MS / 1000, 0};
	c->state = CONN_WORKING;
	bufferevent_set_timeouts(c->bev, NULL, &stall);
	request_handle(c->request);
}

static bool take_data(struct conn *c, struct slice data)
{
	if (!c->request->refused) {
		request_take(c->request, data);
		return true;
	}
	c->discarded += data.len;
	if (c->discarded <= LIMIT_SERVE_FILE)
		return true;
	c->discarded = 0; /* it is told now, and may send as much again until it has heard it */
	c->state = CONN_WORKING;
	request_handle(c->request);
	return false;
}

static bool read_body(struct conn *c)
{
	size_t used = 0;
	struct slice data = SLICE_NONE, input = input_of(c, LIMIT_SERVE_PIECE);
	enum cage_status st =
		h1_body_is_done(&c->body) ? CAGE_EOF : h1_body_feed(&c->body, input, &c->request->arena, &used, &data);
	if (st != CAGE_OK && st != CAGE_AGAIN && st != CAGE_EOF) {
		refuse_head(c, 400, "the body is malformed");
		return false;
	}
	if (data.len > 0 && !take_data(c, data))
		return false;
	evbuffer_drain(bufferevent_get_input(c->bev), used);
	if (st == CAGE_EOF)
		end_body(c);
	return st != CAGE_AGAIN || used > 0;
}

static void read_on(struct conn *c)
{
	bool more = true;
	while (more) {
		if (c->state == CONN_HEAD)
			more = read_head(c);
		else if (c->state == CONN_BODY)
			more = read_body(c);
		else
			more = false;
	}
	if (c->state == CONN_LAST)
		throw_away(c);
}

/* ---- events ---- */

static void on_read(struct bufferevent *bev, void *arg)
{
	(void)bev;
	read_on(arg);
}

static void on_write(struct bufferevent *bev, void *arg)
{
	struct conn *c = arg;
	(void)bev;
	if (c->state == CONN_LAST && unsent(c) == 0)
		say_last(c);
	else if (c->request && c->request->drained)
		c->request->drained(c->request->work);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev, (void)what;
	conn_close(arg);
}

/* Those without a token have few places, which the newest gets: they can't keep anybody out who has one. */
static void bound_strangers(struct http *h)
{
	size_t n = 0;
	struct conn *oldest = NULL;
	for (struct conn *c = h->conns; c; c = c->next)
		if (c->peer == PEER_TCP) {
			oldest = c;
			n++;
		}
	if (n > LIMIT_SERVE_STRANGERS)
		conn_close(oldest);
}

static struct conn *conn_new(struct http *h, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct conn){.http = h, .peer = access_peer(fd)};
	c->head_clock = evtimer_new(h->service->base, on_head_late, c);
	c->bev = c->head_clock ? bufferevent_socket_new(h->service->base, fd, BEV_OPT_CLOSE_ON_FREE) : NULL;
	if (c->bev)
		return c;
	if (c->head_clock)
		event_free(c->head_clock);
	free(c);
	return NULL;
}

void conn_accept(struct http *h, int fd)
{
	struct conn *c = conn_new(h, fd);
	if (!c) {
		close(fd);
		return;
	}
	c->next = h->conns;
	h->conns = c;
	h->n_conns++;
	h->n_tcp += is_tcp(c);
	bound_strangers(h);
	http_listen(h);
	bufferevent_setcb(c->bev, on_read, on_write, on_event, c);
	bufferevent_setwatermark(c->bev, EV_READ, 0, 2 * LIMIT_SERVE_PIECE);
	await_head(c);
	bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}
