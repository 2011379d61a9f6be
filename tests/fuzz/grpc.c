/* gRPC messages. Promises: a body that comes in pieces has the same messages and the same text, with the same verdict,
 * as one that comes whole. What is accepted is nothing but messages, each with as many bytes as it said. The text is
 * within the bounds of content decoding.
 *
 * Input: one byte that picks the encoding and the sizes of the pieces, then the body. */
#include "core/base/limits.h"
#include "core/http/grpc.h"
#include "tests/fuzz/fuzz.h"

#define KEPT MIB(1)

static const char *const encodings[] = {"", "gzip", "deflate", "identity"};

/* What came out: the start of it, and how much it was. */
struct output {
	enum cage_status status;
	char start[KEPT];
	uint64_t len, coded, messages, lengths;
};

static struct output whole, pieces;

static enum cage_status take(void *arg, unsigned codings, struct slice piece)
{
	struct output *o = arg;
	PROMISE(piece.len > 0 && codings <= 1);
	if (codings > 0) {
		o->coded += piece.len;
		return CAGE_OK;
	}
	if (o->len < KEPT)
		memcpy(o->start + o->len, piece.ptr, slice_head(piece, KEPT - (size_t)o->len).len);
	o->len += piece.len;
	return CAGE_OK;
}

static enum cage_status take_end(void *arg)
{
	struct output *o = arg;
	o->messages++;
	return CAGE_OK;
}

static enum cage_status take_begin(void *arg, struct slice prefix)
{
	struct output *o = arg;
	PROMISE(prefix.len == GRPC_PREFIX);
	o->lengths = o->lengths * 31 + (unsigned char)prefix.ptr[GRPC_PREFIX - 1];
	return CAGE_OK;
}

/* A first piece of `first` bytes, then such of `size`. */
static void inflate_body(struct output *o, struct slice encoding, struct slice body, size_t first, size_t size)
{
	struct grpc_inflate g;
	const struct grpc_sink sink = {take_begin, take, take_end, o};
	o->len = o->coded = o->messages = o->lengths = 0;
	o->status = grpc_inflate_init(&g, GRPC_NATIVE, encoding, &sink);
	PROMISE(o->status == CAGE_OK);
	while (o->status == CAGE_OK && body.len > 0) {
		struct slice piece = fuzz_copy(fuzz_take(&body, first));
		o->status = grpc_inflate_feed(&g, piece);
		fuzz_free(&piece);
		first = size;
	}
	if (o->status == CAGE_OK)
		o->status = grpc_inflate_end(&g);
	grpc_inflate_release(&g);
	PROMISE(!g.decoder);
}

/* Read as simply as it can be: how many messages there are, or -1 when it is not all messages. */
static int64_t count_messages(struct slice body, uint64_t *plain)
{
	int64_t n = 0;
	*plain = 0;
	for (; body.len > 0; n++) {
		bool is_short = body.len < GRPC_PREFIX;
		uint64_t flag = fuzz_number(&body, 1), len = fuzz_number(&body, 4);
		if (is_short || flag > 1 || len > LIMIT_GRPC_MESSAGE || len > body.len)
			return -1;
		*plain += flag == 0 ? len : 0;
		fuzz_take(&body, (size_t)len);
	}
	return n;
}

static void reading_must_be_right(struct slice encoding, struct slice body)
{
	uint64_t plain;
	int64_t n = count_messages(body, &plain);
	if (whole.status == CAGE_OK)
		PROMISE(n >= 0 && (uint64_t)n == whole.messages);
	if (whole.status == CAGE_OK && whole.coded == 0)
		PROMISE(whole.len == plain);
	if (whole.coded > 0)
		PROMISE(slice_eq(encoding, SLICE("gzip")) || slice_eq(encoding, SLICE("deflate")));
	uint64_t most = LIMIT_DECODE_FREE + LIMIT_DECODE_RATIO * whole.coded;
	PROMISE(whole.len <= plain + body.len + 2 * most);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice body = slice_of(data, size);
	size_t choice = (size_t)fuzz_number(&body, 1);
	struct slice encoding = slice_str(encodings[choice % 4]);
	inflate_body(&whole, encoding, body, SIZE_MAX, SIZE_MAX);
	inflate_body(&pieces, encoding, body, choice / 4 + 1, choice & 0x80 ? 1 + body.len / 64 : SIZE_MAX);
	reading_must_be_right(encoding, body);
	PROMISE(whole.messages == pieces.messages);
	PROMISE((whole.status == CAGE_OK) == (pieces.status == CAGE_OK));
	if (whole.status == CAGE_OK)
		PROMISE(whole.len == pieces.len && whole.coded == pieces.coded);
	size_t same = (size_t)(whole.len < pieces.len ? whole.len : pieces.len);
	PROMISE(memcmp(whole.start, pieces.start, same < KEPT ? same : KEPT) == 0);
	return 0;
}
