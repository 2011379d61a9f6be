/* Requests. Promises: the gate and the body reader give the same result whatever the pieces are in which the bytes
 * arrive. At most one field of an accepted request says how long the body is. Written as the proxy sends it upstream,
 * it passes the gate as one head with nothing behind it and is read as the same message; writing that one again makes
 * the same bytes. So there is no second reading of what goes upstream.
 *
 * Input: two bytes that choose the sizes of the pieces, then the request. */
#include "core/http/url.h"
#include "tests/fuzz/h1_pieces.h"

#define ROOM (LIMIT_HEAD * 2)

static char written[2][ROOM];

/* Where the request goes, as the proxy finds it. */
static bool find_target(const struct message *m, struct arena *arena, struct target *out)
{
	const char *why;
	*out = (struct target){0};
	switch (m->form) {
	case TARGET_AUTHORITY:
		return false;
	case TARGET_ABSOLUTE:
		return url_parse(m->target, arena, out, &why) == CAGE_OK;
	case TARGET_ORIGIN:
	case TARGET_ASTERISK:
		return authority_parse(m->host, 80, arena, &out->host, &out->port, &why) == CAGE_OK &&
		       path_parse(m->target, arena, out, &why) == CAGE_OK;
	}
	return false;
}

static void messages_must_match(const struct message *a, const struct message *b, const struct h1_out *o)
{
	PROMISE(b->version == HTTP_11);
	PROMISE(slice_eq(a->method, b->method));
	PROMISE(slice_eq(o->target, b->target) && slice_eq(o->host, b->host));
	PROMISE(b->form == (a->form == TARGET_ASTERISK ? TARGET_ASTERISK : TARGET_ORIGIN));
	PROMISE(a->framing == b->framing && a->content_length == b->content_length);
	PROMISE(b->keep_alive == !o->close && !b->expect_continue);
	fields_must_match(a, b);
}

static struct slice write_request(const struct message *m, const struct h1_out *o, char *room)
{
	struct text t = text_in(room, ROOM);
	h1_write_request(&t, m, o);
	PROMISE(text_ok(&t));
	return text_slice(&t);
}

static void request_must_survive(const struct message *m, uint64_t sizes, struct arena *arena)
{
	struct target target;
	struct message again;
	struct h1_error err;
	size_t len;
	if (!find_target(m, arena, &target))
		return;
	struct h1_out out = {.target = target_send(&target, arena),
			     .host = host_header(&target, arena),
			     .framing = m->framing,
			     .content_length = m->content_length,
			     .declare_length = m->has_content_length,
			     .close = sizes & 1,
			     .keep_trailer_te = sizes & 2};
	struct slice head = write_request(m, &out, written[0]);
	if (head.len > LIMIT_HEAD || m->n_fields > LIMIT_HEADERS - 4)
		return;
	PROMISE(gate_both_ways(H1_GATE_REQUEST, head, sizes, &len) == CAGE_OK && len == head.len);
	PROMISE(h1_parse_request(head, arena, &again, &err) == CAGE_OK);
	messages_must_match(m, &again, &out);
	PROMISE(slice_eq(write_request(&again, &out, written[1]), head));
}

static void run(struct slice input, struct arena *arena)
{
	struct message m;
	struct h1_error err = {0};
	size_t len;
	uint64_t sizes = fuzz_number(&input, 2);
	if (gate_both_ways(H1_GATE_REQUEST, input, sizes, &len) != CAGE_OK)
		return;
	if (h1_parse_request(slice_head(input, len), arena, &m, &err) != CAGE_OK) {
		PROMISE(err.reason != REASON_NONE && err.what);
		return;
	}
	framing_must_be_clear(&m);
	PROMISE(m.framing != BODY_CLOSE);
	request_must_survive(&m, sizes, arena);
	struct body body = body_both_ways(&m, slice_from(input, len), sizes, arena);
	if (body.end == CAGE_EOF)
		body_must_survive(&m, &body, arena);
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
