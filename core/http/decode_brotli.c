/* br, by libbrotlidec. Windows above 16 MiB are an extension that HTTP does not have, and stay off. */
#include "core/http/decode_private.h"
#include "core/http/decode_alloc.h"

#include <stdlib.h>

#include <brotli/decode.h>

struct brotli {
	BrotliDecoderState *state;
	bool is_at_end;
};

static void *brotli_new(void)
{
	struct brotli *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->state = BrotliDecoderCreateInstance(decode_alloc, decode_release, NULL);
	if (!b->state) {
		free(b);
		return NULL;
	}
	return b;
}

static void brotli_free(void *self)
{
	struct brotli *b = self;
	BrotliDecoderDestroyInstance(b->state);
	free(b);
}

/* The codes of failed allocations are a range of their own. */
static enum cage_status brotli_error(const struct brotli *b)
{
	BrotliDecoderErrorCode code = BrotliDecoderGetErrorCode(b->state);
	bool is_memory =
		code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES && code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES;
	return is_memory ? CAGE_ENOMEM : CAGE_EPROTO;
}

static BrotliDecoderResult decode_some(struct brotli *b, struct slice *in, struct decode_out *out)
{
	size_t left = in->len, room = DECODE_OUT - out->len;
	const uint8_t *next_in = (const uint8_t *)in->ptr;
	uint8_t *next_out = (uint8_t *)out->ptr + out->len;
	BrotliDecoderResult result = BrotliDecoderDecompressStream(b->state, &left, &next_in, &room, &next_out, NULL);
	*in = slice_from(*in, in->len - left);
	out->len = DECODE_OUT - room;
	return result;
}

static enum cage_status brotli_feed(void *self, struct slice *in, struct decode_out *out)
{
	struct brotli *b = self;
	if (b->is_at_end)
		return in->len == 0 ? CAGE_OK : CAGE_EPROTO;
	switch (decode_some(b, in, out)) {
	case BROTLI_DECODER_RESULT_SUCCESS:
		b->is_at_end = true;
		return in->len == 0 ? CAGE_OK : CAGE_EPROTO;
	case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT:
		return CAGE_OK;
	case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT:
		return CAGE_AGAIN;
	case BROTLI_DECODER_RESULT_ERROR:
		return brotli_error(b);
	}
	return CAGE_EPROTO;
}

static enum cage_status brotli_end(const void *self)
{
	const struct brotli *b = self;
	return b->is_at_end ? CAGE_OK : CAGE_EPROTO;
}

const struct decode_engine decode_brotli = {brotli_new, brotli_feed, brotli_end, brotli_free};
