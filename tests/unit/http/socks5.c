/* SOCKS5 from the client: the same steps wherever the bytes are cut, and a clear refusal of everything else. */
#include "core/http/socks5.h"
#include "core/http/url.h"
#include "tests/unit/http/fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Who is talked to. */
struct rig {
	bool needs_identity, password_is_good;
};

static const struct rig open_rig = {false, true}, strict_rig = {true, true}, wrong_rig = {true, false};

/* All that was said in one conversation. */
struct talk {
	enum socks5_event last;
	char answers[64];
	size_t n_answers;
	char user[256], password[256], host[256];
	size_t user_len, password_len, host_len;
	bool is_printable;
	uint16_t port;
	size_t used;
	enum reason reason;
	const char *what;
};

static void keep(char *room, size_t *len, struct slice s)
{
	assert_true(s.len <= 255);
	memcpy(room, s.ptr, s.len);
	*len = s.len;
}

static void add_answer(struct talk *t, struct slice answer)
{
	assert_true(t->n_answers + answer.len <= sizeof(t->answers));
	if (answer.len > 0)
		memcpy(t->answers + t->n_answers, answer.ptr, answer.len);
	t->n_answers += answer.len;
}

/* True: there may be more in what has arrived. */
static bool one_step(struct talk *t, struct socks5 *s, const struct rig *rig, struct slice arrived)
{
	struct socks5_step step;
	struct slice input = slice_from(arrived, t->used);
	t->last = socks5_read(s, input, &step);
	assert_true(step.used <= input.len);
	add_answer(t, step.answer);
	if (t->last == SOCKS5_IDENTITY) {
		struct socks5_step none;
		keep(t->user, &t->user_len, step.user);
		keep(t->password, &t->password_len, step.password);
		assert_int_equal(socks5_read(s, slice_from(input, step.used), &none), SOCKS5_MORE);
		assert_int_equal(none.used, 0);
		add_answer(t, socks5_judge(s, rig->password_is_good));
	} else if (t->last == SOCKS5_CONNECT) {
		keep(t->host, &t->host_len, step.host);
		t->is_printable = step.host_is_printable;
		t->port = step.port;
	}
	t->used += step.used;
	t->reason = step.reason;
	t->what = step.what;
	return t->last == SOCKS5_ANSWER || (t->last == SOCKS5_IDENTITY && rig->password_is_good);
}

/* The input arrives in two pieces, the first of `cut` bytes, or one byte at a time when cut is 0. */
static struct talk run(const struct rig *rig, struct slice input, size_t cut)
{
	struct talk t = {.last = SOCKS5_MORE};
	struct socks5 s = {.needs_identity = rig->needs_identity};
	for (size_t n = cut ? cut : 1; n <= input.len && t.last == SOCKS5_MORE;
	     n = cut && n < input.len ? input.len : n + 1)
		while (one_step(&t, &s, rig, slice_head(input, n)))
			;
	return t;
}

static void assert_answers(const struct talk *t, struct slice wanted)
{
	assert_int_equal(t->n_answers, wanted.len);
	assert_memory_equal(t->answers, wanted.ptr, wanted.len);
}

/* Whatever the cut: this target, these answers, and `rest` bytes that are not ours. */
static void assert_connects(const struct rig *rig, struct slice input, struct slice answers, struct slice host,
			    uint16_t port, size_t rest)
{
	for (size_t cut = 0; cut <= input.len; cut++) {
		struct talk t = run(rig, input, cut);
		if (t.last != SOCKS5_CONNECT)
			fail_msg("cut at %zu: event %d, %s", cut, (int)t.last, t.what ? t.what : "no reason");
		assert_answers(&t, answers);
		assert_int_equal(t.host_len, host.len);
		assert_memory_equal(t.host, host.ptr, host.len);
		assert_int_equal(t.port, port);
		assert_int_equal(t.used, input.len - rest);
	}
}

/* Whatever the cut: this refusal, with the last byte of the input and not before. */
static void assert_refuses(const struct rig *rig, struct slice input, struct slice answers, enum reason reason)
{
	for (size_t cut = 0; cut <= input.len; cut++) {
		struct talk t = run(rig, input, cut);
		if (t.last != SOCKS5_REFUSE || t.reason != reason)
			fail_msg("cut at %zu: event %d, reason %d", cut, (int)t.last, (int)t.reason);
		assert_non_null(t.what);
		assert_answers(&t, answers);
	}
	for (size_t n = 1; n < input.len; n++)
		assert_int_equal(run(rig, slice_head(input, n), 0).last, SOCKS5_MORE);
}

#define HELLO "\x05\x01\x00"
#define REQUEST "\x05\x01\x00"
#define NAME       \
	"\x03\x06" \
	"a.test"   \
	"\x01\xbb"
#define FAILED "\x05\x01\x00\x01\x00\x00\x00\x00\x00\x00"
#define ASK(rest) SLICE(HELLO REQUEST rest)

static void targets(void **state)
{
	(void)state;
	const struct slice no_auth = SLICE("\x05\x00");
	const struct {
		struct slice input, host;
		uint16_t port;
	} good[] = {
		{ASK(NAME), SLICE("a.test"), 443},
		{ASK("\x03\x01x\x00\x01"), SLICE("x"), 1},
		{ASK("\x03\x06"
		     "A.TEST\xff\xff"),
		 SLICE("A.TEST"), 65535},
		{ASK("\x01\x01\x02\x03\xff\x00\x50"), SLICE("1.2.3.255"), 80},
		{ASK("\x01\x00\x00\x00\x00\x01\x00"), SLICE("0.0.0.0"), 256},
		{ASK("\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb"), SLICE("[2001:db8::1]"), 443},
		{ASK("\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\xbb"), SLICE("[::]"), 443},
		{ASK("\x04\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x01\x01\xbb"), SLICE("[::ffff:10.0.0.1]"), 443},
		{ASK("\x04\x11\x11\x22\x22\x33\x33\x44\x44\x55\x55\x66\x66\x77\x77\x88\x88\x01\xbb"),
		 SLICE("[1111:2222:3333:4444:5555:6666:7777:8888]"), 443},
	};
	for (size_t i = 0; i < COUNT(good); i++)
		assert_connects(&open_rig, good[i].input, no_auth, good[i].host, good[i].port, 0);
}

/* Written so that the reader of a CONNECT's host gets the same address back. */
static void addresses_are_hosts(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 512; i++) {
		struct socks5 s = {.state = SOCKS5_REQUEST};
		struct socks5_step step;
		struct host host;
		const char *why;
		struct addr a = {.family = i % 2 ? ADDR_V4 : ADDR_V6};
		char input[32] = {5, 1, 0, i % 2 ? 1 : 4};
		size_t len = i % 2 ? 4 : 16;
		for (size_t k = 0; k < len; k++)
			a.bytes[k] = (i >> k % 9) & 1 ? (unsigned char)(i * 7 + k) : 0;
		memcpy(input + 4, a.bytes, len);
		input[4 + len] = 1;
		assert_int_equal(socks5_read(&s, slice_of(input, len + 6), &step), SOCKS5_CONNECT);
		assert_true(step.host_is_printable);
		assert_int_equal(host_parse(step.host, &arena, &host, &why), CAGE_OK);
		assert_true(host.kind == HOST_ADDRESS && addr_eq(&host.addr, &a));
	}
}

static void longest_name(void **state)
{
	(void)state;
	char input[6 + 2 + 255 + 2 + 3] = "\x05\x01\x00\x05\x01\x00\x03\xff";
	memset(input + 8, 'n', 255);
	memcpy(input + 8 + 255, "\x01\xbb\x16\x03\x01", 5);
	assert_connects(&open_rig, slice_of(input, sizeof(input)), SLICE("\x05\x00"), slice_of(input + 8, 255), 443, 3);
}

static void what_follows_is_not_ours(void **state)
{
	(void)state;
	struct socks5 s = {.state = SOCKS5_REQUEST};
	struct socks5_step step;
	const struct slice input = SLICE(REQUEST NAME "\x16\x03\x01");
	assert_int_equal(socks5_read(&s, input, &step), SOCKS5_CONNECT);
	assert_int_equal(step.used, input.len - 3);
	assert_int_equal(socks5_read(&s, SLICE("\x05\x01\x00\x05"), &step), SOCKS5_MORE);
	assert_int_equal(step.used, 0);
	assert_connects(&open_rig, SLICE(HELLO REQUEST NAME HELLO REQUEST NAME), SLICE("\x05\x00"), SLICE("a.test"),
			443, sizeof(HELLO REQUEST NAME) - 1);
}

/* A name is handed on as it came, with a word about its bytes. */
static void t01_bytes_of_a_name(void **state)
{
	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		for (size_t at = 0; at < 3; at++) {
			char input[] = HELLO REQUEST "\x03\x03"
						     "abc"
						     "\x01\xbb";
			input[8 + at] = (char)byte;
			struct talk t = run(&open_rig, slice_of(input, sizeof(input) - 1), 0);
			assert_int_equal(t.last, SOCKS5_CONNECT);
			assert_int_equal(t.host_len, 3);
			assert_memory_equal(t.host, input + 8, 3);
			assert_int_equal(t.is_printable, byte >= 0x21 && byte <= 0x7e);
		}
	}
}

/* ---- who asks ---- */

static void methods(void **state)
{
	(void)state;
	const struct slice none = SLICE("\x05\x00"), password = SLICE("\x05\x02\x01\x00");
	assert_connects(&open_rig, SLICE("\x05\x02\x00\x02" REQUEST NAME), none, SLICE("a.test"), 443, 0);
	assert_connects(&open_rig, SLICE("\x05\x03\x02\x01\x00" REQUEST NAME), none, SLICE("a.test"), 443, 0);
	assert_connects(&open_rig, SLICE("\x05\x01\x02\x01\x01u\x01p" REQUEST NAME), password, SLICE("a.test"), 443, 0);
	assert_connects(&open_rig, SLICE("\x05\x02\x01\x02\x01\x01u\x01p" REQUEST NAME), password, SLICE("a.test"), 443,
			0);
	assert_connects(&strict_rig, SLICE("\x05\x02\x00\x02\x01\x01u\x01p" REQUEST NAME), password, SLICE("a.test"),
			443, 0);
}

static void no_method_fits(void **state)
{
	(void)state;
	const struct slice no = SLICE("\x05\xff");
	assert_refuses(&open_rig, SLICE("\x05\x00"), no, REASON_PROTOCOL_UNKNOWN);
	assert_refuses(&open_rig, SLICE("\x05\x01\x01"), no, REASON_PROTOCOL_UNKNOWN);
	assert_refuses(&open_rig, SLICE("\x05\x03\x01\x80\xff"), no, REASON_PROTOCOL_UNKNOWN);
	assert_refuses(&strict_rig, SLICE("\x05\x00"), no, REASON_AUTH_REQUIRED);
	assert_refuses(&strict_rig, SLICE("\x05\x01\x00"), no, REASON_AUTH_REQUIRED);
	assert_refuses(&strict_rig, SLICE("\x05\x02\x00\x01"), no, REASON_AUTH_REQUIRED);
}

static void all_methods_at_once(void **state)
{
	(void)state;
	char input[2 + 255] = {5, (char)255};
	for (size_t i = 0; i < 255; i++)
		input[2 + i] = (char)(255 - i); /* all but 0 */
	struct talk t = run(&open_rig, slice_of(input, sizeof(input)), 0);
	assert_answers(&t, SLICE("\x05\x02"));
	assert_int_equal(t.last, SOCKS5_MORE);
}

static void passwords(void **state)
{
	(void)state;
	const struct {
		struct slice input, user, password;
	} good[] = {
		{SLICE("\x01\x01u\x01p"), SLICE("u"), SLICE("p")},
		{SLICE("\x01\x05s\0b:x\x03p\0\xff"), SLICE("s\0b:x"), SLICE("p\0\xff")},
		{SLICE("\x01\x00\x05token"), SLICE(""), SLICE("token")},
		{SLICE("\x01\x04user\x00"), SLICE("user"), SLICE("")},
		{SLICE("\x01\x00\x00"), SLICE(""), SLICE("")},
	};
	for (size_t i = 0; i < COUNT(good); i++) {
		char room[64] = "\x05\x01\x02";
		memcpy(room + 3, good[i].input.ptr, good[i].input.len);
		for (size_t cut = 0; cut <= 3 + good[i].input.len; cut++) {
			struct talk t = run(&strict_rig, slice_of(room, 3 + good[i].input.len), cut);
			assert_answers(&t, SLICE("\x05\x02\x01\x00"));
			assert_true(slice_eq(slice_of(t.user, t.user_len), good[i].user));
			assert_true(slice_eq(slice_of(t.password, t.password_len), good[i].password));
			assert_int_equal(t.used, 3 + good[i].input.len);
		}
	}
}

static void longest_password(void **state)
{
	(void)state;
	char input[SOCKS5_MESSAGE] = "\x01\xff";
	struct socks5 s = {.state = SOCKS5_PASSWORD};
	struct socks5_step step;
	memset(input + 2, 'u', 255);
	memset(input + 2 + 255, 'p', 1 + 255);
	input[2 + 255] = (char)255;
	for (size_t n = 0; n < sizeof(input); n++)
		assert_int_equal(socks5_read(&s, slice_of(input, n), &step), SOCKS5_MORE);
	assert_int_equal(socks5_read(&s, slice_of(input, sizeof(input)), &step), SOCKS5_IDENTITY);
	assert_int_equal(step.used, sizeof(input));
	assert_true(step.user.len == 255 && step.user.ptr == input + 2);
	assert_true(step.password.len == 255 && step.password.ptr == input + 258);
}

static void wrong_password(void **state)
{
	(void)state;
	const struct slice input = SLICE("\x05\x01\x02\x01\x01u\x01p" REQUEST NAME);
	struct talk t = run(&wrong_rig, input, input.len);
	assert_int_equal(t.last, SOCKS5_IDENTITY);
	assert_answers(&t, SLICE("\x05\x02\x01\x01"));
	struct socks5 s = {.state = SOCKS5_JUDGED};
	struct socks5_step step;
	assert_true(slice_eq(socks5_judge(&s, false), SLICE("\x01\x01")));
	assert_int_equal(socks5_read(&s, SLICE(REQUEST NAME), &step), SOCKS5_MORE);
	assert_int_equal(step.used, 0);
}

/* Nobody gets in by a verdict on nothing. */
static void verdict_that_nobody_asked_for(void **state)
{
	(void)state;
	static const enum socks5_state states[] = {SOCKS5_GREETING, SOCKS5_PASSWORD, SOCKS5_REQUEST, SOCKS5_OVER};
	for (size_t i = 0; i < COUNT(states); i++) {
		struct socks5 s = {.state = states[i], .needs_identity = true};
		assert_true(slice_eq(socks5_judge(&s, true), SLICE("\x01\x01")));
		assert_int_equal(s.state, SOCKS5_OVER);
	}
}

/* ---- what is not served ---- */

static void other_protocols(void **state)
{
	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		char first = (char)byte;
		if (byte != 5)
			assert_refuses(&open_rig, slice_of(&first, 1), SLICE(""), REASON_PROTOCOL_UNKNOWN);
	}
	struct socks5 s = {.needs_identity = false};
	struct socks5_step step;
	assert_int_equal(socks5_read(&s, SLICE("\x04\x01\x01\xbb\x7f\x00\x00\x01\x00"), &step), SOCKS5_REFUSE);
	assert_non_null(strstr(step.what, "SOCKS4"));
	assert_int_equal(socks5_read(&s, SLICE(HELLO), &step), SOCKS5_MORE);
}

static void other_password_versions(void **state)
{
	(void)state;
	const struct slice no = SLICE("\x05\x02\x01\x01");
	assert_refuses(&strict_rig, SLICE("\x05\x01\x02\x05"), no, REASON_PROTOCOL_UNKNOWN);
	assert_refuses(&strict_rig, SLICE("\x05\x01\x02\x00"), no, REASON_PROTOCOL_UNKNOWN);
}

static void other_commands(void **state)
{
	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		char input[] = HELLO "\x05?";
		input[4] = (char)byte;
		if (byte != 1)
			assert_refuses(&open_rig, slice_of(input, 5), SLICE("\x05\0\x05\x07\0\x01\0\0\0\0\0\0"),
				       REASON_PROTOCOL_UNKNOWN);
	}
}

static void other_address_types(void **state)
{
	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		char input[] = HELLO REQUEST "?";
		input[6] = (char)byte;
		if (byte != 1 && byte != 3 && byte != 4)
			assert_refuses(&open_rig, slice_of(input, 7), SLICE("\x05\0\x05\x08\0\x01\0\0\0\0\0\0"),
				       REASON_TARGET_MALFORMED);
	}
}

static void malformed_requests(void **state)
{
	(void)state;
	const struct slice failed = SLICE("\x05\x00" FAILED);
	assert_refuses(&open_rig, SLICE(HELLO "\x04"), failed, REASON_PROTOCOL_UNKNOWN);
	assert_refuses(&open_rig, SLICE(HELLO "\x16"), failed, REASON_PROTOCOL_UNKNOWN);
	assert_refuses(&open_rig, SLICE(HELLO "\x05\x01\x01"), failed, REASON_PROTOCOL_UNKNOWN);
	const struct slice not_allowed = SLICE("\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00");
	assert_refuses(&open_rig, ASK("\x03\x00"), not_allowed, REASON_TARGET_MALFORMED);
	assert_refuses(&open_rig, ASK("\x03\x01x\x00\x00"), not_allowed, REASON_TARGET_MALFORMED);
	assert_refuses(&open_rig, ASK("\x01\x01\x02\x03\x04\x00\x00"), not_allowed, REASON_TARGET_MALFORMED);
}

static void replies(void **state)
{
	(void)state;
	static const enum socks5_code codes[] = {SOCKS5_REPLY_OK,          SOCKS5_REPLY_FAILED,
						 SOCKS5_REPLY_NOT_ALLOWED, SOCKS5_REPLY_UNREACHABLE,
						 SOCKS5_REPLY_COMMAND,     SOCKS5_REPLY_ADDRESS};
	for (size_t i = 0; i < COUNT(codes); i++) {
		char wanted[] = {5, (char)codes[i], 0, 1, 0, 0, 0, 0, 0, 0};
		assert_true(slice_eq(socks5_reply(codes[i]), slice_of(wanted, sizeof(wanted))));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets),
		cmocka_unit_test_setup_teardown(addresses_are_hosts, setup, teardown),
		cmocka_unit_test(longest_name),
		cmocka_unit_test(what_follows_is_not_ours),
		cmocka_unit_test(t01_bytes_of_a_name),
		cmocka_unit_test(methods),
		cmocka_unit_test(no_method_fits),
		cmocka_unit_test(all_methods_at_once),
		cmocka_unit_test(passwords),
		cmocka_unit_test(longest_password),
		cmocka_unit_test(wrong_password),
		cmocka_unit_test(verdict_that_nobody_asked_for),
		cmocka_unit_test(other_protocols),
		cmocka_unit_test(other_password_versions),
		cmocka_unit_test(other_commands),
		cmocka_unit_test(other_address_types),
		cmocka_unit_test(malformed_requests),
		cmocka_unit_test(replies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
