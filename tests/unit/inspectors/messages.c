/* Messages of a stream in the chain: each is looked at by itself and together with what came before. */
#include "tests/unit/inspectors/chain_rig.h"

#define URL "https://api.example.test/socket"
#define WATCHED "https://watch.test/socket"
#define PAT "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" /* made up; right by its checksum */
#define PAT_LEN (sizeof(PAT) - 1)

/* One whole message, in pieces of that size. */
static enum chain_verdict say(struct rig *r, struct chain_stream *s, const char *url, enum message_kind kind,
			      struct slice text, size_t cut)
{
	r->more.message = kind;
	request(r, url, no_fields);
	enum chain_verdict v = chain_message(r->run, s);
	for (size_t at = 0; v == CHAIN_PASS && at < text.len; at += cut)
		v = chain_body(r->run, slice_head(slice_from(text, at), cut));
	return v == CHAIN_PASS ? chain_end(r->run, NULL, 0) : v;
}

static size_t findings(const struct rig *r)
{
	size_t n;
	chain_findings(r->run, &n);
	return n;
}

static void a_message_is_looked_at_by_itself(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	for (size_t cut = 1; cut <= PAT_LEN; cut++) {
		struct chain_stream *s = chain_stream_new();
		assert_int_equal(say(&r, s, URL, MESSAGE_TEXT, SLICE("hello"), cut), CHAIN_PASS);
		assert_int_equal(say(&r, s, URL, MESSAGE_TEXT, SLICE(""), cut), CHAIN_PASS);
		assert_blocked(&r, say(&r, s, URL, MESSAGE_BINARY, SLICE(PAT), cut), REASON_SECRET_DETECTED);
		chain_stream_free(&s);
	}
	rig_free(&r);
}

static void t28_what_is_split_over_messages_is_found(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	struct slice pat = SLICE(PAT);
	for (size_t at = 1; at < pat.len; at++) {
		struct chain_stream *s = chain_stream_new();
		assert_int_equal(say(&r, s, URL, MESSAGE_TEXT, slice_head(pat, at), 7), CHAIN_PASS);
		assert_int_equal(say(&r, s, URL, MESSAGE_CONTROL, SLICE("ping"), 7), CHAIN_PASS);
		assert_blocked(&r, say(&r, s, URL, MESSAGE_TEXT, slice_from(pat, at), 7), REASON_SECRET_DETECTED);
		chain_stream_free(&s);
	}
	rig_free(&r);
}

/* What is long before and behind the cut does not matter. */
static void t28_long_messages_meet_too(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	struct chain_stream *s = chain_stream_new();
	size_t room = 3 * LIMIT_MESSAGE_SPLICE, half = PAT_LEN / 2;
	char *text = malloc(room);
	memset(text, ' ', room);
	memcpy(text + room - half, PAT, half);
	assert_int_equal(say(&r, s, URL, MESSAGE_TEXT, slice_of(text, room), 1000), CHAIN_PASS);
	memset(text, ' ', room);
	memcpy(text, &PAT[half], PAT_LEN - half);
	assert_blocked(&r, say(&r, s, URL, MESSAGE_TEXT, slice_of(text, room), room), REASON_SECRET_DETECTED);
	free(text);
	chain_stream_free(&s);
	rig_free(&r);
}

static void t29_control_frames_are_joined_with_all_that_is_around_them(void **state)
{
	(void)state;
	static const enum message_kind kinds[][2] = {
		{MESSAGE_CONTROL, MESSAGE_CONTROL}, {MESSAGE_CONTROL, MESSAGE_TEXT}, {MESSAGE_BINARY, MESSAGE_CONTROL}};
	struct rig r = rig_new(RULES);
	struct slice pat = SLICE(PAT);
	for (size_t i = 0; i < 3; i++) {
		struct chain_stream *s = chain_stream_new();
		assert_int_equal(say(&r, s, URL, MESSAGE_TEXT, SLICE("before"), 7), CHAIN_PASS);
		assert_int_equal(say(&r, s, URL, kinds[i][0], slice_head(pat, 20), 7), CHAIN_PASS);
		assert_blocked(&r, say(&r, s, URL, kinds[i][1], slice_from(pat, 20), 7), REASON_SECRET_DETECTED);
		chain_stream_free(&s);
	}
	rig_free(&r);
}

/* A stream that goes on after a finding does not tell it again and again. */
/* A control frame overtakes the message that it comes inside of: what leaves is it, then all of the message. */
static void t28_control_frames_inside_a_message_leave_before_it(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES), inner = rig_new(RULES);
	static char filler[KIB(20)];
	const struct slice pat = SLICE(PAT);
	const size_t lengths[] = {10, 2040, 2100, KIB(9), sizeof(filler)};
	memset(filler, '.', sizeof(filler));
	for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		const bool is_in_message = i % 2 == 0; /* else in one before it */
		struct slice rest = slice_of(filler, lengths[i / 2]);
		struct chain_stream *s = chain_stream_new();
		chain_stream_defer(s);
		if (!is_in_message)
			assert_int_equal(say(&inner, s, URL, MESSAGE_TEXT, slice_head(pat, 20), 7), CHAIN_PASS);
		r.more.message = MESSAGE_TEXT;
		request(&r, URL, no_fields);
		assert_int_equal(chain_message(r.run, s), CHAIN_PASS);
		if (is_in_message)
			assert_int_equal(chain_body(r.run, slice_from(pat, 20)), CHAIN_PASS);
		assert_int_equal(chain_body(r.run, rest), CHAIN_PASS);
		enum chain_verdict v = say(&inner, s, URL, MESSAGE_CONTROL,
					   is_in_message ? slice_head(pat, 20) : slice_from(pat, 20), 7);
		if (!is_in_message) {
			assert_blocked(&inner, v == CHAIN_PASS ? chain_settle(inner.run, s) : v,
				       REASON_SECRET_DETECTED);
		} else {
			assert_int_equal(v, CHAIN_PASS);
			assert_int_equal(chain_settle(inner.run, s), CHAIN_PASS);
			v = chain_end(r.run, NULL, 0);
			assert_blocked(&r, v == CHAIN_PASS ? chain_settle(r.run, s) : v, REASON_SECRET_DETECTED);
		}
		chain_stream_free(&s);
	}
	rig_free(&inner);
	rig_free(&r);
}

/* Longer than what a brief message is searched with, and in as many bytes of control frames as the message around them has so
 * far: what they owe is searched all the same. */
static void t28_control_frames_owe_whatever_is_around_them(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES), inner = rig_new(RULES);
	char token[900] = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ";
	const size_t start = strlen(token), signature = sizeof(token) - 44;
	for (size_t i = start; i < sizeof(token); i++)
		token[i] = i == signature ? '.' : "abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"[i * 31 % 42];
	const struct slice all = slice_of(token, sizeof(token));
	struct chain_stream *s = chain_stream_new();
	assert_blocked(&r, say(&r, s, URL, MESSAGE_TEXT, all, 100), REASON_SECRET_DETECTED);
	chain_stream_free(&s);
	s = chain_stream_new();
	chain_stream_defer(s);
	static char filler[KIB(3)];
	memset(filler, '.', sizeof(filler));
	const struct slice begun = slice_head(all, 600), rest = slice_from(all, 600);
	assert_int_equal(say(&inner, s, URL, MESSAGE_CONTROL, slice_of(filler, sizeof(filler) - rest.len), 125),
			 CHAIN_PASS);
	assert_int_equal(say(&inner, s, URL, MESSAGE_TEXT, begun, 600), CHAIN_PASS);
	assert_int_equal(chain_settle(inner.run, s), CHAIN_PASS);
	r.more.message = MESSAGE_TEXT;
	request(&r, URL, no_fields);
	assert_int_equal(chain_message(r.run, s), CHAIN_PASS);
	assert_int_equal(chain_body(r.run, slice_of(filler, sizeof(filler))), CHAIN_PASS);
	enum chain_verdict v = CHAIN_PASS;
	for (size_t at = 0; at < rest.len && v == CHAIN_PASS; at += 100)
		v = say(&inner, s, URL, MESSAGE_CONTROL, slice_head(slice_from(rest, at), 100), 100);
	assert_blocked(&inner, v == CHAIN_PASS ? chain_settle(inner.run, s) : v, REASON_SECRET_DETECTED);
	chain_stream_free(&s);
	rig_free(&inner);
	rig_free(&r);
}

static void what_was_told_is_not_told_of_the_next_message(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	struct chain_stream *s = chain_stream_new();
	assert_int_equal(say(&r, s, WATCHED, MESSAGE_TEXT, SLICE("it is " PAT), 9), CHAIN_PASS);
	assert_int_equal(findings(&r), 1);
	assert_int_equal(say(&r, s, WATCHED, MESSAGE_TEXT, SLICE(" as ever"), 9), CHAIN_PASS);
	assert_int_equal(findings(&r), 0);
	assert_int_equal(say(&r, s, WATCHED, MESSAGE_TEXT, SLICE("once more " PAT), 9), CHAIN_PASS);
	assert_int_equal(findings(&r), 1);
	chain_stream_free(&s);
	rig_free(&r);
}

/* ---- small messages that leave together ---- */

/* All of text byte by byte, with a ping between; how many were passed before one was blocked. */
static size_t spell(struct rig *r, struct chain_stream *s, struct slice text, enum message_kind between)
{
	for (size_t i = 0; i < text.len; i++) {
		if (between == MESSAGE_CONTROL && say(r, s, URL, MESSAGE_CONTROL, SLICE("p"), 1) != CHAIN_PASS)
			return i;
		if (say(r, s, URL, MESSAGE_TEXT, slice_head(slice_from(text, i), 1), 1) != CHAIN_PASS)
			return i;
	}
	return text.len;
}

static void t28_what_small_messages_spell_is_stopped_with_its_last_byte(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	for (int pings = 0; pings < 2; pings++) {
		struct chain_stream *s = chain_stream_new();
		chain_stream_defer(s);
		assert_int_equal(say(&r, s, URL, MESSAGE_TEXT, SLICE("it is "), 9), CHAIN_PASS);
		assert_int_equal(spell(&r, s, SLICE(PAT), pings ? MESSAGE_CONTROL : MESSAGE_TEXT), PAT_LEN - 1);
		assert_blocked(&r, chain_verdict(r.run), REASON_SECRET_DETECTED);
		chain_stream_free(&s);
	}
	rig_free(&r);
}

/* "-----BEGIN ... KEY-----" and more than LIMIT_MESSAGE_BRIEF bytes behind it. */
static struct slice long_value(char *room, size_t len)
{
	static const char begin[] = "-----BEGIN RSA PRIVATE KEY-----\n", end[] = "\n-----END RSA PRIVATE KEY-----";
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t n = sizeof(begin) - 1;
	uint32_t x = 7;
	memcpy(room, begin, n);
	for (; n < len - (sizeof(end) - 1); n++) {
		x = x * 1664525u + 1013904223u;
		room[n] = alphabet[x >> 26];
	}
	memcpy(room + n, end, sizeof(end) - 1);
	return slice_of(room, len);
}

static void t28_what_small_messages_owe_is_found_before_they_leave(void **state)
{
	(void)state;
	static char room[3000];
	struct rig r = rig_new(RULES);
	for (size_t len = 1000; len <= sizeof(room); len += 1000) {
		struct slice value = long_value(room, len);
		struct chain_stream *s = chain_stream_new();
		chain_stream_defer(s);
		if (spell(&r, s, value, MESSAGE_TEXT) == value.len) {
			assert_true(chain_stream_owes(s));
			(void)chain_settle(r.run, s);
		}
		assert_blocked(&r, chain_verdict(r.run), REASON_SECRET_DETECTED);
		chain_stream_free(&s);
	}
	rig_free(&r);
}

static void small_messages_owe_nothing_once_they_are_settled(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	struct chain_stream *s = chain_stream_new();
	chain_stream_defer(s);
	assert_false(chain_stream_owes(s));
	assert_int_equal(spell(&r, s, SLICE("nothing of note"), MESSAGE_CONTROL), 15);
	assert_true(chain_stream_owes(s));
	assert_int_equal(chain_settle(r.run, s), CHAIN_PASS);
	assert_false(chain_stream_owes(s));
	chain_stream_free(&s);
	rig_free(&r);
}

/* A finding of a message is not told once more when what it owes is looked at. */
static void what_was_told_is_not_told_of_what_is_owed(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	struct chain_stream *s = chain_stream_new();
	chain_stream_defer(s);
	assert_int_equal(say(&r, s, WATCHED, MESSAGE_TEXT, SLICE("it is " PAT), 9), CHAIN_PASS);
	assert_int_equal(findings(&r), 1);
	request(&r, WATCHED, no_fields);
	assert_int_equal(chain_settle(r.run, s), CHAIN_PASS);
	assert_int_equal(findings(&r), 0);
	chain_stream_free(&s);
	rig_free(&r);
}

/* The head of the request frames no message. */
static void codings_of_the_request_are_not_those_of_messages(void **state)
{
	(void)state;
	static const char *const coded[] = {"content-encoding", "gzip", NULL};
	struct rig r = rig_new(RULES);
	struct chain_stream *s = chain_stream_new();
	r.more.message = MESSAGE_TEXT;
	request(&r, URL, coded);
	assert_int_equal(chain_message(r.run, s), CHAIN_PASS);
	assert_blocked(&r, chain_body(r.run, SLICE("it is " PAT " as ever")), REASON_SECRET_DETECTED);
	chain_stream_free(&s);
	rig_free(&r);
}

static void limits_are_for_each_message(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "  - {id: out, hosts: [out.test], limits: {out: 300/h}}\n");
	struct chain_stream *s = chain_stream_new();
	char text[101];
	memset(text, ' ', sizeof(text));
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(say(&r, s, "https://small.test/", MESSAGE_TEXT, slice_of(text, 100), 50), CHAIN_PASS);
		assert_int_equal(say(&r, s, "https://out.test/", MESSAGE_TEXT, slice_of(text, 100), 50), CHAIN_PASS);
	}
	assert_blocked(&r, say(&r, s, "https://small.test/", MESSAGE_TEXT, slice_of(text, 101), 50),
		       REASON_BODY_TOO_LARGE);
	assert_blocked(&r, say(&r, s, "https://out.test/", MESSAGE_CONTROL, slice_of(text, 100), 50),
		       REASON_LIMIT_BUDGET);
	chain_stream_free(&s);
	rig_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_looked_at_by_itself),
		cmocka_unit_test(t28_what_is_split_over_messages_is_found),
		cmocka_unit_test(t28_what_small_messages_spell_is_stopped_with_its_last_byte),
		cmocka_unit_test(t28_what_small_messages_owe_is_found_before_they_leave),
		cmocka_unit_test(small_messages_owe_nothing_once_they_are_settled),
		cmocka_unit_test(what_was_told_is_not_told_of_what_is_owed),
		cmocka_unit_test(t28_long_messages_meet_too),
		cmocka_unit_test(t29_control_frames_are_joined_with_all_that_is_around_them),
		cmocka_unit_test(t28_control_frames_inside_a_message_leave_before_it),
		cmocka_unit_test(t28_control_frames_owe_whatever_is_around_them),
		cmocka_unit_test(what_was_told_is_not_told_of_the_next_message),
		cmocka_unit_test(codings_of_the_request_are_not_those_of_messages),
		cmocka_unit_test(limits_are_for_each_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
