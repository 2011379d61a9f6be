/* Lines as they stand in the log, with brackets and commas: nothing is parsed and written anew, so what arrives has the same bytes. */
#include <stdlib.h>
#include <zlib.h>

#include "core/base/clock.h"
#include "orchestrator/ship/ship.h"

#define GZIP_WINDOW (15 + 16) /* bits; with the head of gzip */
#define GZIP_MEMORY 8

bool batch_open(struct batch *b)
{
	*b = (struct batch){.most = LIMIT_SHIP_BATCH, .json = malloc(LIMIT_SHIP_BATCH)};
	b->room = compressBound(LIMIT_SHIP_BATCH) + 32;
	b->packed = malloc(b->room);
	return b->json && b->packed;
}

void batch_free(struct batch *b)
{
	free(b->json);
	free(b->packed);
	*b = (struct batch){0};
}

void batch_clear(struct batch *b)
{
	b->len = b->n_packed = 0;
	b->lines = 0;
}

/* One line fits in any case: it is far shorter than the largest batch. */
bool batch_add(struct batch *b, struct slice line)
{
	const size_t most = b->lines == 0 ? LIMIT_SHIP_BATCH : b->most;
	if (b->len + line.len + 2 > most)
		return false;
	if (b->lines == 0)
		b->since_us = clock_mono_us();
	b->json[b->len++] = b->lines++ == 0 ? '[' : ',';
	memcpy(b->json + b->len, line.ptr, line.len);
	b->len += line.len;
	return true;
}

bool batch_pack(struct batch *b)
{
	z_stream z = {0};
	b->json[b->len++] = ']';
	if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	z.next_in = (unsigned char *)b->json;
	z.avail_in = (unsigned)b->len;
	z.next_out = (unsigned char *)b->packed;
	z.avail_out = (unsigned)b->room;
	const bool ok = deflate(&z, Z_FINISH) == Z_STREAM_END;
	b->n_packed = b->room - z.avail_out;
	deflateEnd(&z);
	return ok;
}
