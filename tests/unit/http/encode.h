/* Bodies for the tests of content decoding: each coding put on by the library that HTTP's own clients use. */
#ifndef CAGE_TESTS_HTTP_ENCODE_H
#define CAGE_TESTS_HTTP_ENCODE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <brotli/encode.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

#include "core/base/slice.h"

enum kind { GZIP, ZLIB, RAW, BR, ZSTD, KINDS };

static const char *const kind_name[KINDS] = {"gzip", "deflate", "deflate", "br", "zstd"};

/* Bytes of their own; freed with bytes_free(). */
struct bytes {
	char *ptr;
	size_t len;
};

static inline struct slice bytes_slice(const struct bytes *b)
{
	return slice_of(b->ptr, b->len);
}

static inline void bytes_free(struct bytes *b)
{
	free(b->ptr);
	*b = (struct bytes){NULL, 0};
}

static inline struct bytes bytes_new(size_t room)
{
	struct bytes b = {calloc(1, room + 1), room};
	assert_non_null(b.ptr);
	return b;
}

static inline struct bytes bytes_join(struct slice a, struct slice b)
{
	struct bytes out = bytes_new(a.len + b.len);
	if (a.len > 0)
		memcpy(out.ptr, a.ptr, a.len);
	if (b.len > 0)
		memcpy(out.ptr + a.len, b.ptr, b.len);
	return out;
}

/* bits as in deflateInit2(): 15 zlib, -15 raw, 31 gzip. */
static inline struct bytes encode_zlib(struct slice in, int bits, int level)
{
	z_stream z = {0};
	assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
	struct bytes out = bytes_new(deflateBound(&z, in.len));
	z.next_in = (const Bytef *)in.ptr;
	z.avail_in = (uInt)in.len;
	z.next_out = (Bytef *)out.ptr;
	z.avail_out = (uInt)out.len;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	out.len = z.total_out;
	deflateEnd(&z);
	return out;
}

static inline struct bytes encode_br(struct slice in, uint32_t window, bool is_large)
{
	BrotliEncoderState *e = BrotliEncoderCreateInstance(NULL, NULL, NULL);
	assert_non_null(e);
	BrotliEncoderSetParameter(e, BROTLI_PARAM_QUALITY, 5);
	BrotliEncoderSetParameter(e, BROTLI_PARAM_LARGE_WINDOW, is_large);
	BrotliEncoderSetParameter(e, BROTLI_PARAM_LGWIN, window);
	struct bytes out = bytes_new(BrotliEncoderMaxCompressedSize(in.len));
	size_t left = in.len, room = out.len;
	const uint8_t *next_in = (const uint8_t *)in.ptr;
	uint8_t *next_out = (uint8_t *)out.ptr;
	assert_true(BrotliEncoderCompressStream(e, BROTLI_OPERATION_FINISH, &left, &next_in, &room, &next_out, NULL));
	assert_true(BrotliEncoderIsFinished(e));
	out.len -= room;
	BrotliEncoderDestroyInstance(e);
	return out;
}

/* window: log2, which the frame keeps since it does not say how long its content is; 0: what the level has. */
static inline struct bytes encode_zstd(struct slice in, int window)
{
	ZSTD_CCtx *ctx = ZSTD_createCCtx();
	assert_non_null(ctx);
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_windowLog, window);
	struct bytes out = bytes_new(ZSTD_compressBound(in.len) + 64);
	ZSTD_inBuffer from = {in.ptr, in.len, 0};
	ZSTD_outBuffer to = {out.ptr, out.len, 0};
	if (window > 0)
		assert_false(ZSTD_isError(ZSTD_compressStream2(ctx, &to, &from, ZSTD_e_continue)));
	assert_int_equal(ZSTD_compressStream2(ctx, &to, &from, ZSTD_e_end), 0);
	out.len = to.pos;
	ZSTD_freeCCtx(ctx);
	return out;
}

static inline struct bytes encode(enum kind kind, struct slice in)
{
	switch (kind) {
	case GZIP:
		return encode_zlib(in, 31, 6);
	case ZLIB:
		return encode_zlib(in, 15, 6);
	case RAW:
		return encode_zlib(in, -15, 6);
	case BR:
		return encode_br(in, 22, false);
	case ZSTD:
		return encode_zstd(in, 0);
	case KINDS:
		break;
	}
	fail();
	return (struct bytes){NULL, 0};
}

#endif
