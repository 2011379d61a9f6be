/* A transaction: one request and its response.
 *
 *	DECIDE -> GATHER -> SEND -> RELAY -> DONE      a request
 *	DECIDE -> GATHER -> SEND -> WEBSOCKET -> DONE  a request that became a websocket (txn_ws.h)
 *	DECIDE -> GATHER -> TUNNEL -> DONE             an opaque tunnel
 *
 *	DECIDE  the head is there: canonical target, policy
 *	GATHER  the body is held while the upstream is reached; a refusal is still a clean one
 *	SEND    intent logged, head sent; the body follows; the response has not begun
 *	RELAY   the response flows; the body may still
 *
 * txn_enter() alone changes the state. The request's head and all that is derived from it live in the arena. */
#ifndef CAGE_PROXY_TXN_H
#define CAGE_PROXY_TXN_H

#include "core/base/arena.h"
#include "core/base/fifo.h"
#include "core/http/h1.h"
#include "core/http/url.h"
#include "inspectors/chain.h"
#include "proxy/conn.h"
#include "proxy/inject.h"
#include "proxy/upstream.h"

enum txn_state { TXN_DECIDE, TXN_GATHER, TXN_SEND, TXN_RELAY, TXN_WEBSOCKET, TXN_TUNNEL, TXN_DONE };

/* What the log knows of the transaction. */
enum txn_logged { LOGGED_NOTHING, LOGGED_INTENT, LOGGED_ALL };

/* Secrets and the body. */
enum body_change {
	BODY_AS_IS,
	BODY_CHANGED, /* what is held has them in it */
	BODY_CHANGES  /* it is sent through the injector, in chunks */
};

#define TXN_MAGIC 0x7a6e5d01u

struct txn {
	unsigned magic;
	struct conn *conn;
	struct worker *worker;
	struct generation *gen;
	struct arena arena;
	uint64_t id;
	uint64_t start_us;
	enum txn_state state;
	enum txn_logged logged;

	struct message req;
	struct target target; /* host.text is empty until it is known */
	struct policy_verdict verdict;
	struct slice logged_path;

	/* the body on its way out */
	struct h1_body body;
	struct fifo held;
	size_t held_sent;          /* bytes at the front of held that were sent, and are kept for a replay */
	bool replayable;           /* the whole request is held until the response begins */
	enum body_framing req_out; /* how it is sent */
	uint64_t req_out_length;
	bool request_done; /* all of it is with the upstream stream */
	bool client_owes;  /* more of the body is wanted: the client's time for it runs */
	unsigned retries;
	uint64_t body_bytes;       /* seen so far */
	enum reason observed_late; /* found after the intent was logged, and only observed */

	/* the inspectors */
	struct chain_run *inspect;
	size_t lag; /* how far sending stays behind what was shown to them */
	size_t turn; /* bytes of the body that are taken before others get their turn: messages in it cost more than bytes */
	bool inspect_holds; /* one of them has not said yet whether it may go on */
	bool inspected;     /* all of the request was shown to them */
	uint64_t hold_since_us;
	size_t unanswered_bytes; /* of the body, shown to them since they last let it go on */
	uint64_t inspect_us;
	size_t n_findings_logged;
	bool hides_known;         /* without an inspection: ... */
	unsigned hides;           /* ... places where a secret stands, one bit each */
	enum reason block_logged; /* of the finding that blocks and stands in some line */

	uint64_t bytes_out, bytes_in;

	/* secrets; bits are by index in the policy */
	const struct slice *placeholders; /* of this sandbox, by index in the policy; NULL: there are no secrets */
	struct inject_plan plan;
	const struct slice *body_placeholders;
	size_t n_body_placeholders;
	struct slice *values;      /* by place in the plan; borrowed */
	struct arena secret_arena; /* what carries values */
	enum body_change body_change;
	struct body_injector *body_injector; /* with BODY_CHANGES */
	struct redaction *redaction;         /* NULL: the response is passed on as it is */
	uint64_t injected, redacted;
	uint64_t injected_late; /* into messages */

	struct txn_ws *ws; /* NULL: no websocket is asked for */

	struct reach *reach;
	struct upstream *up;
	struct upstream_result reached; /* times and address */

	/* the response */
	struct h1_gate resp_gate;
	struct message resp;
	struct h1_body resp_body;
	enum body_framing resp_out; /* how the client gets it */
	bool client_close;          /* said in the response head: the connection ends after it */
	unsigned interim;           /* 1xx seen */
	uint64_t resp_bytes;
	enum cage_status up_end; /* how the upstream ended; CAGE_OK: it has not */
};

/* Takes the head that the gate has let through off the client's input. */
void txn_start(struct conn *c, struct slice head);

/* The same for what was asked for in another way than by a CONNECT, but means the same. host: as in its target, any
 * bytes. */
void txn_connect(struct conn *c, struct slice host, uint16_t port);

/* The client's stream has input, room, or an end. */
void txn_client_data(struct txn *t);
void txn_client_drained(struct txn *t);
void txn_client_ended(struct txn *t, enum cage_status why);

/* Refuses (or reports an upstream's failure) in the way that this stage still allows: a response, or a reset. Logs.
 * Ends the transaction. */
void txn_refuse(struct txn *t, enum reason reason, enum audit_stage stage, const char *detail);

/* Ends it and the connection with a reset: nobody is there to be told, or half a response is out. Logs. */
void txn_abandon(struct txn *t, enum reason reason, enum audit_stage stage);

/* Gives everything back. An intent that has no result yet gets one: internal.error. */
void txn_free(struct txn *t);

/* ---- between the files of the transaction ---- */

/* Why a client that has ended so is not served any more. */
enum reason txn_client_end(const struct txn *t, enum cage_status why);

void txn_enter(struct txn *t, enum txn_state next);
void txn_event(struct txn *t, struct audit_event *e, enum audit_kind kind);

/* Logs the result, or the refusal; once. */
void txn_log_end(struct txn *t, enum reason reason, enum audit_stage stage, int status);

/* Can an intent be logged? Refuses the transaction when not. */
bool txn_may_log(struct txn *t);

/* Logs the intent, with `allowed` as the reason when the policy has none. Refuses the transaction when it can't. */
bool txn_log_intent(struct txn *t, enum reason allowed);

struct upstream_want txn_want(struct txn *t, bool tls);
void txn_drop_held(struct txn *t, size_t n);

/* The client has shown who it is: goes on under the policy of its seat. false: no memory. */
bool txn_take_policy(struct txn *t) MUST_CHECK;

/* txn_decide.c: REASON_NONE, or why not; *detail for the refusal. */
enum reason txn_decide(struct txn *t, const char **detail);

/* txn_override.c: the same for what fields of the request make of it in the eyes of some origins. */
enum reason txn_check_overrides(struct txn *t, const char **detail);

/* What follows a body that is sent as out says: its trailers, where they have a place. inner: to HTTP/2. */
void txn_write_end(struct text *end, const struct h1_body *body, enum body_framing out, bool inner);

/* Writes piece as one chunk; how many bytes that made. */
size_t txn_write_chunk(struct stream *s, struct slice piece);
size_t txn_write_chunk_secret(struct stream *s, struct slice piece);

/* txn_inspect.c: the chain's answers: REASON_NONE, or why the request is refused. */
enum reason txn_inspect_name(struct txn *t);
enum reason txn_inspect_head(struct txn *t);
enum reason txn_inspect_body(struct txn *t, struct slice piece);
enum reason txn_inspect_end(struct txn *t);
enum reason txn_inspect_answered(struct txn *t); /* one that was on hold */

/* Findings that no line has yet, at most max of them, go into this one. */
void txn_add_findings(struct txn *t, struct audit_event *e, size_t max);

/* Was a secret found in that place, so that the log must not show it? */
bool txn_hides(struct txn *t, enum place place);

/* Where and what the finding is that blocks, for the refusal; NULL: nothing to add. */
const char *txn_finding_detail(struct txn *t);

uint64_t txn_retry_after_s(const struct txn *t);

/* For the chain: a transaction that was on hold goes on. */
void txn_inspect_resumed(void *txn);

/* txn_request.c: may it be sent again when nobody knows what became of it? */
bool txn_is_idempotent(const struct txn *t);

/* Does the rule that applies only observe? */
bool txn_observes(const struct txn *t);
void txn_gather(struct txn *t);

/* What comes after the decision: gathering, unless the inspectors hold it back. */
void txn_go_on(struct txn *t);
void txn_pump_request(struct txn *t);

/* txn_secrets.c: what may be put in where, before the inspectors; REASON_NONE or why the request is refused. */
enum reason txn_plan_secrets(struct txn *t, const char **detail);

enum secrets_answer { SECRETS_READY, SECRETS_WAIT, SECRETS_FAILED };

/* The values that this request needs. With SECRETS_WAIT txn_secrets_came() follows. */
enum secrets_answer txn_get_secrets(struct txn *t);
void txn_secrets_came(void *txn);

/* Makes head and target, copies of the request's, what is sent. */
enum reason txn_put_in_secrets(struct txn *t, struct message *head, struct target *target, const char **detail);

/* Puts them into the body: at once if it is here as a whole, else as it goes. */
enum cage_status txn_change_body(struct txn *t);
enum cage_status txn_send_changed(struct txn *t, struct slice piece);
enum cage_status txn_end_changed(struct txn *t);

/* Does it get a signature, so that all of it has to be there first? */
bool txn_is_signed(const struct txn *t);

/* Makes what is held what is sent, and counts it in the worker's budget. */
enum cage_status txn_change_message(struct txn *t, struct fifo *held, enum inject_escape how);

/* Why secrets can't be put into a body or message. */
enum reason txn_body_fault(enum cage_status st, const char **detail);
uint64_t txn_injected_late(struct txn *t); /* into the body, after the intent was logged */
void txn_drop_secrets(struct txn *t);

/* How many ids. */
size_t txn_secret_ids(const struct txn *t, uint64_t bits, struct slice ids[LIMIT_LOG_SECRETS]);

/* txn_redact.c: what the client's request asks of the server, so that we can read the answer. */
void txn_ask_for_readable(const struct txn *t, struct message *head);

/* Takes values out of a response. Anything but CAGE_OK: it must not go on. */
enum cage_status txn_clean_head(struct txn *t, struct slice head); /* t->resp was read from head */
enum cage_status txn_clean_trailers(struct txn *t);

/* The body; t->redaction stays NULL when there is nothing to do. */
enum cage_status txn_begin_redaction(struct txn *t);
bool txn_redaction_holds(const struct txn *t); /* until the body is whole, nothing is sent, not even the head */
bool txn_redaction_decodes(const struct txn *t);
enum cage_status txn_redact_piece(struct txn *t, struct slice piece);
enum cage_status txn_end_redaction(struct txn *t);
uint64_t txn_redaction_length(const struct txn *t); /* of what it holds */
void txn_release_redacted(struct txn *t);
void txn_drop_redaction(struct txn *t);

/* txn_response.c */
void txn_pass_piece(struct txn *t, struct slice data); /* to the client */
bool txn_relay_head(struct txn *t, uint64_t length);   /* false: it does not fit */
bool txn_relay_upgrade(struct txn *t);                 /* the same of a 101 */

/* Is the response one of gRPC? */
bool txn_answers_grpc(const struct txn *t);

/* Ends a response of gRPC, over HTTP/2, with the status that tells the client why. false: it is none, or has no place for it. */
bool txn_refuse_in_trailers(struct txn *t, const struct refusal *r);
void txn_pump_response(struct txn *t);
void txn_resume_response(struct txn *t); /* after the client's stream was clogged */
extern const struct stream_cb txn_upstream_cb;

/* Where the exchange ends well. */
void txn_complete(struct txn *t);

/* Logs the end of a tunnel. */
void txn_log_tunnel_end(struct txn *t, enum reason reason);

/* tunnel.c: the CONNECT of t was allowed by a tunnel rule. */
void tunnel_start(struct txn *t);

/* Ends a tunnel; reason REASON_NONE when both sides have ended. */
void tunnel_close(struct txn *t, enum reason reason);

#endif
