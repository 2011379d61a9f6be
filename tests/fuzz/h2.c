/* HTTP/2, from three sides. Promises:
 *	fields	what h2_text.h takes is one head of HTTP/1.1, and the parser reads the same request or response from it
 *	server	each request that h2_server.h hands out begins with such a head, and the body is as it promises
 *	client	what h2_client.h makes of a response is HTTP/1.1, and whole when the inner stream ends cleanly
 * and no stream is left open by any input.
 *
 * Input: one byte that chooses the side, one that chooses the sizes of the pieces, then for `fields` one byte for the
 * kind of the list and of its end and the fields, each with the lengths of name and value in a byte; else frames. */
#include <event2/event.h>

#include "core/base/limits.h"
#include "core/http/h1.h"
#include "proxy/h2_client.h"
#include "proxy/h2_server.h"
#include "proxy/h2_text.h"
#include "tests/fuzz/fuzz.h"

#define MAX_INNER (LIMIT_H2_STREAMS * 8)
#define MAX_TEXT MIB(1)
#define MAX_CALLS 3
#define MAX_PASSES 100

static char head_room[LIMIT_HEAD + 1];

/* ---- fields ---- */

/* The gate finds one head in it, and nothing else. */
static void must_be_head(struct slice text, enum h1_gate_kind kind)
{
	struct h1_gate gate = {.kind = kind};
	size_t len = 0;
	PROMISE(h1_gate(&gate, text, &len) == CAGE_OK && len == text.len);
}

static struct slice without(struct slice s, struct slice prefix)
{
	return slice_starts(s, prefix) ? slice_from(s, prefix.len) : s;
}

/* A target can still be refused for its form, but never be read as another. */
static void request_must_be_read(const struct h2_fields *f, struct slice text, const struct h2_body *body)
{
	struct message m;
	struct h1_error err;
	must_be_head(text, H1_GATE_REQUEST);
	enum cage_status st = h1_parse_request(text, f->arena, &m, &err);
	PROMISE(st == CAGE_OK || err.reason == REASON_TARGET_MALFORMED || err.reason == REASON_HEAD_TOO_LARGE);
	if (st != CAGE_OK)
		return;
	struct slice authority = f->authority.ptr ? f->authority : f->host;
	struct slice target = without(m.target, SLICE("https://"));
	PROMISE(slice_eq(m.method, f->protocol.ptr ? SLICE("GET") : f->method));
	PROMISE(slice_eq(m.host, f->host.ptr ? f->host : f->authority));
	PROMISE(m.form == TARGET_ASTERISK || slice_starts(target, authority));
	PROMISE(m.form == TARGET_ASTERISK || slice_eq(slice_from(target, authority.len), f->path));
	PROMISE(m.framing == (body->framing == BODY_CLOSE ? BODY_NONE : body->framing));
	PROMISE(m.framing != BODY_LENGTH || m.content_length == body->left);
}

static void response_must_be_read(const struct h2_fields *f, struct slice text, struct slice method,
				  const struct h2_body *body)
{
	struct message m;
	struct h1_error err;
	must_be_head(text, H1_GATE_RESPONSE);
	PROMISE(h1_parse_response(text, method, f->arena, &m, &err) == CAGE_OK);
	PROMISE(m.status == h2_fields_status(f));
	PROMISE(m.status < 200 || m.framing == body->framing);
}

static enum cage_status add_fields(struct h2_fields *f, struct slice input)
{
	enum cage_status st = CAGE_OK;
	while (input.len > 0 && st == CAGE_OK) {
		size_t name_len = fuzz_number(&input, 1), value_len = fuzz_number(&input, 1);
		struct slice name = fuzz_copy(fuzz_take(&input, name_len));
		struct slice value = fuzz_copy(fuzz_take(&input, value_len));
		st = h2_fields_add(f, name, value);
		fuzz_free(&name);
		fuzz_free(&value);
	}
	return st;
}

static void run_fields(struct slice input)
{
	struct arena arena;
	struct h2_fields f;
	struct h2_body body;
	struct text t = text_in(head_room, sizeof(head_room));
	uint64_t how = fuzz_number(&input, 1);
	struct slice method = how & 8 ? SLICE("HEAD") : SLICE("GET");
	arena_init(&arena, LIMIT_TXN_ARENA);
	h2_fields_init(&f, (enum h2_kind)(how % 3), &arena);
	enum cage_status st = add_fields(&f, input);
	if (st == CAGE_OK && f.kind == H2_REQUEST &&
	    h2_write_request(&f, how & 4, SLICE("AAAAAAAAAAAAAAAAAAAAAA=="), &t, &body) == CAGE_OK)
		request_must_be_read(&f, text_slice(&t), &body);
	if (st == CAGE_OK && f.kind == H2_RESPONSE && h2_write_response(&f, how & 4, method, &t, &body) == CAGE_OK)
		response_must_be_read(&f, text_slice(&t), method, &body);
	arena_free(&arena);
}

/* ---- sessions ---- */

/* The owner's end of an inner stream. */
struct inner {
	struct stream *s;
	struct slice method;
	char *text; /* what came */
	size_t len;
	bool ended;
	enum cage_status how;
};

static struct loop *loop;
static struct event *tick; /* so that a pass always ends */
static struct stream *wire;
static struct inner inner[MAX_INNER];
static size_t n_inner;
static bool is_over;

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

static void pass(void)
{
	event_active(tick, EV_TIMEOUT, 0);
	loop_once(loop);
}

static void ignore(struct stream *s, void *arg)
{
	(void)s, (void)arg;
}

static void ignore_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s, (void)why, (void)arg;
}

static void drop_data(struct stream *s, void *arg)
{
	(void)arg;
	stream_consume(s, stream_input(s).len);
}

static const struct stream_cb wire_cb = {
	.on_ready = ignore, .on_data = drop_data, .on_drained = ignore, .on_end = ignore_end};

static void inner_data(struct stream *s, void *arg)
{
	struct inner *in = arg;
	struct slice input = slice_head(stream_input(s), MAX_TEXT - in->len);
	if (!in->text)
		in->text = malloc(MAX_TEXT);
	PROMISE(in->text);
	if (input.len > 0)
		memcpy(in->text + in->len, input.ptr, input.len);
	in->len += input.len;
	stream_consume(s, stream_input(s).len);
}

static void inner_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s;
	struct inner *in = arg;
	in->ended = true;
	in->how = why;
}

static const struct stream_cb inner_cb = {
	.on_ready = ignore, .on_data = inner_data, .on_drained = ignore, .on_end = inner_end};

static void inner_new(struct stream *s, struct slice method)
{
	struct inner *in = &inner[n_inner++];
	*in = (struct inner){.s = s, .method = method};
	stream_set_owner(s, &inner_cb, in);
}

/* The frames, in pieces of that size. */
static void feed(struct slice input, size_t size)
{
	for (size_t n = 0; input.len > 0 && !is_over && n < MAX_PASSES; n++) {
		stream_write(wire, fuzz_take(&input, n + 1 < MAX_PASSES ? size : input.len));
		pass();
	}
	for (unsigned i = 0; i < 4; i++)
		pass();
}

static struct stream *open_wire(void)
{
	struct stream *ends[2];
	if (!loop) {
		loop = loop_new();
		PROMISE(loop);
		tick = event_new(loop_base(loop), -1, EV_PERSIST, on_tick, NULL);
	}
	PROMISE(tick && stream_pair(loop, ends, &wire_cb, NULL));
	wire = ends[0];
	n_inner = 0;
	is_over = false;
	return ends[1];
}

static void close_wire(void)
{
	stream_close(&wire);
	for (size_t i = 0; i < n_inner; i++) {
		stream_close(&inner[i].s);
		free(inner[i].text);
	}
	for (unsigned i = 0; i < MAX_PASSES && stream_count(loop) > 0; i++)
		pass();
	PROMISE(stream_count(loop) == 0);
}

/* Trailers are looked at more closely than h2_text.h does. */
static bool body_is_whole(const struct message *m, struct slice rest, struct arena *arena)
{
	struct h1_body body;
	enum cage_status st = CAGE_OK;
	h1_body_init_inner(&body, m);
	while (st == CAGE_OK && !h1_body_is_done(&body)) {
		struct slice data;
		size_t used = 0;
		st = h1_body_feed(&body, rest, arena, &used, &data);
		rest = slice_from(rest, used);
	}
	if (body.state == H1_BODY_TRAILERS)
		return st != CAGE_AGAIN;
	PROMISE(st == CAGE_OK || st == CAGE_EOF || st == CAGE_AGAIN);
	PROMISE(!h1_body_is_done(&body) || rest.len == 0);
	return h1_body_is_done(&body);
}

/* ---- the server ---- */

static void on_request(struct h2_server *h, struct stream *s, void *arg)
{
	(void)h, (void)arg;
	if (n_inner == MAX_INNER) {
		stream_close(&s);
		return;
	}
	inner_new(s, SLICE("GET"));
	stream_write(s, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\r\n"));
}

static void on_malformed(struct h2_server *h, enum reason reason, void *arg)
{
	(void)h, (void)arg;
	PROMISE(reason != REASON_NONE);
}

static void server_ended(struct h2_server *h, enum reason reason, void *arg)
{
	(void)h, (void)reason, (void)arg;
	PROMISE(!is_over);
	is_over = true;
}

static void request_must_be_clean(const struct inner *in)
{
	struct h1_gate gate = {.kind = H1_GATE_REQUEST};
	struct slice text = slice_of(in->text, in->len);
	struct arena arena;
	struct message m;
	struct h1_error err;
	size_t len = 0;
	if (text.len == 0)
		return;
	PROMISE(h1_gate(&gate, text, &len) == CAGE_OK);
	arena_init(&arena, LIMIT_TXN_ARENA);
	if (h1_parse_request(slice_head(text, len), &arena, &m, &err) == CAGE_OK && m.framing != BODY_NONE)
		(void)body_is_whole(&m, slice_from(text, len), &arena);
	arena_free(&arena);
}

static void run_server(struct slice input, size_t size)
{
	static const struct h2_server_cb cb = {
		.on_request = on_request, .on_malformed = on_malformed, .on_end = server_ended};
	struct stream *down = open_wire();
	struct h2_server *h = h2_server_new(loop, down, &cb, NULL);
	PROMISE(h);
	stream_write(wire, SLICE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"));
	feed(input, size);
	for (size_t i = 0; i < n_inner; i++)
		request_must_be_clean(&inner[i]);
	h2_server_free(&h);
	close_wire();
}

/* ---- the client ---- */

static void client_ended(struct h2_client *h, void *arg)
{
	(void)h, (void)arg;
	PROMISE(!is_over);
	is_over = true;
}

/* Interim responses, a head, a body. Is all of it there? */
static bool response_is_whole(const struct inner *in, struct arena *arena)
{
	struct slice rest = slice_of(in->text, in->len);
	struct message m = {0};
	struct h1_error err;
	while (m.status < 200) {
		struct h1_gate gate = {.kind = H1_GATE_RESPONSE};
		size_t len = 0;
		enum cage_status st = h1_gate(&gate, rest, &len);
		PROMISE(st == CAGE_OK || st == CAGE_AGAIN);
		if (st == CAGE_AGAIN)
			return rest.len == 0; /* no head at all is a request that was refused */
		PROMISE(h1_parse_response(slice_head(rest, len), in->method, arena, &m, &err) == CAGE_OK);
		rest = slice_from(rest, len);
	}
	return body_is_whole(&m, rest, arena);
}

static void response_must_be_clean(const struct inner *in)
{
	struct arena arena;
	if (in->len == 0 || in->len == MAX_TEXT)
		return;
	arena_init(&arena, LIMIT_TXN_ARENA);
	bool whole = response_is_whole(in, &arena);
	PROMISE(whole || !in->ended || in->how != CAGE_EOF);
	arena_free(&arena);
}

static void run_client(struct slice input, size_t size)
{
	static const struct h2_client_cb cb = {.on_end = client_ended};
	static const struct slice requests[MAX_CALLS] = {
		WORD("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
		WORD("HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
		WORD("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
	};
	struct stream *up = open_wire();
	struct h2_client *h = h2_client_new(loop, up, &cb, NULL);
	PROMISE(h);
	for (size_t i = 0; i < MAX_CALLS; i++) {
		struct stream *s = h2_client_open(h);
		PROMISE(s);
		inner_new(s, i == 1 ? SLICE("HEAD") : SLICE("GET"));
		stream_write(s, requests[i]);
		pass();
	}
	stream_write(wire, SLICE("\0\0\0\4\0\0\0\0\0"));
	feed(input, size);
	for (size_t i = 0; i < n_inner; i++)
		response_must_be_clean(&inner[i]);
	h2_client_free(&h);
	close_wire();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = slice_of(data, size);
	uint64_t side = fuzz_number(&input, 1) % 3;
	size_t piece = 1 + (size_t)fuzz_number(&input, 1) * 8;
	if (side == 0)
		run_fields(input);
	else if (side == 1)
		run_server(input, piece);
	else
		run_client(input, piece);
	return 0;
}
