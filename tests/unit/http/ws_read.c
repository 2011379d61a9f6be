/* Frames cut at every place: the same events, the same refusals, the same last byte that was looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/limits.h"
#include "core/http/ws.h"
#include "tests/unit/http/ws_story.h"

/* The input in two pieces, the first of `cut` bytes, or one byte at a time when cut is 0. */
static void feed_cut(struct story *s, struct slice input, size_t cut)
{
	size_t step = cut ? cut : 1;
	for (size_t at = 0; at < input.len; step = cut ? input.len : 1) {
		struct slice piece = slice_head(slice_from(input, at), step);
		story_feed(s, piece);
		at += piece.len;
	}
}

/* used: how many bytes the reader takes before it has its last word. */
static void assert_story(enum ws_role from, struct slice input, struct slice wanted, size_t used)
{
	for (size_t cut = 0; cut <= input.len; cut++) {
		struct story s;
		story_begin(&s, from);
		feed_cut(&s, input, cut);
		if (!slice_eq(bytes_slice(&s.said), wanted))
			fail_msg("cut at %zu: %.*s, wanted %.*s", cut, (int)s.said.len, s.said.ptr, SLICE_FMT(wanted));
		assert_int_equal(s.used, used);
		story_end(&s);
	}
}

/* A frame as its sender puts it on the wire. The key is 1, 2, 3, 4. */
static void add_frame(struct bytes *b, enum ws_role from, unsigned first, struct slice payload)
{
	static const unsigned char key[WS_KEY_BYTES] = {1, 2, 3, 4};
	unsigned mask = from == WS_CLIENT ? 0x80 : 0;
	assert_true(payload.len < 126);
	bytes_add_char(b, (char)first);
	bytes_add_char(b, (char)(mask | payload.len));
	if (from == WS_CLIENT)
		bytes_add(b, slice_of(key, sizeof(key)));
	for (size_t i = 0; i < payload.len; i++)
		bytes_add_char(b, (char)(payload.ptr[i] ^ (from == WS_CLIENT ? key[i % 4] : 0)));
}

struct frame {
	unsigned first; /* byte of the head */
	struct slice payload;
};

#define TEXT 0x81u
#define BINARY 0x82u
#define CLOSE 0x88u
#define PING 0x89u
#define PONG 0x8au
#define LAST 0x80u /* of a message in fragments */
#define MORE 0x00u
#define TEXT_MORE 0x01u
#define BINARY_MORE 0x02u

/* The frames from a client and from a server give this. extra: bytes at the end that are not looked at. */
static void assert_frames(const struct frame *frames, size_t n, struct slice wanted, size_t extra)
{
	for (int from = WS_CLIENT; from <= WS_SERVER; from++) {
		struct bytes input = {0};
		for (size_t i = 0; i < n; i++)
			add_frame(&input, (enum ws_role)from, frames[i].first, frames[i].payload);
		assert_story((enum ws_role)from, bytes_slice(&input), wanted, input.len - extra);
		bytes_free(&input);
	}
}

#define FRAMES(wanted, extra, ...)                         \
	assert_frames((const struct frame[]){__VA_ARGS__}, \
		      sizeof((const struct frame[]){__VA_ARGS__}) / sizeof(struct frame), SLICE(wanted), extra)

static void messages(void **state)
{
	(void)state;
	FRAMES("[text:]", 0, {TEXT, SLICE("")});
	FRAMES("[binary:]", 0, {BINARY, SLICE("")});
	FRAMES("[text:Hello][binary:\xff\0]", 0, {TEXT, SLICE("Hello")}, {BINARY, SLICE("\xff\0")});
	FRAMES("[text:Hello, fragments]", 0, {TEXT_MORE, SLICE("Hel")}, {MORE, SLICE("lo, ")},
	       {LAST, SLICE("fragments")});
	FRAMES("[text:ab][text:c]", 0, {TEXT_MORE, SLICE("")}, {MORE, SLICE("ab")}, {LAST, SLICE("")},
	       {TEXT, SLICE("c")});
	FRAMES("[binary:longer than the room for pieces, which is 16 bytes]", 0,
	       {BINARY, SLICE("longer than the room for pieces, which is 16 bytes")});
	FRAMES("[text:half", 0, {TEXT_MORE, SLICE("half")});
}

static void control_frames(void **state)
{
	(void)state;
	FRAMES("<ping:><pong:><ping:abc>", 0, {PING, SLICE("")}, {PONG, SLICE("")}, {PING, SLICE("abc")});
	FRAMES("[text:Hel<ping:\xff\0><pong:p>lo]", 0, {TEXT_MORE, SLICE("Hel")}, {PING, SLICE("\xff\0")},
	       {PONG, SLICE("p")}, {LAST, SLICE("lo")});
	FRAMES("<close 1005:>.", 0, {CLOSE, SLICE("")});
	FRAMES("<close 1000:>.", 0, {CLOSE, SLICE("\x03\xe8")});
	FRAMES("<close 1000:bye \xc3\xa9>.", 0,
	       {CLOSE, SLICE("\x03\xe8"
			     "bye \xc3\xa9")});
	FRAMES("[text:a<close 1001:>.", 0, {TEXT_MORE, SLICE("a")}, {CLOSE, SLICE("\x03\xe9")});
}

static void nothing_is_read_after_a_close(void **state)
{
	(void)state;
	const struct slice input = SLICE("\x88\x00\x81\x05Hello");
	assert_story(WS_SERVER, input, SLICE("<close 1005:>."), 2);
}

static void control_frame_of_125_bytes(void **state)
{
	(void)state;
	struct bytes input = {0}, wanted = {0}, payload = {0};
	bytes_fill(&payload, 'p', WS_CONTROL_MAX);
	bytes_add(&wanted, SLICE("<ping:"));
	bytes_add(&wanted, bytes_slice(&payload));
	bytes_add_char(&wanted, '>');
	add_frame(&input, WS_CLIENT, PING, bytes_slice(&payload));
	assert_story(WS_CLIENT, bytes_slice(&input), bytes_slice(&wanted), input.len);
	bytes_free(&input);
	bytes_free(&wanted);
	bytes_free(&payload);
}

static void close_codes(void **state)
{
	(void)state;
	for (unsigned code = 0; code <= UINT16_MAX; code++) {
		bool is_named = code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
		bool is_good = is_named || (code >= 3000 && code < 5000);
		const char input[] = {(char)0x88, 2, (char)(code >> 8), (char)code};
		struct story s;
		story_begin(&s, WS_SERVER);
		story_feed(&s, slice_of(input, sizeof(input)));
		assert_int_equal(s.status, is_good ? CAGE_EOF : CAGE_EPROTO);
		if (!is_good)
			assert_int_equal(s.reader.error.code, WS_CODE_PROTOCOL);
		story_end(&s);
	}
}

static void bad_closes(void **state)
{
	(void)state;
	FRAMES("!1002", 0, {CLOSE, SLICE("\x03")});
	FRAMES("!1007", 0,
	       {CLOSE, SLICE("\x03\xe8"
			     "a\xff")});
	FRAMES("!1007", 0, {CLOSE, SLICE("\x03\xe8\xed\xa0\x80")});
	FRAMES("!1007", 0,
	       {CLOSE, SLICE("\x03\xe8"
			     "ends in a \xc3")});
}

/* The first byte of a head decides. */
static void bad_first_bytes(void **state)
{
	(void)state;
	for (unsigned first = 0; first < 256; first++) {
		unsigned opcode = first & 0x0f;
		bool is_final = first & 0x80;
		bool is_good = (first & 0x70) == 0 &&
			       (opcode == 1 || opcode == 2 || (is_final && opcode >= 8 && opcode <= 10));
		const char input[] = {(char)first};
		assert_story(WS_SERVER, slice_of(input, 1), is_good ? SLICE("") : SLICE("!1002"), 1);
		assert_story(WS_CLIENT, slice_of(input, 1), is_good ? SLICE("") : SLICE("!1002"), 1);
	}
}

static void fragments_out_of_order(void **state)
{
	(void)state;
	assert_story(WS_SERVER,
		     SLICE("\x01\x01"
			   "a\x81\x01"
			   "b"),
		     SLICE("[text:a!1002"), 4);
	assert_story(WS_SERVER,
		     SLICE("\x02\x01"
			   "a\x01\x01"
			   "b"),
		     SLICE("[binary:a!1002"), 4);
	assert_story(WS_SERVER,
		     SLICE("\x81\x01"
			   "a\x80\x01"
			   "b"),
		     SLICE("[text:a]!1002"), 4);
	assert_story(WS_SERVER,
		     SLICE("\x01\x01"
			   "a\x80\x01"
			   "b\x00\x01"
			   "c"),
		     SLICE("[text:ab]!1002"), 7);
	assert_story(WS_SERVER,
		     SLICE("\x01\x01"
			   "a\x09\x01"
			   "b"),
		     SLICE("[text:a!1002"), 4);
	assert_story(WS_SERVER, SLICE("\x80\x00"), SLICE("!1002"), 1);
}

static void masks(void **state)
{
	(void)state;
	assert_story(WS_CLIENT, SLICE("\x81\x05Hello"), SLICE("!1002"), 2);
	assert_story(WS_SERVER, SLICE("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), SLICE("!1002"), 2);
	assert_story(WS_CLIENT, SLICE("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), SLICE("[text:Hello]"), 11);
	assert_story(WS_CLIENT, SLICE("\x88\x00"), SLICE("!1002"), 2);
	assert_story(WS_SERVER, SLICE("\x89\x80\x01\x02\x03\x04"), SLICE("!1002"), 2);
}

static void lengths(void **state)
{
	(void)state;
	assert_story(WS_SERVER, SLICE("\x82\x7e\x00\x7d"), SLICE("!1002"), 4);
	assert_story(WS_SERVER, SLICE("\x82\x7e\x00\x7e"), SLICE("[binary:"), 4);
	assert_story(WS_SERVER, SLICE("\x82\x7f\0\0\0\0\0\0\xff\xff"), SLICE("!1002"), 10);
	assert_story(WS_SERVER, SLICE("\x82\x7f\0\0\0\0\0\x01\0\0"), SLICE("[binary:"), 10);
	assert_story(WS_SERVER, SLICE("\x82\x7f\x80\0\0\0\0\0\0\x01"), SLICE("!1002"), 10);
	assert_story(WS_SERVER, SLICE("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"), SLICE("!1002"), 10);
	assert_story(WS_SERVER, SLICE("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), SLICE("!1009"), 10);
	assert_story(WS_CLIENT,
		     SLICE("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"
			   "keys"),
		     SLICE("!1009"), 14);
	for (unsigned opcode = 0x88; opcode <= 0x8a; opcode++) {
		const char input[] = {(char)opcode, 126, 0, 126};
		assert_story(WS_SERVER, slice_of(input, 4), SLICE("!1002"), 2);
	}
}

/* Payload long enough for each form of the length, unmasked in pieces of the reader's room. */
static void long_payloads(void **state)
{
	(void)state;
	const size_t sizes[] = {125, 126, 127, 65535, 65536, 70000};
	static const unsigned char key[WS_KEY_BYTES] = {0xa1, 0, 0x5c, 0xff};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bytes payload = {0}, input = {0};
		char head[WS_HEAD_MAX];
		struct text t = text_in(head, sizeof(head));
		struct story s;
		for (size_t k = 0; k < sizes[i]; k++)
			bytes_add_char(&payload, (char)(k * 7 + k / 251));
		ws_write_head(&t, WS_OP_BINARY, true, payload.len, key);
		bytes_add(&input, text_slice(&t));
		bytes_add(&input, bytes_slice(&payload));
		ws_mask(input.ptr + t.len, bytes_slice(&payload), key, 0);
		story_begin(&s, WS_CLIENT);
		feed_cut(&s, bytes_slice(&input), sizes[i] / 3);
		assert_int_equal(s.said.len, payload.len + 9);
		assert_memory_equal(s.said.ptr, "[binary:", 8);
		assert_memory_equal(s.said.ptr + 8, payload.ptr, payload.len);
		story_end(&s);
		bytes_free(&payload);
		bytes_free(&input);
	}
}

static void text_is_utf8_over_fragments(void **state)
{
	(void)state;
	FRAMES("[text:\xf0\x9f<pong:>\x98\x80]", 0, {TEXT_MORE, SLICE("\xf0")}, {MORE, SLICE("\x9f")},
	       {MORE, SLICE("")}, {PONG, SLICE("")}, {LAST, SLICE("\x98\x80")});
}

static void text_fails_at_the_first_bad_byte(void **state)
{
	(void)state;
	assert_story(WS_SERVER,
		     SLICE("\x81\x7e\x01\x00"
			   "ab\xff and more"),
		     SLICE("[text:ab!1007"), 6);
	assert_story(WS_SERVER, SLICE("\x01\x01\xed\x80\x02\xa0\x80"), SLICE("[text:\xed!1007"), 5);
	assert_story(WS_SERVER,
		     SLICE("\x81\x02"
			   "a\xc3\x81\x01"
			   "b"),
		     SLICE("[text:a\xc3!1007"), 4);
	assert_story(WS_SERVER, SLICE("\x01\x01\xc3\x80\x00"), SLICE("[text:\xc3!1007"), 5);
	assert_story(WS_SERVER, SLICE("\x82\x02\xff\xfe"), SLICE("[binary:\xff\xfe]"), 4);
	/* what a text left open is no part of the next message */
	assert_story(WS_SERVER,
		     SLICE("\x82\x01\xc3\x81\x01"
			   "b"),
		     SLICE("[binary:\xc3][text:b]"), 6);
}

static void refusal_is_final(void **state)
{
	(void)state;
	static const struct {
		struct slice input;
		enum cage_status status;
	} bad[] = {{WORD("\xf1"), CAGE_EPROTO},
		   {WORD("\x81\x01\xff"), CAGE_EPROTO},
		   {WORD("\x82\x7f\x7f\0\0\0\0\0\0\0"), CAGE_ELIMIT}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct story s;
		struct ws_event event;
		size_t used;
		story_begin(&s, WS_SERVER);
		story_feed(&s, bad[i].input);
		struct ws_error before = s.reader.error;
		assert_int_equal(s.status, bad[i].status);
		assert_non_null(before.what);
		assert_int_equal(ws_read(&s.reader,
					 SLICE("\x81\x01"
					       "a"),
					 &used, &event),
				 bad[i].status);
		assert_int_equal(used, 0);
		assert_int_equal(event.kind, WS_NOTHING);
		assert_int_equal(s.reader.error.code, before.code);
		assert_string_equal(s.reader.error.what, before.what);
		story_end(&s);
	}
}

/* Takes what there is and forgets it. */
static enum cage_status swallow(struct ws_reader *r, struct slice input, uint64_t *payload)
{
	enum cage_status st;
	struct ws_event event;
	size_t used;
	while ((st = ws_read(r, input, &used, &event)) == CAGE_OK) {
		input = slice_from(input, used);
		*payload += event.payload.len;
	}
	return st;
}

/* One frame of len bytes, the payload of which is never whole in memory. */
static enum cage_status swallow_frame(struct ws_reader *r, enum ws_opcode opcode, bool is_final, size_t len,
				      uint64_t *payload)
{
	static const char zeros[KIB(64)];
	char head[WS_HEAD_MAX];
	struct text t = text_in(head, sizeof(head));
	ws_write_head(&t, opcode, is_final, len, NULL);
	enum cage_status st = swallow(r, text_slice(&t), payload);
	while (st == CAGE_AGAIN && len > 0) {
		struct slice piece = slice_head(slice_of(zeros, sizeof(zeros)), len);
		st = swallow(r, piece, payload);
		len -= piece.len;
	}
	return st;
}

static void message_limit(void **state)
{
	(void)state;
	struct ws_reader r;
	uint64_t got = 0;
	ws_reader_init(&r, WS_SERVER, NULL, 0);
	assert_int_equal(swallow_frame(&r, WS_OP_BINARY, true, LIMIT_WS_MESSAGE, &got), CAGE_AGAIN);
	assert_int_equal(got, LIMIT_WS_MESSAGE);
	assert_int_equal(swallow_frame(&r, WS_OP_TEXT, false, LIMIT_WS_MESSAGE - 1, &got), CAGE_AGAIN);
	assert_int_equal(swallow_frame(&r, WS_OP_PING, true, 100, &got), CAGE_AGAIN);
	assert_int_equal(swallow_frame(&r, WS_OP_CONTINUATION, false, 1, &got), CAGE_AGAIN);
	assert_int_equal(swallow_frame(&r, WS_OP_CONTINUATION, false, 0, &got), CAGE_AGAIN);
	assert_int_equal(got, 2 * LIMIT_WS_MESSAGE + 100);
	assert_int_equal(swallow_frame(&r, WS_OP_CONTINUATION, true, 1, &got), CAGE_ELIMIT);
	assert_int_equal(r.error.code, WS_CODE_TOO_BIG);
	ws_reader_init(&r, WS_SERVER, NULL, 0);
	assert_int_equal(swallow_frame(&r, WS_OP_BINARY, true, LIMIT_WS_MESSAGE + 1, &got), CAGE_ELIMIT);
	assert_int_equal(r.error.code, WS_CODE_TOO_BIG);
}

/* Control frames and messages before it do not count. */
static void fragment_limit(void **state)
{
	(void)state;
	struct ws_reader r;
	uint64_t got = 0;
	ws_reader_init(&r, WS_SERVER, NULL, 0);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(swallow_frame(&r, WS_OP_TEXT, false, 0, &got), CAGE_AGAIN);
		for (size_t i = 2; i < LIMIT_WS_FRAGMENTS; i++) {
			assert_int_equal(swallow_frame(&r, WS_OP_CONTINUATION, false, 0, &got), CAGE_AGAIN);
			assert_int_equal(swallow_frame(&r, WS_OP_PONG, true, 0, &got), CAGE_AGAIN);
		}
		assert_int_equal(swallow_frame(&r, WS_OP_CONTINUATION, round == 0, 0, &got), CAGE_AGAIN);
	}
	assert_int_equal(swallow_frame(&r, WS_OP_CONTINUATION, true, 0, &got), CAGE_ELIMIT);
	assert_int_equal(r.error.code, WS_CODE_TOO_BIG);
}

static void pieces_of_a_server_are_not_copied(void **state)
{
	(void)state;
	const struct slice input = SLICE("\x81\x05Hello");
	struct ws_reader r;
	struct ws_event event;
	size_t used;
	ws_reader_init(&r, WS_SERVER, NULL, 0);
	assert_int_equal(ws_read(&r, input, &used, &event), CAGE_OK);
	assert_int_equal(event.kind, WS_BEGIN);
	assert_int_equal(used, 2);
	assert_int_equal(ws_read(&r, slice_from(input, used), &used, &event), CAGE_OK);
	assert_int_equal(event.kind, WS_PIECE);
	assert_ptr_equal(event.payload.ptr, input.ptr + 2);
	assert_int_equal(used, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages),
		cmocka_unit_test(control_frames),
		cmocka_unit_test(nothing_is_read_after_a_close),
		cmocka_unit_test(control_frame_of_125_bytes),
		cmocka_unit_test(close_codes),
		cmocka_unit_test(bad_closes),
		cmocka_unit_test(bad_first_bytes),
		cmocka_unit_test(fragments_out_of_order),
		cmocka_unit_test(masks),
		cmocka_unit_test(lengths),
		cmocka_unit_test(long_payloads),
		cmocka_unit_test(text_is_utf8_over_fragments),
		cmocka_unit_test(text_fails_at_the_first_bad_byte),
		cmocka_unit_test(refusal_is_final),
		cmocka_unit_test(message_limit),
		cmocka_unit_test(fragment_limit),
		cmocka_unit_test(pieces_of_a_server_are_not_copied),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
