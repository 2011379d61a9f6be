/* What the keeper of a sandbox reads: its spec, its result, the end of a job, and names that come out of a room. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>

#include "orchestrator/keeper/pull.h"
#include "orchestrator/keeper/result.h"
#include "orchestrator/keeper/spec.h"
#include "orchestrator/keeper/wire.h"

/* ---- the spec ---- */

static bool parse(struct slice text, struct spec *out)
{
	const char *why;
	bool ok = spec_parse(text, out, &why);
	assert_true(ok == (why == NULL));
	return ok;
}

static void test_spec(void **state)
{
	struct spec s;
	(void)state;
	assert_true(parse(SLICE("id=box\0run=--ca-dir\0run=/a=b\0cmd=sh\0cmd=-c\0cmd=\0env=A=b=c\0dir=/"
				"x\0wall_ms=5\0output=7\0keep=1"
				"\0grace_ms=0\0publish=127.0.0.1:0:3000\0publish=[::1]:81:65535\0"),
			  &s));
	assert_string_equal(s.id, "box");
	assert_int_equal(s.cmd.n, 3);
	assert_string_equal(s.cmd.list[2], "");
	assert_string_equal(s.env.list[0], "A=b=c");
	assert_string_equal(spec_option(&s, "--ca-dir"), "/a=b");
	assert_null(spec_option(&s, "/a=b"));
	assert_string_equal(s.dir, "/x");
	assert_true(s.wall_ms == 5 && s.output == 7 && s.grace_ms == 0 && s.keep);
	assert_int_equal(s.n_ports, 2);
	assert_int_equal(s.ports[0].at.any.sa_family, AF_INET);
	assert_int_equal(s.ports[1].at.any.sa_family, AF_INET6);
	assert_int_equal(s.ports[1].port, 65535);
	spec_free(&s);
	assert_true(parse(SLICE("id=b"), &s));
	assert_string_equal(s.dir, "/workspace");
	assert_true(s.cmd.n == 0 && s.wall_ms == 0 && !s.keep);
	spec_free(&s);
}

static void test_spec_refused(void **state)
{
	static const struct slice bad[] = {WORD(""),
					   WORD("wall_ms=1"),
					   WORD("id="),
					   WORD("id=b\0other=1"),
					   WORD("id=b\0\0"),
					   WORD("id=b\0keep=yes"),
					   WORD("id=b\0wall_ms=-1"),
					   WORD("id=b\0wall_ms=99999999999"),
					   WORD("id=b\0dir="),
					   WORD("id=b\0env=A"),
					   WORD("id=b\0env==x"),
					   WORD("id=b\0publish=127.0.0.1:0"),
					   WORD("id=b\0publish=127.0.0.1:0:0"),
					   WORD("id=b\0publish=127.0.0.1:0:443"),
					   WORD("id=b\0publish=127.0.0.1:65536:1"),
					   WORD("id=b\0publish=::1:0:1000"),
					   WORD("id=b\0publish=[127.0.0.1]:0:1000"),
					   WORD("id=b\0publish=localhost:0:1000")};
	struct spec s;
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(parse(bad[i], &s));
		spec_free(&s);
	}
}

/* A command is one message, with its directory. */
static void test_spec_too_long(void **state)
{
	static char text[LIMIT_INSIDE_FRAME + 100] = "id=b\0cmd=";
	const size_t before = 9, dir = sizeof("/workspace");
	struct spec s;
	(void)state;
	memset(text + before, 'x', sizeof(text) - before);
	assert_true(parse(slice_of(text, before + LIMIT_INSIDE_FRAME - dir - 1), &s));
	spec_free(&s);
	assert_false(parse(slice_of(text, before + LIMIT_INSIDE_FRAME - dir), &s));
	spec_free(&s);
}

/* ---- the result ---- */

static void test_result(void **state)
{
	struct result r = {.state = RESULT_TIMED_OUT,
			   .reason = "time.wall",
			   .has_exit = true,
			   .exit = 255,
			   .signal = 9,
			   .began_us = 1,
			   .ended_us = UINT64_MAX,
			   .cpu_us = 2,
			   .memory_peak = 3,
			   .disk_peak = 4,
			   .oom = 5,
			   .output_bytes = 6,
			   .output_lost = 7},
		      again;
	char text[LIMIT_KEEPER_RESULT];
	(void)state;
	result_say(&r, SLICE("one=\ntwo\x01"));
	assert_string_equal(r.message, "one= two?");
	size_t n = result_format(&r, text);
	assert_true(result_parse(slice_of(text, n), &again));
	char other[LIMIT_KEEPER_RESULT];
	assert_int_equal(result_format(&again, other), n);
	assert_memory_equal(text, other, n);
	for (size_t i = 1; i < n; i++) /* half of one is none, unless only what may be missing is */
		if (result_parse(slice_of(text, i), &again))
			assert_true(text[i - 1] == '\n' && again.state == RESULT_TIMED_OUT);
}

static void test_result_refused(void **state)
{
	static const struct slice bad[] = {WORD(""),
					   WORD("state=failed\n"),
					   WORD("reason=exit\n"),
					   WORD("state=none\nreason=exit\n"),
					   WORD("state=failed\nreason=a b\n"),
					   WORD("state=failed\nreason=exit\nexit=256\n"),
					   WORD("state=failed\nreason=exit\ncpu_us=x\n"),
					   WORD("state=failed\nreason=exit")};
	struct result r;
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(result_parse(bad[i], &r));
	assert_true(result_parse(SLICE("state=failed\nreason=exit\nnew=1\n"), &r));
	assert_false(r.has_exit);
}

static void test_longest_result(void **state)
{
	struct result r = {.state = RESULT_SUCCEEDED, .has_exit = true};
	char text[LIMIT_KEEPER_RESULT], message[2 * LIMIT_KEEPER_MESSAGE];
	(void)state;
	memset(message, 'm', sizeof(message));
	memset(r.reason, 'r', sizeof(r.reason) - 1);
	result_say(&r, slice_of(message, sizeof(message)));
	assert_true(slice_ends(slice_of(text, result_format(&r, text)), SLICE("m\n")));
}

/* ---- what comes out of a room ---- */

static void test_done(void **state)
{
	enum done_how how;
	uint64_t n;
	int why;
	(void)state;
	assert_true(done_parse(SLICE("exit 255"), &how, &n) && how == DONE_EXIT && n == 255);
	assert_true(done_parse(SLICE("signal 9"), &how, &n) && how == DONE_SIGNAL && n == 9);
	assert_true(done_parse(SLICE("error 2"), &how, &n) && how == DONE_ERROR && n == 2);
	assert_false(done_parse(SLICE("exit"), &how, &n) || done_parse(SLICE("exit 256"), &how, &n));
	assert_false(done_parse(SLICE(""), &how, &n) || done_parse(SLICE("exit -1"), &how, &n));
	struct frame f = {.kind = FRAME_DONE, .payload = SLICE("error 28")};
	assert_true(!done_is_good(&f, &why) && why == ENOSPC);
	f.payload = SLICE("nonsense");
	assert_true(!done_is_good(&f, &why) && why == EPROTO);
	f.payload = SLICE("exit 0");
	assert_true(done_is_good(&f, &why));
}

static void test_names(void **state)
{
	struct pull_listed e;
	(void)state;
	assert_true(pull_entry_parse(SLICE("f 12 a b"), &e) && !e.is_dir && e.size == 12);
	assert_true(slice_eq(e.name, SLICE("a b")));
	assert_true(pull_entry_parse(SLICE("d 0 ...\n"), &e) && e.is_dir);
	static const struct slice bad[] = {WORD(""),       WORD("f"),       WORD("f 1"),      WORD("f 1 "),
					   WORD("f x a"),  WORD("l 0 a"),   WORD("o 0 a"),    WORD("d 0 .."),
					   WORD("d 0 ."),  WORD("f 0 a/b"), WORD("f 0 /etc"), WORD("F 0 a"),
					   WORD("f -1 a"), WORD("f 0 a\0b")};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(pull_entry_parse(bad[i], &e));
	char longest[256];
	memset(longest, 'n', sizeof(longest));
	assert_true(pull_name_is_good(slice_of(longest, 255)));
	assert_false(pull_name_is_good(slice_of(longest, 256)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spec),           cmocka_unit_test(test_spec_refused),
		cmocka_unit_test(test_spec_too_long),  cmocka_unit_test(test_result),
		cmocka_unit_test(test_result_refused), cmocka_unit_test(test_longest_result),
		cmocka_unit_test(test_done),           cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
