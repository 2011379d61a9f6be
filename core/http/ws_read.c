/* Frames in: a head is gathered byte by byte and refused at the first byte that is wrong; payload goes through as it
 * comes. Nothing is kept but the payload of a control frame. */
#include "core/http/ws_private.h"

#include "core/base/limits.h"

void ws_reader_init(struct ws_reader *r, enum ws_role from, char *buf, size_t room)
{
	*r = (struct ws_reader){.from = from, .buf = buf, .room = room, .head_need = WS_HEAD_MIN};
}

static enum cage_status refuse(struct ws_reader *r, enum ws_code code, const char *what)
{
	r->state = WS_STATE_BROKEN;
	r->error = (struct ws_error){code, what};
	return code == WS_CODE_TOO_BIG ? CAGE_ELIMIT : CAGE_EPROTO;
}

static bool is_control(enum ws_opcode opcode)
{
	return opcode >= WS_OP_CLOSE;
}

/* ---- heads ---- */

static enum cage_status check_opcode(struct ws_reader *r)
{
	switch (r->opcode) {
	case WS_OP_CONTINUATION:
		if (r->message == WS_OP_CONTINUATION)
			return refuse(r, WS_CODE_PROTOCOL, "a continuation frame has nothing to continue");
		return CAGE_OK;
	case WS_OP_TEXT:
	case WS_OP_BINARY:
		if (r->message != WS_OP_CONTINUATION)
			return refuse(r, WS_CODE_PROTOCOL, "a message begins inside another");
		return CAGE_OK;
	case WS_OP_CLOSE:
	case WS_OP_PING:
	case WS_OP_PONG:
		if (!r->is_final)
			return refuse(r, WS_CODE_PROTOCOL, "a control frame is fragmented");
		return CAGE_OK;
	}
	return refuse(r, WS_CODE_PROTOCOL, "a frame has a reserved opcode");
}

static enum cage_status first_byte(struct ws_reader *r, unsigned char c)
{
	if (c & WS_BIT_RESERVED)
		return refuse(r, WS_CODE_PROTOCOL, "a frame has a reserved bit set");
	r->is_final = c & WS_BIT_FINAL;
	r->opcode = (enum ws_opcode)(c & ~WS_BIT_FINAL);
	return check_opcode(r);
}

/* How many bytes of the head say the length, beside the second one. */
static size_t len_bytes(unsigned char second)
{
	unsigned len = second & WS_LEN_BITS;
	return len == WS_LEN_16 ? 2 : len == WS_LEN_64 ? 8 : 0;
}

static enum cage_status second_byte(struct ws_reader *r, unsigned char c)
{
	bool is_masked = c & WS_BIT_MASKED;
	if (is_masked && r->from == WS_SERVER)
		return refuse(r, WS_CODE_PROTOCOL, "a frame of a server is masked");
	if (!is_masked && r->from == WS_CLIENT)
		return refuse(r, WS_CODE_PROTOCOL, "a frame of a client is not masked");
	if (is_control(r->opcode) && (c & WS_LEN_BITS) > WS_CONTROL_MAX)
		return refuse(r, WS_CODE_PROTOCOL, "a control frame is too long");
	r->head_need = WS_HEAD_MIN + len_bytes(c) + (is_masked ? WS_KEY_BYTES : 0);
	return CAGE_OK;
}

static enum cage_status read_len(struct ws_reader *r)
{
	size_t bytes = len_bytes(r->head[1]);
	uint64_t len = bytes ? 0 : r->head[1] & WS_LEN_BITS;
	for (size_t i = 0; i < bytes; i++)
		len = len << 8 | r->head[WS_HEAD_MIN + i];
	if (len > INT64_MAX)
		return refuse(r, WS_CODE_PROTOCOL, "the length of a frame has its top bit set");
	if ((bytes == 2 && len < WS_LEN_16) || (bytes == 8 && len <= UINT16_MAX))
		return refuse(r, WS_CODE_PROTOCOL, "the length of a frame is not in its shortest form");
	r->len = r->left = len;
	return CAGE_OK;
}

static enum cage_status begin_data(struct ws_reader *r)
{
	if (r->len > LIMIT_WS_MESSAGE - r->message_len)
		return refuse(r, WS_CODE_TOO_BIG, "a message is too long");
	if (r->fragments == LIMIT_WS_FRAGMENTS)
		return refuse(r, WS_CODE_TOO_BIG, "a message has too many fragments");
	r->message_len += r->len;
	r->fragments++;
	r->state = r->opcode == WS_OP_CONTINUATION ? WS_STATE_PAYLOAD : WS_STATE_BEGIN;
	return CAGE_OK;
}

/* The head is whole. */
static enum cage_status begin_frame(struct ws_reader *r)
{
	enum cage_status st = read_len(r);
	if (st != CAGE_OK)
		return st;
	if (r->from == WS_CLIENT)
		memcpy(r->key, r->head + r->head_need - WS_KEY_BYTES, WS_KEY_BYTES);
	r->head_len = 0;
	r->head_need = WS_HEAD_MIN;
	if (!is_control(r->opcode))
		return begin_data(r);
	r->state = WS_STATE_CONTROL;
	return CAGE_OK;
}

static enum cage_status take_head(struct ws_reader *r, struct slice *rest)
{
	enum cage_status st = CAGE_OK;
	if (rest->len == 0)
		return CAGE_AGAIN;
	unsigned char c = (unsigned char)rest->ptr[0];
	*rest = slice_from(*rest, 1);
	r->head[r->head_len++] = c;
	if (r->head_len == 1)
		st = first_byte(r, c);
	else if (r->head_len == 2)
		st = second_byte(r, c);
	if (st == CAGE_OK && r->head_len == r->head_need)
		st = begin_frame(r);
	return st;
}

/* ---- messages ---- */

static void begin_message(struct ws_reader *r, struct ws_event *event)
{
	r->message = r->opcode;
	r->state = WS_STATE_PAYLOAD;
	*event = (struct ws_event){.kind = WS_BEGIN, .opcode = r->message};
}

static enum cage_status end_data(struct ws_reader *r, struct ws_event *event)
{
	r->state = WS_STATE_HEAD;
	if (!r->is_final)
		return CAGE_OK;
	if (!utf8_is_whole(&r->utf8))
		return refuse(r, WS_CODE_NOT_UTF8, "a text ends inside a character");
	*event = (struct ws_event){.kind = WS_END, .opcode = r->message};
	r->message = WS_OP_CONTINUATION;
	r->message_len = 0;
	r->fragments = 0;
	return CAGE_OK;
}

/* The payload at the front of rest, unmasked. */
static struct slice find_piece(struct ws_reader *r, struct slice rest)
{
	struct slice piece = rest.len > r->left ? slice_head(rest, (size_t)r->left) : rest;
	if (r->from == WS_SERVER)
		return piece;
	piece = slice_head(piece, r->room);
	ws_mask(r->buf, piece, r->key, r->len - r->left);
	return slice_of(r->buf, piece.len);
}

static enum cage_status take_data(struct ws_reader *r, struct slice *rest, struct ws_event *event)
{
	if (r->left == 0)
		return end_data(r, event);
	if (rest->len == 0)
		return CAGE_AGAIN;
	struct slice piece = find_piece(r, *rest);
	if (r->message == WS_OP_TEXT)
		piece.len = utf8_span(&r->utf8, piece);
	if (piece.len == 0)
		return refuse(r, WS_CODE_NOT_UTF8, "a text is not UTF-8");
	r->left -= piece.len;
	*rest = slice_from(*rest, piece.len);
	*event = (struct ws_event){.kind = WS_PIECE, .opcode = r->message, .payload = piece};
	return CAGE_OK;
}

/* ---- control frames ---- */

/* Those of RFC 6455, 7.4, and of the registry that it set up; 1004 to 1006 and 1015 are never sent. */
static bool is_close_code(unsigned code)
{
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

static enum cage_status end_close(struct ws_reader *r, struct ws_event *event)
{
	struct utf8 utf8 = {0};
	struct slice reason = slice_from(event->payload, 2);
	event->kind = WS_CLOSE;
	event->code = WS_CODE_NONE;
	if (r->len == 1)
		return refuse(r, WS_CODE_PROTOCOL, "a close has half a code");
	if (r->len >= 2)
		event->code = (unsigned)(unsigned char)r->control[0] << 8 | (unsigned char)r->control[1];
	if (r->len >= 2 && !is_close_code(event->code))
		return refuse(r, WS_CODE_PROTOCOL, "a close has a code that may not be sent");
	if (utf8_span(&utf8, reason) != reason.len || !utf8_is_whole(&utf8))
		return refuse(r, WS_CODE_NOT_UTF8, "the reason of a close is not UTF-8");
	event->payload = reason;
	r->state = WS_STATE_CLOSED;
	return CAGE_OK;
}

static enum cage_status end_control(struct ws_reader *r, struct ws_event *event)
{
	*event = (struct ws_event){.opcode = r->opcode, .payload = slice_of(r->control, (size_t)r->len)};
	if (r->opcode == WS_OP_CLOSE)
		return end_close(r, event);
	event->kind = r->opcode == WS_OP_PING ? WS_PING : WS_PONG;
	r->state = WS_STATE_HEAD;
	return CAGE_OK;
}

static enum cage_status take_control(struct ws_reader *r, struct slice *rest, struct ws_event *event)
{
	size_t at = (size_t)(r->len - r->left);
	struct slice piece = slice_head(*rest, (size_t)r->left);
	if (r->from == WS_CLIENT)
		ws_mask(r->control + at, piece, r->key, at);
	else if (piece.len > 0)
		memcpy(r->control + at, piece.ptr, piece.len);
	*rest = slice_from(*rest, piece.len);
	r->left -= piece.len;
	return r->left == 0 ? end_control(r, event) : CAGE_AGAIN;
}

static enum cage_status step(struct ws_reader *r, struct slice *rest, struct ws_event *event)
{
	switch (r->state) {
	case WS_STATE_HEAD:
		return take_head(r, rest);
	case WS_STATE_BEGIN:
		begin_message(r, event);
		return CAGE_OK;
	case WS_STATE_PAYLOAD:
		return take_data(r, rest, event);
	case WS_STATE_CONTROL:
		return take_control(r, rest, event);
	case WS_STATE_CLOSED:
		return CAGE_EOF;
	case WS_STATE_BROKEN:
		break;
	}
	return refuse(r, r->error.code, r->error.what);
}

enum cage_status ws_read(struct ws_reader *r, struct slice input, size_t *used, struct ws_event *event)
{
	struct slice rest = input;
	enum cage_status st;
	*event = (struct ws_event){.kind = WS_NOTHING};
	do
		st = step(r, &rest, event);
	while (st == CAGE_OK && event->kind == WS_NOTHING);
	if (st != CAGE_OK)
		*event = (struct ws_event){.kind = WS_NOTHING};
	*used = input.len - rest.len;
	return st;
}
