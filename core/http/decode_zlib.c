/* gzip and deflate, by zlib. A gzip body may be several members behind each other (RFC 1952). What HTTP calls deflate is
 * the zlib format, but some senders leave out its head and checksum; the first two bytes tell which it is. */
#include "core/http/decode_private.h"
#include "core/http/decode_alloc.h"

#include <stdlib.h>

#define ZLIB_CONST
#include <zlib.h>

#define WINDOW_BITS 15
#define GZIP_BITS (WINDOW_BITS + 16)
#define RAW_BITS (-WINDOW_BITS)
#define HEAD 5 /* bytes that are looked at before a deflate stream is trusted */

struct inflater {
	z_stream z;
	bool is_at_end; /* of a member, with nothing behind it yet */
	unsigned char head[HEAD];
	size_t n_head;
};

static void *zlib_alloc(void *opaque, unsigned items, unsigned size)
{
	return decode_alloc(opaque, (size_t)items * size);
}

static void *inflater_new(int bits)
{
	struct inflater *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->z.zalloc = zlib_alloc;
	f->z.zfree = decode_release;
	if (inflateInit2(&f->z, bits) == Z_OK)
		return f;
	free(f);
	return NULL;
}

static void *gzip_new(void)
{
	return inflater_new(GZIP_BITS);
}

static void *deflate_new(void)
{
	return inflater_new(WINDOW_BITS);
}

static void inflater_free(void *self)
{
	struct inflater *f = self;
	inflateEnd(&f->z);
	free(f);
}

static enum cage_status inflater_end(const void *self)
{
	const struct inflater *f = self;
	return f->is_at_end ? CAGE_OK : CAGE_EPROTO;
}

/* Goes on with the member that is open: until its end, or until there is no input or no room. */
static enum cage_status inflate_some(struct inflater *f, struct slice *in, struct decode_out *out)
{
	f->z.next_in = (const Bytef *)in->ptr;
	f->z.avail_in = (uInt)in->len;
	f->z.next_out = (Bytef *)out->ptr + out->len;
	f->z.avail_out = (uInt)(DECODE_OUT - out->len);
	int result = inflate(&f->z, Z_NO_FLUSH);
	*in = slice_from(*in, in->len - f->z.avail_in);
	out->len = DECODE_OUT - f->z.avail_out;
	switch (result) {
	case Z_STREAM_END:
		f->is_at_end = true;
		return CAGE_OK;
	case Z_OK:
	case Z_BUF_ERROR: /* nothing to do: that is no error */
		return f->z.avail_out == 0 ? CAGE_AGAIN : CAGE_OK;
	case Z_MEM_ERROR:
		return CAGE_ENOMEM;
	default:
		return CAGE_EPROTO;
	}
}

static enum cage_status gzip_feed(void *self, struct slice *in, struct decode_out *out)
{
	struct inflater *f = self;
	enum cage_status st;
	do {
		if (f->is_at_end && in->len > 0) {
			if (inflateReset(&f->z) != Z_OK)
				return CAGE_EPROTO;
			f->is_at_end = false;
		}
		st = f->is_at_end ? CAGE_OK : inflate_some(f, in, out);
	} while (st == CAGE_OK && in->len > 0);
	return st;
}

/* ---- deflate ---- */

static enum cage_status deflate_some(struct inflater *f, struct slice *in, struct decode_out *out)
{
	enum cage_status st = f->is_at_end ? CAGE_OK : inflate_some(f, in, out);
	if (f->is_at_end && in->len > 0)
		return CAGE_EPROTO;
	return st;
}

/* RFC 1950: the method, the window, and a check over both bytes. */
static bool is_zlib(const unsigned char *head)
{
	return (head[0] & 0x0f) == Z_DEFLATED && head[0] >> 4 <= WINDOW_BITS - 8 && (head[0] << 8 | head[1]) % 31 == 0;
}

/* What has a zlib head can be read as raw only if that head is the start of a stored block, with its length said twice.
 * Then two readers might see two different texts. */
static bool is_ambiguous(const unsigned char *head)
{
	return is_zlib(head) && (head[1] ^ head[3]) == 0xff && (head[2] ^ head[4]) == 0xff;
}

/* Takes one more byte of the head. So few bytes never decode to more than there is room for. */
static enum cage_status deflate_head(struct inflater *f, unsigned char byte, struct decode_out *out)
{
	f->head[f->n_head++] = byte;
	if (f->n_head == 1)
		return CAGE_OK;
	if (f->n_head == 2 && !is_zlib(f->head) && inflateReset2(&f->z, RAW_BITS) != Z_OK)
		return CAGE_EPROTO;
	if (f->n_head == HEAD && is_ambiguous(f->head))
		return CAGE_EPROTO;
	size_t from = f->n_head == 2 ? 0 : f->n_head - 1;
	struct slice bytes = slice_from(slice_of(f->head, f->n_head), from);
	return deflate_some(f, &bytes, out);
}

static enum cage_status deflate_feed(void *self, struct slice *in, struct decode_out *out)
{
	struct inflater *f = self;
	while (f->n_head < HEAD && in->len > 0) {
		enum cage_status st = deflate_head(f, (unsigned char)in->ptr[0], out);
		if (st != CAGE_OK)
			return st;
		*in = slice_from(*in, 1);
	}
	return deflate_some(f, in, out);
}

const struct decode_engine decode_gzip = {gzip_new, gzip_feed, inflater_end, inflater_free};
const struct decode_engine decode_deflate = {deflate_new, deflate_feed, inflater_end, inflater_free};
