/* Content codings undone, for inspection only: the bytes that go on are the original ones.
 *
 * gzip, x-gzip, deflate (zlib or raw), br, zstd and identity, stacked up to LIMIT_CODINGS, in constant memory. A broken,
 * truncated or unknown coding, bytes behind its end, and more output than LIMIT_DECODE_RATIO allows are all errors: what
 * can't be read can't be let through (THREATS T26). */
#ifndef CAGE_HTTP_DECODE_H
#define CAGE_HTTP_DECODE_H

#include "core/base/slice.h"
#include "core/base/status.h"

/* Gets each piece, which is borrowed for the call, at every stage: `codings` is how many are still on it, so 0 is what
 * the body says, and the most is the body as it came. (A coding has places for text that it does not decode to: file
 * names, comments, frames to skip.) Anything but CAGE_OK ends the decoding with that status. */
typedef enum cage_status decode_sink(void *arg, unsigned codings, struct slice piece);

struct decoder;

/* At most LIMIT_DECODERS codings may be under way at once: CAGE_AGAIN beyond that.
 *
 * codings: the values of all Content-Encoding fields, joined by commas ("gzip, br": br was put on last, so it is undone
 * first). *out is NULL, with CAGE_OK, when there is nothing to undo. CAGE_EPROTO: a coding that we don't know, or too
 * many of them. */
enum cage_status decoder_new(struct slice codings, decode_sink *sink, void *arg, struct decoder **out) MUST_CHECK;

/* Is more than half of LIMIT_DECODERS under way? */
bool decoders_are_scarce(void);

/* CAGE_OK, CAGE_EPROTO (broken), CAGE_ELIMIT (too much output for its input), CAGE_ENOMEM, or what the sink said. After
 * anything but CAGE_OK the decoder is only to be freed. */
enum cage_status decoder_feed(struct decoder *d, struct slice piece) MUST_CHECK;

/* The body is over: CAGE_OK only when every coding has ended where the body does. An empty body is good. */
enum cage_status decoder_end(struct decoder *d) MUST_CHECK;

void decoder_free(struct decoder **d);

#endif
