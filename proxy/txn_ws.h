/* A transaction that has become a websocket. Start reading here.
 *
 * Each direction is a way: frames are read strictly, a message is gathered whole, and then sent as one frame of our
 * own, so that nothing of the peer's choice but the payload goes through: neither masks nor the cuts between fragments.
 *
 *	READS -> SENDS -> READS ...     a message, as the other side takes it
 *	READS -> ASKS -> SENDS          the inspectors, or the value of a secret, are waited for
 *	READS -> CLOSED                 a close went through: nothing follows
 *
 * On the way out a message and the payload of a control frame are shown to the inspectors, each in a run of its own,
 * and secrets are put into messages then. On the way in values are taken out. What is wrong with a message is in a line
 * of its own in the log, and ends both ways with a close. */
#ifndef CAGE_PROXY_TXN_WS_H
#define CAGE_PROXY_TXN_WS_H

#include <event2/event.h>

#include "core/http/ws.h"
#include "proxy/txn.h"

struct redactor;

enum ws_way_state { WAY_READS, WAY_ASKS, WAY_SENDS, WAY_CLOSED };

/* A message, or the payload of a control frame. */
struct ws_item {
	enum ws_opcode opcode;
	unsigned code; /* of a close */
	struct fifo held;

	/* on the way out */
	struct chain_run *run; /* NULL: there is nothing to look at */
	struct arena arena;    /* of the run */
	size_t unanswered;     /* bytes shown since the inspectors last let it go on */

	/* on the way in; NULL: no values are known */
	struct redactor *redactor;
	struct known_set *values;
	enum cage_status status; /* what the redactor's sink has met */
};

struct ws_way {
	enum ws_way_state state;
	struct ws_reader reader;
	struct ws_item message, control; /* a control frame may come inside a message */
	struct ws_item *whole;           /* in WAY_ASKS: the one that waits */

	/* the frame that is sent, in WAY_SENDS */
	unsigned char key[WS_KEY_BYTES]; /* on the way out */
	uint64_t sent;

	unsigned code; /* of the close, in WAY_CLOSED */
};

struct txn_ws {
	struct slice client_key; /* Sec-WebSocket-Key as it came */
	char key[WS_NONCE_LEN];  /* ours */
	struct ws_way out, in;
	struct ws_item batch;        /* small frames, ready to leave together: the end of each turn finds it empty */
	struct chain_stream *stream; /* of the way out */
	struct event *turn;          /* there is more to do, after others had their turn */
};

/* ---- txn_ws.c ---- */

/* Is a websocket asked for? Then t->ws is there. REASON_NONE, or why the request is refused. */
enum reason txn_ws_check(struct txn *t, const char **detail);

/* Before the request is written: a key of our own takes the place of the client's, which could carry anything. */
bool txn_ws_offer(struct txn *t);

/* The server has answered with 101. */
void txn_ws_start(struct txn *t);

/* Whatever can go on does. */
void txn_ws_pump(struct txn *t);
void txn_ws_client_ended(struct txn *t, enum cage_status why);
void txn_ws_free(struct txn *t);

/* ---- txn_ws_end.c: each of these is the end of the transaction ---- */

/* Not about a message: the policy has changed, a side is gone or silent. */
void txn_ws_end(struct txn *t, enum reason reason, enum audit_stage stage);

/* Both sides have closed, or one has and the other is gone. */
void txn_ws_end_closed(struct txn *t);

/* The message must not go on; code: what both sides are told, 0: what goes with the reason. */
void txn_ws_stop(struct txn *t, const struct ws_item *item, enum reason reason, unsigned code);

/* A line about a message that goes on, if something was found in it. false: it can't be logged. */
bool txn_ws_log_findings(struct txn *t, const struct ws_item *item);

/* ---- between the files ---- */

enum ws_step {
	STEP_ON,
	STEP_WAIT,
	STEP_OVER /* the transaction is gone */
};

/* txn_ws_out.c, txn_ws_in.c: one step of that way. */
enum ws_step ws_step_out(struct txn *t);
enum ws_step ws_step_in(struct txn *t);

/* txn_ws_out.c: what was gathered on the way out may leave, or ends it all. STEP_ON or STEP_OVER. */
enum ws_step ws_release(struct txn *t);

/* txn_ws_send.c */
void ws_way_enter(struct ws_way *w, enum ws_way_state next);

/* Keeps bytes of it, within the worker's budget. */
enum cage_status ws_item_put(struct txn *t, struct ws_item *item, struct slice bytes);
void ws_item_drop(struct txn *t, struct ws_item *item);

/* Begins to send the message of that way. false: there is no randomness. */
bool ws_begin_frame(struct txn *t, struct ws_way *w);

/* Sends of it what the other side takes, or with force all; true when that is all. */
bool ws_send_frame(struct txn *t, struct ws_way *w, bool force);

/* A whole control frame, at once. false: there is no randomness. */
bool ws_send_control(struct txn *t, struct ws_way *w, enum ws_opcode opcode, struct slice payload);

/* A close; nothing follows on that way. */
bool ws_send_close(struct txn *t, struct ws_way *w, unsigned code, struct slice reason);

/* A small message or control frame, as the frame that it will be, goes to the end of the batch. false: there is no
 * randomness, or no room. */
bool ws_gather(struct txn *t, struct ws_item *item);

/* Sends what is in the batch. */
void ws_send_batch(struct txn *t);

/* A control frame that came whole goes on as it is held. */
bool ws_pass_control(struct txn *t, struct ws_way *w);

#endif
