/* A client's connection that speaks HTTP/2. The server gives each request as a stream in memory, with HTTP/1.1 on it; it
 * becomes a child connection and goes the way of all others. What concerns no request is logged here. */
#include "proxy/conn.h"
#include "proxy/h2_server.h"
#include "proxy/txn.h"

/* ---- children ---- */

static void join_parent(struct conn *parent, struct conn *c)
{
	c->sibling = parent->children;
	if (c->sibling)
		c->sibling->elder = c;
	parent->children = c;
}

void conn_h2_leave_parent(struct conn *c)
{
	if (c->elder)
		c->elder->sibling = c->sibling;
	else
		c->parent->children = c->sibling;
	if (c->sibling)
		c->sibling->elder = c->elder;
}

/* Ends every child with what it does, its upstream included. */
static void end_children(struct conn *c, enum reason reason)
{
	while (c->children) {
		struct conn *child = c->children;
		if (child->txn)
			txn_abandon(child->txn, reason, STAGE_NONE);
		else
			conn_close(child);
	}
}

void conn_h2_leave(struct conn *c)
{
	end_children(c, REASON_CLIENT_GONE);
	h2_server_free(&c->h2);
}

/* ---- the server's callbacks ---- */

/* More streams in memory than a worker may have: told on this one, and the others go on. */
static void refuse_child(struct conn *c)
{
	struct refusal r = {
		.reason = REASON_LIMIT_CONNECTIONS, .host = c->origin.host.text, .txn = worker_new_id(c->worker)};
	conn_log(c, DECISION_BLOCK, r.reason, STAGE_HEAD, r.txn);
	conn_write_refusal(c, &r, true, false);
	conn_finish(c);
}

/* What the connection was refused for is in the log once, and stands for its first request; each further one has a line
 * of its own. */
static void log_again(struct conn *child)
{
	child->refused_txn = worker_new_id(child->worker);
	conn_log(child, DECISION_BLOCK, child->refused, STAGE_CONNECT, child->refused_txn);
}

static void on_request(struct h2_server *h, struct stream *inner, void *arg)
{
	struct conn *c = arg;
	struct worker *w = c->worker;
	bool is_full = stream_count(w->loop) - stream_sockets(w->loop) > LIMIT_PIPES;
	struct conn *child = conn_new_child(c, inner);
	bool is_first = !c->has_asked;
	c->has_asked = true;
	if (!child)
		return; /* the stream was reset */
	join_parent(c, child);
	if (is_full)
		refuse_child(child);
	else if (c->refused != REASON_NONE && !is_first)
		log_again(child);
	if (c->refused != REASON_NONE)
		h2_server_drain_after(h);
}

static void on_malformed(struct h2_server *h, enum reason reason, void *arg)
{
	(void)h;
	struct conn *c = arg;
	c->has_asked = true;
	conn_log(c, DECISION_BLOCK, reason, STAGE_HEAD, worker_new_id(c->worker));
}

static bool is_clients_end(enum reason r)
{
	return r == REASON_CLIENT_GONE || r == REASON_CLIENT_TIMEOUT || r == REASON_CLIENT_TLS_FAILED;
}

/* A client that ends while requests are under way is logged with each of them; one that never asked has most often
 * turned away from our certificate. */
static void log_end(struct conn *c, enum reason reason)
{
	if (reason == REASON_NONE)
		return;
	if (!is_clients_end(reason))
		conn_log(c, DECISION_BLOCK, reason, STAGE_CONNECT, 0);
	else if (!c->has_asked && c->refused == REASON_NONE)
		conn_log(c, DECISION_ERROR, reason, STAGE_TLS, 0);
}

static void on_end(struct h2_server *h, enum reason reason, void *arg)
{
	(void)h;
	struct conn *c = arg;
	log_end(c, reason);
	end_children(c, reason == REASON_CLIENT_TIMEOUT ? reason : REASON_CLIENT_GONE);
	conn_close(c);
}

static const struct h2_server_cb server_cb = {.on_request = on_request, .on_malformed = on_malformed, .on_end = on_end};

/* ---- life ---- */

void conn_h2_start(struct conn *c)
{
	c->h2 = h2_server_new(c->worker->loop, c->down, &server_cb, c);
	if (!c->h2) {
		conn_close(c);
		return;
	}
	c->down = NULL;
	conn_enter(c, CONN_H2);
}

void conn_h2_drain(struct conn *c)
{
	h2_server_drain(c->h2);
}

void conn_h2_drain_after(struct conn *c)
{
	h2_server_drain_after(c->h2);
}
