/* The shared corpora of WebSocket: the examples of the RFCs, and the frames that the Autobahn test suite sends. What is a
 * message or a ping there is one here, and what has to end a connection is refused with one of the codes that are allowed.
 * CAGE_CORPORA says where the corpora are; without them the tests are skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>

#include "core/base/limits.h"
#include "tests/unit/corpus.h"
#include "tests/unit/http/ws_story.h"

#define LINE_MAX_BYTES MIB(1)

static void corpus_each(const char *name, size_t least, void (*look)(json_t *))
{
	size_t n = 0;
	FILE *f = corpus_open(name);
	char *line = malloc(LINE_MAX_BYTES);
	assert_non_null(line);
	while (fgets(line, LINE_MAX_BYTES, f)) {
		json_t *item = json_loads(line, 0, NULL);
		assert_non_null(item);
		look(item);
		json_decref(item);
		n++;
	}
	assert_true(n >= least);
	free(line);
	fclose(f);
}

static const char *get_text(json_t *item, const char *key)
{
	const char *text = json_string_value(json_object_get(item, key));
	assert_non_null(text);
	return text;
}

/* ---- examples of the RFCs */

static void add_hex(struct bytes *b, const char *hex)
{
	for (; hex[0] && hex[1]; hex += 2)
		bytes_add_char(b, (char)(ascii_hex((unsigned char)hex[0]) * 16 + ascii_hex((unsigned char)hex[1])));
}

/* Those with an extension set a reserved bit, which nobody agreed to. */
static void look_at_example(json_t *item)
{
	struct bytes wire = {0};
	struct story s;
	char wanted[128];
	const char *kind = get_text(item, "kind");
	add_hex(&wire, get_text(item, "wire_hex"));
	assert_true(wire.len > 2);
	if (!json_is_null(json_object_get(item, "extension")))
		snprintf(wanted, sizeof(wanted), "!1002");
	else
		snprintf(wanted, sizeof(wanted), strcmp(kind, "text") == 0 ? "[%s:%s]" : "<%s:%s>", kind,
			 get_text(item, "payload"));
	story_begin(&s, wire.ptr[1] & 0x80 ? WS_CLIENT : WS_SERVER);
	story_feed(&s, bytes_slice(&wire));
	if (!slice_eq(bytes_slice(&s.said), slice_str(wanted)))
		fail_msg("%s: %.*s", get_text(item, "name"), (int)s.said.len, s.said.ptr);
	story_end(&s);
	bytes_free(&wire);
}

static void examples(void **state)
{
	(void)state;
	corpus_each("websocket_rfc", 11, look_at_example);
}

/* ---- Autobahn */

/* What these cases send is not in the corpus: a chopped frame and a payload of one byte were lost. The tests of the
 * reader have the same. */
static const char *const untold[] = {"6.4.3", "6.4.4", "7.3.2", NULL};

/* The corpus calls them UTF-8, but its bytes are Latin-1: they are to be refused. */
static const char *const not_utf8[] = {"6.2.1", "6.2.2", "6.2.3", NULL};

static bool is_among(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

static void add_base64(struct bytes *b, const char *text)
{
	unsigned bits = 0, n = 0;
	for (int digit; (digit = ascii_base64((unsigned char)*text)) >= 0; text++) {
		bits = (bits << 6 | (unsigned)digit) & 0xffff;
		n += 6;
		if (n < 8)
			continue;
		n -= 8;
		bytes_add_char(b, (char)(bits >> n & 0xff));
	}
}

/* A frame as the suite sends it, with reserved bits and opcodes that the writer would not make. */
static void add_frame(struct bytes *b, enum ws_role from, json_t *frame)
{
	static const unsigned char key[WS_KEY_BYTES] = {0x9d, 0x01, 0xe0, 0x7c};
	struct bytes payload = {0};
	char head[WS_HEAD_MAX];
	struct text t = text_in(head, sizeof(head));
	long long rsv = json_integer_value(json_object_get(frame, "rsv"));
	long long opcode = json_integer_value(json_object_get(frame, "op"));
	bool is_masked = from == WS_CLIENT;
	add_base64(&payload, get_text(frame, "payload"));
	ws_write_head(&t, (enum ws_opcode)opcode, json_is_true(json_object_get(frame, "fin")), payload.len,
		      is_masked ? key : NULL);
	head[0] = (char)(head[0] | (char)(rsv << 4));
	bytes_add(b, text_slice(&t));
	if (is_masked)
		ws_mask(payload.ptr, bytes_slice(&payload), key, 0);
	bytes_add(b, bytes_slice(&payload));
	bytes_free(&payload);
}

/* What the suite expects, as a story: the pings that it wants answered and the messages that it wants back. */
static void add_expected(struct bytes *b, json_t *events)
{
	size_t i;
	json_t *event;
	json_array_foreach(events, i, event)
	{
		const char *kind = json_string_value(json_array_get(event, 0));
		const char *payload = json_string_value(json_array_get(event, 1));
		bool is_message = strcmp(kind, "message") == 0;
		if (!is_message && strcmp(kind, "pong") != 0)
			continue;
		bool is_binary = json_is_true(json_array_get(event, 2));
		bytes_add(b, !is_message ? SLICE("<ping:") : is_binary ? SLICE("[binary:") : SLICE("[text:"));
		add_base64(b, payload);
		bytes_add_char(b, is_message ? ']' : '>');
	}
}

/* The whole of the messages and pings that a reader met, in the order of their ends. */
struct answers {
	struct ws_reader reader;
	char buf[1024];
	struct bytes said, message;
	enum cage_status status;
};

static void answer(struct answers *a, const struct ws_event *e)
{
	switch (e->kind) {
	case WS_BEGIN:
		a->message.len = 0;
		bytes_add(&a->message, e->opcode == WS_OP_TEXT ? SLICE("[text:") : SLICE("[binary:"));
		break;
	case WS_PIECE:
		bytes_add(&a->message, e->payload);
		break;
	case WS_END:
		bytes_add(&a->said, bytes_slice(&a->message));
		bytes_add_char(&a->said, ']');
		break;
	case WS_PING:
		bytes_add(&a->said, SLICE("<ping:"));
		bytes_add(&a->said, e->payload);
		bytes_add_char(&a->said, '>');
		break;
	case WS_PONG:
	case WS_CLOSE:
	case WS_NOTHING:
		break;
	}
}

static void feed(struct answers *a, struct slice input, size_t chop)
{
	while (input.len > 0 && a->status == CAGE_AGAIN) {
		struct slice piece = chop ? slice_head(input, chop) : input;
		struct ws_event event;
		size_t used;
		input = slice_from(input, piece.len);
		while ((a->status = ws_read(&a->reader, piece, &used, &event)) == CAGE_OK) {
			piece = slice_from(piece, used);
			answer(a, &event);
		}
	}
}

static void send_frames(struct answers *a, enum ws_role from, json_t *frames, bool bytewise)
{
	size_t i;
	json_t *frame;
	json_array_foreach(frames, i, frame)
	{
		struct bytes wire = {0};
		if (!json_object_get(frame, "op"))
			continue; /* a pause, or the end */
		add_frame(&wire, from, frame);
		feed(a, bytes_slice(&wire), bytewise ? 1 : (size_t)json_integer_value(json_object_get(frame, "chop")));
		bytes_free(&wire);
	}
}

/* Codes other than 1000 are those of a failure, unless a clean close is wanted too: then they are echoed ones. */
static void assert_end(const char *name, const struct answers *a, json_t *wanted)
{
	size_t i;
	json_t *code;
	bool may_pass = false, is_allowed = false;
	bool is_refused = a->status == CAGE_EPROTO || a->status == CAGE_ELIMIT;
	json_array_foreach(json_object_get(wanted, "closeCode"), i, code)
	{
		may_pass |= json_integer_value(code) == 1000;
		is_allowed |= json_integer_value(code) == (json_int_t)a->reader.error.code;
	}
	if (!is_refused && !may_pass)
		fail_msg("%s: was not refused", name);
	if (is_refused && (json_is_true(json_object_get(wanted, "requireClean")) || !is_allowed))
		fail_msg("%s: refused with %d: %s", name, (int)a->reader.error.code, a->reader.error.what);
}

static void assert_answers(const char *name, const struct answers *a, json_t *events)
{
	struct bytes wanted = {0};
	add_expected(&wanted, events);
	if (events && !slice_eq(bytes_slice(&a->said), bytes_slice(&wanted)))
		fail_msg("%s: other messages than expected", name);
	bytes_free(&wanted);
}

static void run_case(json_t *item, enum ws_role from, bool bytewise)
{
	struct answers a = {.status = CAGE_AGAIN};
	const char *name = get_text(item, "case");
	ws_reader_init(&a.reader, from, a.buf, sizeof(a.buf));
	send_frames(&a, from, json_object_get(item, "send"), bytewise);
	if (is_among(name, not_utf8)) {
		assert_int_equal(a.status, CAGE_EPROTO);
		assert_int_equal(a.reader.error.code, WS_CODE_NOT_UTF8);
	} else {
		assert_answers(name, &a, json_object_get(json_object_get(item, "expect_events"), "OK"));
		assert_end(name, &a, json_object_get(item, "expect_close"));
	}
	bytes_free(&a.said);
	bytes_free(&a.message);
}

static void look_at_case(json_t *item)
{
	if (is_among(get_text(item, "case"), untold))
		return;
	for (int bytewise = 0; bytewise <= 1; bytewise++) {
		run_case(item, WS_CLIENT, bytewise);
		run_case(item, WS_SERVER, bytewise);
	}
}

static void autobahn(void **state)
{
	(void)state;
	corpus_each("websocket_autobahn", 260, look_at_case);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples),
		cmocka_unit_test(autobahn),
	};
	return corpus_exit(cmocka_run_group_tests(tests, NULL, NULL));
}
