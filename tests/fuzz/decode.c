/* Content codings. Promises: a body that comes in pieces decodes to the same bytes, with the same verdict, as one that
 * comes whole; what is refused gave no other bytes before than its start; nothing decodes to more than the bounds allow.
 *
 * Input: one byte that picks the codings, then the body. */
#include "core/base/limits.h"
#include "core/http/decode.h"
#include "tests/fuzz/fuzz.h"

#define KEPT MIB(1)
#define MANY_PIECES 256 /* then the rest comes at once */

static const char *const codings[] = {"gzip",           "deflate",          "br",          "zstd",
				      "gzip, br",       "zstd,gzip",        "br, deflate", "deflate,zstd",
				      "gzip,gzip,gzip", "br, zstd, deflate"};

/* What came out: the start of it, and how much it was. */
struct output {
	enum cage_status status;
	char start[KEPT];
	uint64_t len;
};

static struct output whole, pieces;

static enum cage_status take(void *arg, unsigned left, struct slice piece)
{
	struct output *o = arg;
	PROMISE(piece.len > 0);
	if (left > 0)
		return CAGE_OK;
	if (o->len < KEPT)
		memcpy(o->start + o->len, piece.ptr, slice_head(piece, KEPT - (size_t)o->len).len);
	o->len += piece.len;
	return CAGE_OK;
}

/* The size of the next piece; all that is left when seed is 0. */
static size_t next_size(uint64_t *seed, size_t n, size_t left)
{
	if (*seed == 0 || n >= MANY_PIECES)
		return left;
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return 1 + (size_t)(*seed >> 40) % ((size_t)1 << (*seed >> 33) % 10);
}

static void decode(struct output *o, struct slice list, struct slice body, uint64_t seed)
{
	struct decoder *d;
	o->len = 0;
	o->status = decoder_new(list, take, o, &d);
	PROMISE(o->status == CAGE_OK && d);
	for (size_t n = 0; o->status == CAGE_OK && body.len > 0; n++) {
		struct slice piece = fuzz_copy(fuzz_take(&body, next_size(&seed, n, body.len)));
		o->status = decoder_feed(d, piece);
		fuzz_free(&piece);
	}
	if (o->status == CAGE_OK)
		o->status = decoder_end(d);
	decoder_free(&d);
	PROMISE(!d);
}

/* A library may keep back what it has when it meets an error, so that the bound is not reached before. */
static void verdicts_must_match(void)
{
	if (whole.status == CAGE_OK || pieces.status == CAGE_OK)
		PROMISE(whole.status == pieces.status && whole.len == pieces.len);
	PROMISE(whole.status == CAGE_OK || whole.status == CAGE_EPROTO || whole.status == CAGE_ELIMIT);
	PROMISE(pieces.status == CAGE_OK || pieces.status == CAGE_EPROTO || pieces.status == CAGE_ELIMIT);
	size_t same = (size_t)(whole.len < pieces.len ? whole.len : pieces.len);
	PROMISE(memcmp(whole.start, pieces.start, same < KEPT ? same : KEPT) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice body = slice_of(data, size);
	uint64_t first = fuzz_number(&body, 1);
	struct slice list = slice_str(codings[first % (sizeof(codings) / sizeof(codings[0]))]);
	decode(&whole, list, body, 0);
	decode(&pieces, list, body, body.len + 1);
	PROMISE(whole.len <= LIMIT_DECODE_FREE + LIMIT_DECODE_RATIO * body.len);
	PROMISE(body.len > 0 || (whole.status == CAGE_OK && whole.len == 0));
	verdicts_must_match();
	return 0;
}
