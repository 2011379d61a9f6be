/* WebSocket (RFC 6455), strictly and without extensions: reject, never repair. Start reading here.
 *
 * A reader takes the bytes of one direction in any pieces and hands out events; whatever the pieces, the same events.
 * Fragments are joined: a message begins, gives pieces and ends, and control frames that came in between come in
 * between. The caller gathers the message. Writing makes every frame afresh. The handshake is checked on messages that
 * the HTTP/1 codec has read. */
#ifndef CAGE_HTTP_WS_H
#define CAGE_HTTP_WS_H

#include "core/base/slice.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/http/message.h"
#include "core/http/ws_utf8.h"

enum ws_opcode {
	WS_OP_CONTINUATION = 0,
	WS_OP_TEXT = 1,
	WS_OP_BINARY = 2,
	WS_OP_CLOSE = 8,
	WS_OP_PING = 9,
	WS_OP_PONG = 10
};

/* The codes of a close that we say or look at; a peer may send others. */
enum ws_code {
	WS_CODE_AWAY = 1001,
	WS_CODE_PROTOCOL = 1002,
	WS_CODE_NONE = 1005, /* never on the wire: the close has no payload */
	WS_CODE_NOT_UTF8 = 1007,
	WS_CODE_POLICY = 1008,
	WS_CODE_TOO_BIG = 1009
};

#define WS_KEY_BYTES 4 /* of a masking key */
#define WS_HEAD_MAX 14 /* bytes of the longest frame head */
#define WS_CONTROL_MAX 125
#define WS_REASON_MAX (WS_CONTROL_MAX - 2)

/* ---- frames in ---- */

/* Who sent the frames: a client's are masked, a server's are not. */
enum ws_role { WS_CLIENT, WS_SERVER };

enum ws_state {
	WS_STATE_HEAD,
	WS_STATE_BEGIN,   /* the head of the first frame of a message was read */
	WS_STATE_PAYLOAD, /* of a data frame */
	WS_STATE_CONTROL, /* payload of a control frame */
	WS_STATE_CLOSED,  /* a close was read: nothing may follow */
	WS_STATE_BROKEN
};

enum ws_event_kind {
	WS_NOTHING,
	WS_BEGIN, /* of a message */
	WS_PIECE, /* of its payload; never empty */
	WS_END,   /* of the message; text was UTF-8 */
	WS_PING,
	WS_PONG,
	WS_CLOSE
};

struct ws_event {
	enum ws_event_kind kind;
	enum ws_opcode opcode; /* of the message or control frame; never WS_OP_CONTINUATION */
	struct slice payload;  /* of a piece, ping or pong; reason of a close. Good until the next call */
	unsigned code;         /* of a close; WS_CODE_NONE when it has none */
};

/* Why the frames were refused. */
struct ws_error {
	enum ws_code code; /* to close with: WS_CODE_PROTOCOL, WS_CODE_NOT_UTF8 or WS_CODE_TOO_BIG */
	const char *what;  /* one plain sentence; static; says nothing of the peer's bytes */
};

struct ws_reader {
	enum ws_role from;
	enum ws_state state;
	char *buf; /* borrowed */
	size_t room;
	struct ws_error error; /* in WS_STATE_BROKEN */

	/* the frame */
	unsigned char head[WS_HEAD_MAX];
	size_t head_len, head_need;
	enum ws_opcode opcode;
	bool is_final;
	unsigned char key[WS_KEY_BYTES];
	uint64_t len, left;

	/* the message */
	enum ws_opcode message; /* WS_OP_TEXT or WS_OP_BINARY; WS_OP_CONTINUATION between two messages */
	uint64_t message_len;   /* with all of the frame at hand */
	size_t fragments;
	struct utf8 utf8;

	char control[WS_CONTROL_MAX];
};

/* buf: where masked payload is laid unmasked, room bytes, one at least; a piece is never longer. Readers may share it.
 * Pieces of a server's payload are slices of the input, and buf may be NULL. The input is never written to. */
void ws_reader_init(struct ws_reader *r, enum ws_role from, char *buf, size_t room);

/* Takes bytes from input, *used says how many, up to the next event.
 * CAGE_OK: there is an event; call again with the rest, even when that is empty. CAGE_AGAIN: all of input is used and
 * there is no event. CAGE_EOF: a close was read before; nothing is used.
 * CAGE_EPROTO, CAGE_ELIMIT: refused, now and ever after; r->error says why. A message that has begun has no end then.
 * Payload before the first byte that is not UTF-8 is still handed out. */
enum cage_status ws_read(struct ws_reader *r, struct slice input, size_t *used, struct ws_event *event) MUST_CHECK;

/* ---- frames out ---- */

/* The head of a frame with len bytes of payload. key: what the payload is masked with, NULL for none. Takes up to
 * WS_HEAD_MAX bytes. */
void ws_write_head(struct text *t, enum ws_opcode opcode, bool is_final, uint64_t len, const unsigned char *key);

/* Masks or unmasks in into out, which may be the same memory. offset: how much of the frame's payload came before. */
void ws_mask(char *out, struct slice in, const unsigned char key[WS_KEY_BYTES], uint64_t offset);

/* The payload of a close, up to WS_CONTROL_MAX bytes; empty with WS_CODE_NONE. The reason ends before the first byte
 * that is not UTF-8, and at WS_REASON_MAX bytes or the start of the character that is there. */
void ws_write_close(struct text *t, unsigned code, struct slice reason);

/* ---- handshake ---- */

#define WS_NONCE_LEN 24  /* characters of Sec-WebSocket-Key: base64 of 16 bytes */
#define WS_ACCEPT_LEN 28 /* characters of Sec-WebSocket-Accept: base64 of a SHA-1 */

/* Sec-WebSocket-Key, new and random. False when there is no randomness. */
bool ws_make_nonce(char out[WS_NONCE_LEN]) MUST_CHECK;

/* Sec-WebSocket-Accept for a nonce. False when it is not WS_NONCE_LEN long, or there is no SHA-1. */
bool ws_make_accept(struct slice nonce, char out[WS_ACCEPT_LEN]) MUST_CHECK;

enum ws_upgrade {
	WS_UPGRADE_NONE,  /* websocket is not asked for, whatever else may be */
	WS_UPGRADE_GOOD,  /* a proper opening handshake */
	WS_UPGRADE_BROKEN /* websocket is asked for, but not properly */
};

/* nonce: the value of Sec-WebSocket-Key, with WS_UPGRADE_GOOD. what: with WS_UPGRADE_BROKEN, a sentence as in
 * ws_error. Which extensions it offers is not looked at: the offer is not to be sent on. */
enum ws_upgrade ws_check_request(const struct message *request, struct slice *nonce, const char **what) MUST_CHECK;

/* Is response the 101 that agrees to websocket with this nonce, to no extension, and to none but one of the subprotocols
 * that request offers? When not, *what is a sentence as in ws_error. */
bool ws_check_response(const struct message *response, struct slice nonce, const struct message *request,
		       const char **what) MUST_CHECK;

#endif
