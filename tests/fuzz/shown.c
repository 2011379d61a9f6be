/* Text of others for a terminal. Promises: nothing of it is a control, turns the direction of writing, or is no UTF-8; what was
 * shown is shown as it is when it is shown again, but for its escapes; a cut is within the room. */
#include "orchestrator/client/shown.h"
#include "tests/fuzz/fuzz.h"

static void must_be_harmless(struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		unsigned char next = i + 1 < s.len ? (unsigned char)s.ptr[i + 1] : 0;
		PROMISE(c >= 0x20 && c != 0x7f);
		PROMISE(c != 0xc2 || next >= 0xa0);           /* controls of the second kind */
		PROMISE(c != 0xc0 && c != 0xc1 && c <= 0xf4); /* no UTF-8 at all */
		PROMISE(c != 0xe2 || next != 0x80 || i + 2 >= s.len || ((unsigned char)s.ptr[i + 2] & 0x3f) < 0x2a ||
			((unsigned char)s.ptr[i + 2] & 0x3f) > 0x2e);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = fuzz_copy(slice_of(data, size));
	size_t room = 8 * size + 1;
	char *once = malloc(room), *again = malloc(room), small[16], *text = calloc(1, size + 1);
	PROMISE(once && again && text);
	struct text first = text_in(once, room), second = text_in(again, room);
	shown_put(&first, input);
	PROMISE(text_ok(&first));
	must_be_harmless(text_slice(&first));
	shown_put(&second, text_slice(&first));
	PROMISE(slice_eq(text_slice(&first), text_slice(&second)));
	if (size > 0)
		memcpy(text, data, size);
	PROMISE(strlen(shown(text, small, sizeof(small))) < sizeof(small));
	PROMISE(shown_width(small) < sizeof(small));
	free(once);
	free(again);
	free(text);
	fuzz_free(&input);
	return 0;
}
