/* Text in a buffer of fixed size. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "core/base/text.h"

static void pieces(void **state)
{
	(void)state;
	char buf[128];
	struct text t = text_in(buf, sizeof(buf));
	text_put(&t, SLICE("a"));
	text_put(&t, SLICE_NONE);
	text_put_char(&t, '=');
	text_put_u64(&t, 0);
	text_put_char(&t, ' ');
	text_put_u64(&t, UINT64_MAX);
	text_put_char(&t, ' ');
	text_put_hex(&t, "\x00\x9f\xff", 3);
	assert_true(text_ok(&t));
	assert_true(slice_eq(text_slice(&t), SLICE("a=0 18446744073709551615 009fff")));
}

static void exact_room_and_one_less(void **state)
{
	(void)state;
	char buf[5];
	struct text t = text_in(buf, 5);
	text_put(&t, SLICE("12345"));
	assert_true(text_ok(&t));
	text_put(&t, SLICE(""));
	assert_true(text_ok(&t));
	text_put_char(&t, '6');
	assert_false(text_ok(&t));
	t = text_in(buf, 4);
	text_put_u64(&t, 12345);
	assert_false(text_ok(&t));
	t = text_in(NULL, 0);
	text_put(&t, SLICE_NONE);
	assert_true(text_ok(&t));
	text_put_char(&t, 'x');
	assert_false(text_ok(&t));
}

static void overflow_is_remembered(void **state)
{
	(void)state;
	char buf[4];
	struct text t = text_in(buf, sizeof(buf));
	text_put(&t, SLICE("too long"));
	text_put(&t, SLICE("ok"));
	assert_false(text_ok(&t));
	assert_true(t.len <= sizeof(buf));
}

/* Each byte alone, between two others. */
static void json_of_every_byte(void **state)
{
	(void)state;
	static const char hex[] = "0123456789abcdef";
	for (unsigned c = 0; c < 256; c++) {
		char in[3] = {'x', (char)c, 'y'}, buf[16], want[16];
		struct text t = text_in(buf, sizeof(buf)), w = text_in(want, sizeof(want));
		text_put_json(&t, slice_of(in, 3));
		text_put_char(&w, 'x');
		if (c == '"' || c == '\\')
			text_put_char(&w, '\\');
		if (c < 0x20 || c > 0x7e) {
			char esc[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
			text_put(&w, slice_of(esc, 6));
		} else {
			text_put_char(&w, (char)c);
		}
		text_put_char(&w, 'y');
		assert_true(text_ok(&t) && slice_eq(text_slice(&t), text_slice(&w)));
	}
}

static void json_runs(void **state)
{
	(void)state;
	char buf[64];
	struct text t = text_in(buf, sizeof(buf));
	text_put_json(&t, SLICE("\"\"ab\n\nc\\"));
	assert_true(slice_eq(text_slice(&t), SLICE("\\\"\\\"ab\\u000a\\u000ac\\\\")));
	t = text_in(buf, 5);
	text_put_json(&t, SLICE("\n"));
	assert_false(text_ok(&t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces),
		cmocka_unit_test(exact_room_and_one_less),
		cmocka_unit_test(overflow_is_remembered),
		cmocka_unit_test(json_of_every_byte),
		cmocka_unit_test(json_runs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
