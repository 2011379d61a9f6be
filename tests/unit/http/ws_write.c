/* Heads in every form of the length, masking at every alignment, and closes cut between characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/http/ws.h"

static const unsigned char key[WS_KEY_BYTES] = {0x37, 0xfa, 0x21, 0x3d};

static void assert_head(enum ws_opcode opcode, bool is_final, uint64_t len, const unsigned char *mask,
			struct slice wanted)
{
	char room[WS_HEAD_MAX];
	struct text t = text_in(room, sizeof(room));
	ws_write_head(&t, opcode, is_final, len, mask);
	assert_true(text_ok(&t));
	assert_int_equal(t.len, wanted.len);
	assert_memory_equal(t.ptr, wanted.ptr, wanted.len);
}

static void heads(void **state)
{
	(void)state;
	assert_head(WS_OP_TEXT, true, 0, NULL, SLICE("\x81\x00"));
	assert_head(WS_OP_TEXT, false, 5, NULL, SLICE("\x01\x05"));
	assert_head(WS_OP_CONTINUATION, true, 125, NULL, SLICE("\x80\x7d"));
	assert_head(WS_OP_BINARY, true, 126, NULL, SLICE("\x82\x7e\x00\x7e"));
	assert_head(WS_OP_BINARY, true, 65535, NULL, SLICE("\x82\x7e\xff\xff"));
	assert_head(WS_OP_BINARY, true, 65536, NULL, SLICE("\x82\x7f\0\0\0\0\0\x01\0\0"));
	assert_head(WS_OP_PING, true, 1, key, SLICE("\x89\x81\x37\xfa\x21\x3d"));
	assert_head(WS_OP_PONG, true, 0, key, SLICE("\x8a\x80\x37\xfa\x21\x3d"));
	assert_head(WS_OP_CLOSE, true, 2, key, SLICE("\x88\x82\x37\xfa\x21\x3d"));
	assert_head(WS_OP_TEXT, false, 300, key, SLICE("\x01\xfe\x01\x2c\x37\xfa\x21\x3d"));
	assert_head(WS_OP_TEXT, true, 0x0123456789abcdef, key,
		    SLICE("\x81\xff\x01\x23\x45\x67\x89\xab\xcd\xef\x37\xfa\x21\x3d"));
}

static void mask_of_the_rfc(void **state)
{
	(void)state;
	char out[5];
	ws_mask(out, SLICE("Hello"), key, 0);
	assert_memory_equal(out, "\x7f\x9f\x4d\x51\x58", 5);
	ws_mask(out, slice_of(out, 5), key, 0);
	assert_memory_equal(out, "Hello", 5);
}

/* Every length, offset and alignment against the rule itself; bytes beside the piece stay as they were. */
static void mask_at_every_place(void **state)
{
	(void)state;
	char in[48], out[48];
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (char)(i * 37);
	for (size_t at = 1; at < 9; at++)
		for (size_t len = 0; len + at < sizeof(in); len++)
			for (uint64_t offset = 0; offset < 9; offset++) {
				memset(out, 'x', sizeof(out));
				ws_mask(out + at, slice_of(in + 1, len), key, offset);
				for (size_t i = 0; i < len; i++)
					assert_int_equal((unsigned char)out[at + i],
							 (unsigned char)in[1 + i] ^ key[(offset + i) % 4]);
				assert_int_equal(out[at - 1], 'x');
				assert_int_equal(out[at + len], 'x');
			}
}

static void assert_close(unsigned code, struct slice reason, struct slice wanted)
{
	char room[WS_CONTROL_MAX];
	struct text t = text_in(room, sizeof(room));
	ws_write_close(&t, code, reason);
	assert_true(text_ok(&t));
	assert_int_equal(t.len, wanted.len);
	assert_memory_equal(t.ptr, wanted.ptr, wanted.len);
}

static void closes(void **state)
{
	(void)state;
	assert_close(1000, SLICE(""), SLICE("\x03\xe8"));
	assert_close(WS_CODE_POLICY, SLICE("why"), SLICE("\x03\xf0why"));
	assert_close(WS_CODE_NONE, SLICE("why"), SLICE(""));
	assert_close(1000, SLICE("ok \xff not ok"), SLICE("\x03\xe8ok "));
	assert_close(1000, SLICE("\xf0\x9f\x98"), SLICE("\x03\xe8"));
}

/* A character of four bytes stands in every place over the end. */
static void reason_is_cut_between_characters(void **state)
{
	(void)state;
	for (size_t before = WS_REASON_MAX - 5; before <= WS_REASON_MAX + 1; before++) {
		char reason[WS_REASON_MAX + 32], wanted[2 + WS_REASON_MAX];
		memset(reason, 'r', sizeof(reason));
		memcpy(reason + before, "\xf0\x9f\x98\x80", 4);
		bool is_whole = before + 4 <= WS_REASON_MAX;
		size_t kept = is_whole || before > WS_REASON_MAX ? WS_REASON_MAX : before;
		memcpy(wanted, "\x03\xe8", 2);
		memcpy(wanted + 2, reason, kept);
		assert_close(1000, slice_of(reason, sizeof(reason)), slice_of(wanted, 2 + kept));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads),
		cmocka_unit_test(mask_of_the_rfc),
		cmocka_unit_test(mask_at_every_place),
		cmocka_unit_test(closes),
		cmocka_unit_test(reason_is_cut_between_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
