/* WebSocket frames. Promises: whatever the pieces in which the bytes arrive, and whatever the room for unmasked ones, the
 * reader gives the same events, uses the same bytes and ends the same way. Text is UTF-8, a control frame is short and a
 * message is within its bound. What was read, written again as the other side would, is read as the same.
 *
 * Input: one byte for the role, two that choose the sizes of the pieces, then the frames. */
#include "core/base/limits.h"
#include "core/http/ws.h"
#include "tests/fuzz/fuzz.h"

#define MANY_PIECES 64 /* then the rest comes at once */

/* What happened: pieces that follow each other are one. */
struct happening {
	enum ws_event_kind kind;
	enum ws_opcode opcode;
	unsigned code;
	size_t at, len; /* of the payload in data */
};

struct reading {
	struct happening *events;
	size_t n, room;
	char *data;
	size_t len;
	size_t used; /* bytes of the input */
	enum cage_status end;
	enum ws_code refused;
};

/* Two events and a part of the third for each head of two bytes, at most. */
static struct reading reading_new(size_t input_len)
{
	struct reading r = {.room = 2 * input_len + 4, .end = CAGE_AGAIN};
	r.events = calloc(r.room, sizeof(*r.events));
	r.data = malloc(input_len + 1);
	PROMISE(r.events && r.data);
	return r;
}

static void reading_free(struct reading *r)
{
	free(r->events);
	free(r->data);
	*r = (struct reading){0};
}

static void add_event(struct reading *r, const struct ws_event *e)
{
	bool goes_on = e->kind == WS_PIECE && r->n > 0 && r->events[r->n - 1].kind == WS_PIECE;
	PROMISE(e->kind != WS_NOTHING && e->opcode != WS_OP_CONTINUATION);
	if (!goes_on) {
		PROMISE(r->n < r->room);
		r->events[r->n++] = (struct happening){e->kind, e->opcode, e->code, r->len, 0};
	}
	if (e->payload.len > 0)
		memcpy(r->data + r->len, e->payload.ptr, e->payload.len);
	r->len += e->payload.len;
	r->events[r->n - 1].len += e->payload.len;
}

static void feed(struct ws_reader *reader, struct reading *r, struct slice piece)
{
	size_t used;
	struct ws_event event;
	while ((r->end = ws_read(reader, piece, &used, &event)) == CAGE_OK) {
		PROMISE(used <= piece.len);
		PROMISE(event.kind != WS_PIECE || (event.payload.len > 0 && event.payload.len <= used));
		r->used += used;
		piece = slice_from(piece, used);
		add_event(r, &event);
	}
	PROMISE(used <= piece.len && event.kind == WS_NOTHING);
	PROMISE(r->end != CAGE_AGAIN || used == piece.len);
	r->used += used;
}

static size_t piece_next(uint64_t *state, size_t left)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	size_t size = 1 + (size_t)(*state >> 40) % ((size_t)1 << (*state >> 33) % 10);
	return size > left ? left : size;
}

/* sizes: of the pieces; 0 for all at once. room: for unmasked bytes. */
static struct reading read_frames(enum ws_role from, struct slice input, uint64_t sizes, size_t room)
{
	struct reading r = reading_new(input.len);
	struct ws_reader reader;
	struct slice rest = input;
	char *buf = malloc(room);
	PROMISE(buf);
	ws_reader_init(&reader, from, buf, room);
	for (size_t n = 0; rest.len > 0 && r.end == CAGE_AGAIN; n++) {
		bool is_last = sizes == 0 || n == MANY_PIECES;
		struct slice piece = fuzz_copy(fuzz_take(&rest, is_last ? rest.len : piece_next(&sizes, rest.len)));
		feed(&reader, &r, piece);
		fuzz_free(&piece);
	}
	r.refused = reader.error.code;
	free(buf);
	return r;
}

static void events_must_match(const struct reading *a, const struct reading *b)
{
	PROMISE(a->n == b->n && slice_eq(slice_of(a->data, a->len), slice_of(b->data, b->len)));
	for (size_t i = 0; i < a->n; i++) {
		const struct happening *x = &a->events[i], *y = &b->events[i];
		PROMISE(x->kind == y->kind && x->opcode == y->opcode && x->code == y->code);
		PROMISE(x->at == y->at && x->len == y->len);
	}
}

/* ---- what a caller may rely on */

struct order {
	enum ws_opcode message; /* WS_OP_CONTINUATION between two */
	struct utf8 utf8;
	size_t len;
};

static void data_must_be_in_order(struct order *o, const struct happening *h, struct slice payload)
{
	if (h->kind == WS_BEGIN) {
		PROMISE(o->message == WS_OP_CONTINUATION && (h->opcode == WS_OP_TEXT || h->opcode == WS_OP_BINARY));
		*o = (struct order){.message = h->opcode};
		return;
	}
	PROMISE(o->message == h->opcode);
	o->len += payload.len;
	PROMISE(o->len <= LIMIT_WS_MESSAGE);
	PROMISE(h->opcode != WS_OP_TEXT || utf8_span(&o->utf8, payload) == payload.len);
	if (h->kind != WS_END)
		return;
	PROMISE(utf8_is_whole(&o->utf8));
	o->message = WS_OP_CONTINUATION;
}

static void events_must_be_in_order(const struct reading *r)
{
	struct order order = {.message = WS_OP_CONTINUATION};
	for (size_t i = 0; i < r->n; i++) {
		const struct happening *h = &r->events[i];
		struct slice payload = slice_of(r->data + h->at, h->len);
		if (h->kind == WS_BEGIN || h->kind == WS_PIECE || h->kind == WS_END)
			data_must_be_in_order(&order, h, payload);
		else
			PROMISE(payload.len <= (h->kind == WS_CLOSE ? WS_REASON_MAX : WS_CONTROL_MAX));
		PROMISE((h->kind == WS_CLOSE) == (r->end == CAGE_EOF && i == r->n - 1));
	}
	PROMISE((r->end == CAGE_EPROTO) == (r->refused == WS_CODE_PROTOCOL || r->refused == WS_CODE_NOT_UTF8));
	PROMISE((r->end == CAGE_ELIMIT) == (r->refused == WS_CODE_TOO_BIG));
}

/* ---- written again */

static void write_frame(struct text *t, enum ws_role from, enum ws_opcode opcode, bool is_final, struct slice payload)
{
	const unsigned char key[WS_KEY_BYTES] = {(unsigned char)t->len, 0x80, 0x55, 0xfe};
	ws_write_head(t, opcode, is_final, payload.len, from == WS_CLIENT ? key : NULL);
	size_t at = t->len;
	text_put(t, payload);
	PROMISE(text_ok(t));
	if (from == WS_CLIENT)
		ws_mask(t->ptr + at, payload, key, 0);
}

/* In two frames, so that there is a border between them. */
static void write_piece(struct text *t, enum ws_role from, struct slice payload)
{
	struct slice half = fuzz_take(&payload, payload.len / 2);
	write_frame(t, from, WS_OP_CONTINUATION, false, half);
	write_frame(t, from, WS_OP_CONTINUATION, false, payload);
}

static void write_event(struct text *t, enum ws_role from, const struct happening *h, struct slice payload)
{
	char room[WS_CONTROL_MAX];
	struct text close = text_in(room, sizeof(room));
	switch (h->kind) {
	case WS_BEGIN:
		write_frame(t, from, h->opcode, false, SLICE_NONE);
		break;
	case WS_PIECE:
		write_piece(t, from, payload);
		break;
	case WS_END:
		write_frame(t, from, WS_OP_CONTINUATION, true, SLICE_NONE);
		break;
	case WS_PING:
	case WS_PONG:
		write_frame(t, from, h->opcode, true, payload);
		break;
	case WS_CLOSE:
		ws_write_close(&close, h->code, payload);
		PROMISE(text_ok(&close));
		write_frame(t, from, h->opcode, true, text_slice(&close));
		break;
	case WS_NOTHING:
		PROMISE(false);
	}
}

static void reading_must_survive(const struct reading *first, enum ws_role from, uint64_t sizes)
{
	size_t room = first->len + first->n * 2 * (WS_HEAD_MAX + 2);
	char *wire = malloc(room + 1);
	PROMISE(wire);
	struct text t = text_in(wire, room);
	for (size_t i = 0; i < first->n; i++)
		write_event(&t, from, &first->events[i],
			    slice_of(first->data + first->events[i].at, first->events[i].len));
	struct reading again = read_frames(from, text_slice(&t), sizes, 32);
	PROMISE(again.end == (first->end == CAGE_EOF ? CAGE_EOF : CAGE_AGAIN) && again.used == t.len);
	events_must_match(first, &again);
	reading_free(&again);
	free(wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = slice_of(data, size);
	enum ws_role from = fuzz_number(&input, 1) & 1 ? WS_SERVER : WS_CLIENT;
	uint64_t sizes = fuzz_number(&input, 2) | 1;
	struct reading whole = read_frames(from, input, 0, size + 1);
	struct reading pieces = read_frames(from, input, sizes, 1 + sizes % 61);
	PROMISE(whole.end == pieces.end && whole.refused == pieces.refused && whole.used == pieces.used);
	events_must_match(&whole, &pieces);
	events_must_be_in_order(&whole);
	reading_must_survive(&whole, WS_CLIENT, sizes);
	reading_must_survive(&whole, WS_SERVER, sizes);
	reading_free(&pieces);
	reading_free(&whole);
	return 0;
}
