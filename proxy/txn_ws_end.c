/* How a websocket ends: what the log says of it, and the close that each side gets. The client is told why in the
 * reason of its close, the server only that it is over. */
#include "proxy/txn_ws.h"

#define VIEW_ROOM 64

/* ---- the log ---- */

static struct slice where_of(enum ws_opcode opcode)
{
	switch (opcode) {
	case WS_OP_PING:
		return SLICE("ping");
	case WS_OP_PONG:
		return SLICE("pong");
	case WS_OP_CLOSE:
		return SLICE("close");
	case WS_OP_CONTINUATION:
	case WS_OP_TEXT:
	case WS_OP_BINARY:
		break;
	}
	return SLICE("message");
}

static struct audit_finding to_log(const struct finding *f, struct slice where, char room[VIEW_ROOM])
{
	struct text view = text_in(room, VIEW_ROOM);
	chain_put_view(&view, &f->spot.view);
	return (struct audit_finding){.inspector = f->by->name,
				      .action = f->action == ACTION_BLOCK ? DECISION_BLOCK : DECISION_FLAG,
				      .reason = f->reason,
				      .id = f->id,
				      .where = where,
				      .view = text_slice(&view),
				      .offset = f->spot.offset,
				      .fingerprint = f->fingerprint};
}

/* The line of a message: what was found, and what became of it. */
static bool log_message(struct txn *t, const struct ws_item *item, struct audit_event e)
{
	struct audit_finding found[LIMIT_FINDINGS];
	char views[LIMIT_FINDINGS][VIEW_ROOM];
	size_t n = 0;
	const struct finding *list = item->run ? chain_findings(item->run, &n) : NULL;
	for (size_t i = 0; i < n; i++)
		found[i] = to_log(&list[i], where_of(item->opcode), views[i]);
	e.path = SLICE_NONE;
	e.stage = STAGE_MESSAGE;
	e.findings = found;
	e.n_findings = n;
	return worker_log_note(t->worker, &e);
}

bool txn_ws_log_findings(struct txn *t, const struct ws_item *item)
{
	struct audit_event e;
	size_t n = 0;
	const struct finding *list = item->run ? chain_findings(item->run, &n) : NULL;
	const struct finding *block = item->run ? chain_block(item->run) : NULL;
	if (n == 0)
		return true;
	txn_event(t, &e, AUDIT_MESSAGE);
	e.decision = block ? DECISION_BLOCK : DECISION_FLAG;
	e.observed = block != NULL;
	e.reason = block ? block->reason : list[0].reason;
	return log_message(t, item, e);
}

/* ---- closes ---- */

static bool is_failure(enum reason r)
{
	return refusal_is_upstream_failure(r) || r == REASON_CLIENT_GONE || r == REASON_CLIENT_TIMEOUT;
}

/* After what has begun to be sent, unless there was a close already. */
static void close_way(struct txn *t, struct ws_way *w, unsigned code, struct slice reason)
{
	if (w->state == WAY_SENDS)
		(void)ws_send_frame(t, w, true);
	if (w->state != WAY_CLOSED)
		(void)ws_send_close(t, w, code, reason); /* without randomness there is none: it ends all the same */
}

/* "blocked_by_cage secret.detected 0123456789abcdef" */
static void tell(struct txn *t, enum reason reason, unsigned to_client, unsigned to_server)
{
	char room[WS_REASON_MAX];
	struct text words = text_in(room, sizeof(room));
	text_put(&words, is_failure(reason) ? SLICE("upstream_failed ") : SLICE("blocked_by_cage "));
	text_put(&words, reason_code(reason));
	text_put_char(&words, ' ');
	text_put_hex64(&words, t->id);
	close_way(t, &t->ws->in, to_client, text_slice(&words));
	close_way(t, &t->ws->out, to_server, SLICE_NONE);
}

/* Both sides get what is queued; one that is gone does not. */
static void leave(struct txn *t, enum reason reason)
{
	struct conn *c = t->conn;
	txn_enter(t, TXN_DONE);
	if (reason == REASON_UPSTREAM_TRUNCATED)
		upstream_close(&t->up);
	else
		upstream_finish(&t->up);
	if (reason == REASON_CLIENT_GONE)
		conn_close(c);
	else
		conn_finish(c);
}

static unsigned code_for(enum reason r)
{
	return is_failure(r) || r == REASON_SHUTTING_DOWN ? WS_CODE_AWAY : WS_CODE_POLICY;
}

void txn_ws_end(struct txn *t, enum reason reason, enum audit_stage stage)
{
	tell(t, reason, code_for(reason), WS_CODE_AWAY);
	txn_log_end(t, reason, stage, t->resp.status);
	leave(t, reason);
}

void txn_ws_stop(struct txn *t, const struct ws_item *item, enum reason reason, unsigned code)
{
	struct audit_event e;
	txn_event(t, &e, AUDIT_MESSAGE);
	e.decision = is_failure(reason) ? DECISION_ERROR : DECISION_BLOCK;
	e.reason = reason;
	(void)log_message(t, item, e); /* one that finds no place is counted; the message stays where it is */
	tell(t, reason, code ? code : code_for(reason), code ? code : WS_CODE_AWAY);
	txn_log_end(t, REASON_NONE, STAGE_RESPONSE, t->resp.status);
	leave(t, reason);
}

/* A side that is gone without an answer to the close has none that can be passed on: the other gets its own code
 * back. */
void txn_ws_end_closed(struct txn *t)
{
	struct txn_ws *ws = t->ws;
	close_way(t, &ws->in, ws->out.code, SLICE_NONE);
	close_way(t, &ws->out, ws->in.code, SLICE_NONE);
	txn_log_end(t, REASON_NONE, STAGE_RESPONSE, t->resp.status);
	leave(t, REASON_NONE);
}
