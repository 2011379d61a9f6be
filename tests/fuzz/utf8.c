/* What a program wrote, as text, cut into pieces anywhere. Promises: it is UTF-8, the cuts make no difference, and what was UTF-8
 * stays as it was. */
#include "orchestrator/service/utf8.h"

#include "tests/fuzz/fuzz.h"

static struct slice text_of(struct evbuffer *b)
{
	size_t n = evbuffer_get_length(b);
	return slice_of(n ? (const char *)evbuffer_pullup(b, -1) : "", n);
}

/* In pieces of that many bytes. */
static void add_pieces(struct evbuffer *out, struct slice bytes, size_t piece)
{
	struct utf8_rest rest = {.n = 0};
	while (bytes.len > 0) {
		struct slice copy = fuzz_copy(fuzz_take(&bytes, piece));
		utf8_add(out, &rest, copy);
		PROMISE(rest.n < sizeof(rest.bytes));
		fuzz_free(&copy);
	}
	utf8_end(out, &rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = slice_of(data, size);
	size_t piece = 1 + (size_t)fuzz_number(&bytes, 1) % 8;
	struct evbuffer *whole = evbuffer_new(), *cut = evbuffer_new();
	PROMISE(whole && cut);
	add_pieces(whole, bytes, SIZE_MAX);
	add_pieces(cut, bytes, piece);
	PROMISE(slice_eq(text_of(whole), text_of(cut)));
	PROMISE(utf8_is_good(text_of(whole)));
	PROMISE(utf8_is_good(bytes) == slice_eq(text_of(whole), bytes));
	evbuffer_free(whole);
	evbuffer_free(cut);
	return 0;
}
