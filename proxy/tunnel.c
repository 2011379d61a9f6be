/* Opaque tunnels, for tunnel rules only: dialled like any upstream, logged as uninspected, bytes counted both ways. */
#include "proxy/txn.h"

void tunnel_close(struct txn *t, enum reason reason)
{
	struct conn *c = t->conn;
	txn_log_tunnel_end(t, reason);
	txn_enter(t, TXN_DONE);
	if (reason != REASON_NONE) {
		upstream_abort(&t->up);
		stream_reset(&c->down);
		conn_close(c);
		return;
	}
	stream_finish(&t->up->stream);
	conn_finish(c);
}

/* Moves what there is, as long as the other side takes it. Ends the other side after the last byte. */
static void pump(struct stream *from, struct stream *to, uint64_t *count)
{
	struct slice input = stream_input(from);
	if (input.len > 0 && !stream_is_clogged(to)) {
		stream_write(to, input);
		*count += input.len;
		stream_consume(from, input.len);
	}
	if (stream_has_ended(from) && stream_input(from).len == 0)
		stream_end(to);
}

static void pump_both(struct txn *t)
{
	struct stream *client = t->conn->down, *server = t->up->stream;
	if (!stream_is_clogged(server) && !worker_spend(t->worker, stream_input(client).len)) {
		tunnel_close(t, REASON_LIMIT_BUDGET);
		return;
	}
	pump(client, server, &t->bytes_out);
	pump(server, client, &t->bytes_in);
	if (stream_has_ended(client) && stream_has_ended(server) && stream_input(client).len == 0 &&
	    stream_input(server).len == 0)
		tunnel_close(t, REASON_NONE);
}

static void on_ready(struct stream *s, void *arg)
{
	(void)s, (void)arg; /* no TLS of ours in here */
}

static void on_moved(struct stream *s, void *arg)
{
	(void)s;
	pump_both(arg);
}

static void on_client_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	if (why == CAGE_EOF)
		pump_both(arg);
	else
		tunnel_close(arg, why == CAGE_ETIMEOUT ? REASON_CLIENT_TIMEOUT : REASON_CLIENT_GONE);
}

static void on_server_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	if (why == CAGE_EOF)
		pump_both(arg);
	else
		tunnel_close(arg, why == CAGE_ETIMEOUT ? REASON_UPSTREAM_TIMEOUT : REASON_UPSTREAM_TRUNCATED);
}

static const struct stream_cb client_cb = {
	.on_ready = on_ready, .on_data = on_moved, .on_drained = on_moved, .on_end = on_client_end};
static const struct stream_cb server_cb = {
	.on_ready = on_ready, .on_data = on_moved, .on_drained = on_moved, .on_end = on_server_end};

static void on_reached(void *arg, const struct upstream_result *r)
{
	struct txn *t = arg;
	struct conn *c = t->conn;
	t->reach = NULL;
	t->reached = *r;
	t->up = r->up;
	if (r->reason != REASON_NONE) {
		txn_refuse(t, r->reason, STAGE_UPSTREAM, NULL);
		return;
	}
	if (!txn_log_intent(t, REASON_UNINSPECTED))
		return;
	txn_enter(t, TXN_TUNNEL);
	conn_enter(c, CONN_TUNNEL);
	stream_set_owner(c->down, &client_cb, t);
	stream_set_owner(t->up->stream, &server_cb, t);
	stream_set_idle(c->down, LIMIT_RESPONSE_IDLE_MS);
	stream_set_stall(c->down, 0); /* nobody knows what a pause means in there */
	stream_set_idle(t->up->stream, LIMIT_RESPONSE_IDLE_MS);
	conn_answer_connected(c);
	pump_both(t);
}

void tunnel_start(struct txn *t)
{
	struct upstream_want want = txn_want(t, false);
	txn_enter(t, TXN_GATHER);
	if (!txn_may_log(t))
		return;
	t->reach = upstream_reach(t->worker, &want, on_reached, t);
	if (!t->reach)
		txn_refuse(t, REASON_INTERNAL, STAGE_UPSTREAM, NULL);
}
