/* What the stack of codings (decode.c) knows of the libraries that undo them: a table of functions for each. */
#ifndef CAGE_HTTP_DECODE_PRIVATE_H
#define CAGE_HTTP_DECODE_PRIVATE_H

#include "core/http/decode.h"

#define DECODE_OUT 16384 /* bytes that an engine gives at once, and the most that it is fed at once */

/* Where decoded bytes go: room for DECODE_OUT, of which len are taken. */
struct decode_out {
	char *ptr;
	size_t len;
};

/* One coding. `self` is one stream at work, made by new(), which gives NULL without memory. */
struct decode_engine {
	void *(*new)(void);

	/* Takes bytes off the front of *in. CAGE_OK: all of them, and everything that they decode to is in out.
	 * CAGE_AGAIN: out is full; to be called again with the rest of *in, also when that is empty. */
	enum cage_status (*feed)(void *self, struct slice *in, struct decode_out *out);

	/* CAGE_EPROTO when the stream can't end here. */
	enum cage_status (*end)(const void *self);

	void (*free)(void *self);
};

extern const struct decode_engine decode_gzip;
extern const struct decode_engine decode_deflate;
extern const struct decode_engine decode_brotli;
extern const struct decode_engine decode_zstd;

#endif
