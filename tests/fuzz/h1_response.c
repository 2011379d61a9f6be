/* Responses. Promises: the gate and the body reader give the same result whatever the pieces are in which the bytes
 * arrive. At most one field of an accepted response says how long the body is. Written as the proxy hands it to the
 * client, it passes the gate as one head and is read as the same message; writing that one again makes the same bytes.
 * Its body ends where it ended, so that nothing of it can be taken for the next response.
 *
 * Input: two bytes that choose the sizes of the pieces, one that chooses the method, then the response. */
#include "tests/fuzz/h1_pieces.h"

#define ROOM (LIMIT_HEAD * 2)

static char written[2][ROOM];

static struct slice write_response(const struct message *m, const struct h1_out *o, char *room)
{
	struct text t = text_in(room, ROOM);
	h1_write_response(&t, m, o);
	PROMISE(text_ok(&t));
	return text_slice(&t);
}

static void messages_must_match(const struct message *a, const struct message *b, const struct h1_out *o)
{
	PROMISE(b->version == HTTP_11);
	PROMISE(a->status == b->status && slice_eq(a->phrase, b->phrase));
	PROMISE(b->framing == o->framing);
	PROMISE(a->content_length == b->content_length && a->has_content_length == b->has_content_length);
	PROMISE(b->keep_alive == !o->close);
	fields_must_match(a, b);
}

/* To the client a body that ends with the connection goes in chunks. */
static void response_must_survive(const struct message *m, struct slice method, uint64_t sizes, struct arena *arena)
{
	struct message again;
	struct h1_error err;
	size_t len;
	struct h1_out out = {.framing = m->framing == BODY_CLOSE ? BODY_CHUNKED : m->framing,
			     .content_length = m->content_length,
			     .declare_length = m->has_content_length,
			     .close = sizes & 1};
	struct slice head = write_response(m, &out, written[0]);
	if (head.len > LIMIT_HEAD || m->n_fields > LIMIT_HEADERS - 4)
		return;
	PROMISE(gate_both_ways(H1_GATE_RESPONSE, head, sizes, &len) == CAGE_OK && len == head.len);
	PROMISE(h1_parse_response(head, method, arena, &again, &err) == CAGE_OK);
	messages_must_match(m, &again, &out);
	PROMISE(slice_eq(write_response(&again, &out, written[1]), head));
}

/* Once more as the client gets it. */
static void body_to_client(const struct message *m, const struct body *body, struct arena *arena)
{
	struct message sent = *m;
	if (m->framing == BODY_CLOSE)
		sent.framing = BODY_CHUNKED;
	body_must_survive(&sent, body, arena);
}

static void run(struct slice input, struct arena *arena)
{
	static const struct slice methods[] = {{"GET", 3}, {"HEAD", 4}, {"POST", 4}};
	struct message m;
	struct h1_error err = {0};
	size_t len;
	uint64_t sizes = fuzz_number(&input, 2);
	struct slice method = methods[fuzz_number(&input, 1) % 3];
	if (gate_both_ways(H1_GATE_RESPONSE, input, sizes, &len) != CAGE_OK)
		return;
	if (h1_parse_response(slice_head(input, len), method, arena, &m, &err) != CAGE_OK) {
		PROMISE(err.reason != REASON_NONE && err.what);
		return;
	}
	PROMISE(m.framing == BODY_NONE || (m.status >= 200 && m.status != 204 && m.status != 304));
	framing_must_be_clear(&m);
	response_must_survive(&m, method, sizes, arena);
	struct body body = body_both_ways(&m, slice_from(input, len), sizes, arena);
	if (body.end == CAGE_EOF || (body.end == CAGE_AGAIN && m.framing == BODY_CLOSE))
		body_to_client(&m, &body, arena);
	body_free(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	arena_init(&arena, LIMIT_TXN_ARENA);
	run(slice_of(data, size), &arena);
	arena_free(&arena);
	return 0;
}
