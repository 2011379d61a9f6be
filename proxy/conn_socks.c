/* Connections that begin with SOCKS5: who asks, and where to. Then they go the way of a CONNECT. */
#include "core/http/socks5.h"
#include "proxy/auth.h"
#include "proxy/conn.h"
#include "proxy/txn.h"

/* Says no, with a line in the log. */
static void refuse(struct conn *c, enum reason reason, struct slice answer)
{
	conn_log(c, DECISION_BLOCK, reason, STAGE_CONNECT, worker_new_id(c->worker));
	stream_write(c->down, answer);
	conn_finish(c);
}

/* Without --auth there is nothing to compare with, and whatever a client insists on telling is fine. */
static enum reason identify(struct conn *c, const struct socks5_step *step)
{
	const struct worker *w = c->worker;
	size_t seat = 0;
	if (!w->config->has_auth)
		return REASON_NONE;
	enum reason reason = auth_check_pair(w->seats, w->n_taken, step->user, step->password, &seat);
	if (reason == REASON_NONE)
		conn_identify(c, seat);
	return reason;
}

static void take_identity(struct conn *c, const struct socks5_step *step)
{
	enum reason reason = identify(c, step);
	struct slice answer = socks5_judge(&c->socks, reason == REASON_NONE);
	stream_consume(c->down, step->used);
	if (reason != REASON_NONE)
		refuse(c, reason, answer);
	else
		stream_write(c->down, answer);
}

/* The name may have any bytes: txn_connect() reads it as it reads the target of a CONNECT. */
static void take_target(struct conn *c, const struct socks5_step *step)
{
	char room[SOCKS5_MESSAGE];
	struct text host = text_in(room, sizeof(room));
	text_put(&host, step->host);
	stream_consume(c->down, step->used);
	txn_connect(c, text_slice(&host), step->port);
}

static void take_step(struct conn *c, enum socks5_event event, const struct socks5_step *step)
{
	switch (event) {
	case SOCKS5_MORE:
		break;
	case SOCKS5_ANSWER:
		stream_consume(c->down, step->used);
		stream_write(c->down, step->answer);
		break;
	case SOCKS5_IDENTITY:
		take_identity(c, step);
		break;
	case SOCKS5_CONNECT:
		take_target(c, step);
		break;
	case SOCKS5_REFUSE:
		refuse(c, step->reason, step->answer);
		break;
	}
}

void conn_socks_begin(struct conn *c)
{
	c->socks = (struct socks5){.needs_identity = c->worker->config->has_auth};
}

void conn_socks_look(struct conn *c)
{
	enum socks5_event event = SOCKS5_ANSWER;
	if (worker_must_wait_for_log(c->worker))
		return;
	while (c->state == CONN_SOCKS && event != SOCKS5_MORE) { /* once for each of the three messages */
		struct socks5_step step;
		event = socks5_read(&c->socks, stream_input(c->down), &step);
		take_step(c, event, &step);
	}
	if (c->state == CONN_SOCKS && stream_has_ended(c->down))
		conn_ended_early(c, CAGE_EOF);
}
