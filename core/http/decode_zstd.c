/* zstd, by libzstd: any number of frames, some of which may be skippable (RFC 8878), with windows of up to 8 MiB
 * (RFC 9659).
 *
 * The head of each frame is fed a byte at a time. The library has a short cut for frames that lie whole in one piece:
 * there it does not check the window, reads formats from before the RFC, and can take the second half of a head for a
 * frame. What is refused would depend on how the body was cut. */
#include "core/http/decode_private.h"
#include "core/http/decode_alloc.h"

#include <stdlib.h>

#define ZSTD_STATIC_LINKING_ONLY /* for memory of our own; the shared library has it */
#include <zstd.h>
#include <zstd_errors.h>

#include "core/base/limits.h"

#define FRAME_HEAD 18 /* bytes of the longest */

struct zstd {
	ZSTD_DCtx *ctx;
	uint64_t at; /* bytes of the frame that is open; 0: none is */
	bool has_frame;
};

static void *zstd_new(void)
{
	struct zstd *z = calloc(1, sizeof(*z));
	if (!z)
		return NULL;
	z->ctx = ZSTD_createDCtx_advanced((ZSTD_customMem){decode_alloc, decode_release, NULL});
	if (!z->ctx || ZSTD_isError(ZSTD_DCtx_setParameter(z->ctx, ZSTD_d_windowLogMax, LIMIT_DECODE_WINDOW))) {
		ZSTD_freeDCtx(z->ctx);
		free(z);
		return NULL;
	}
	return z;
}

static void zstd_free(void *self)
{
	struct zstd *z = self;
	ZSTD_freeDCtx(z->ctx);
	free(z);
}

static enum cage_status decode_some(struct zstd *z, struct slice *in, struct decode_out *out)
{
	ZSTD_inBuffer from = {in->ptr, z->at < FRAME_HEAD ? slice_head(*in, 1).len : in->len, 0};
	ZSTD_outBuffer to = {out->ptr, DECODE_OUT, out->len};
	size_t wanted = ZSTD_decompressStream(z->ctx, &to, &from);
	if (ZSTD_isError(wanted))
		return ZSTD_getErrorCode(wanted) == ZSTD_error_memory_allocation ? CAGE_ENOMEM : CAGE_EPROTO;
	*in = slice_from(*in, from.pos);
	out->len = to.pos;
	z->at += from.pos;
	if (wanted == 0) {
		z->at = 0;
		z->has_frame = true;
	}
	return out->len == DECODE_OUT ? CAGE_AGAIN : CAGE_OK;
}

static enum cage_status zstd_feed(void *self, struct slice *in, struct decode_out *out)
{
	enum cage_status st;
	do
		st = decode_some(self, in, out);
	while (st == CAGE_OK && in->len > 0);
	return st;
}

static enum cage_status zstd_end(const void *self)
{
	const struct zstd *z = self;
	return z->has_frame && z->at == 0 ? CAGE_OK : CAGE_EPROTO;
}

const struct decode_engine decode_zstd = {zstd_new, zstd_feed, zstd_end, zstd_free};
