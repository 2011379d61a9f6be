/* Which stretches of a text lie near long words. A token is a long word, and a text has few others: formats that have one
 * in whatever matches ("worded") need not be looked for elsewhere.
 *
 * A word is SCAN_WORD characters in a row of those that base64, hex and tokens are made of: [A-Za-z0-9+/_=-]. Beside such
 * words, what Hyperscan looks for has at most SCAN_REST bytes; tests/unit/scan/catalogue_lint.py proves that of each
 * format of the catalogue. */
#ifndef CAGE_INSPECTORS_NEAR_H
#define CAGE_INSPECTORS_NEAR_H

#include "core/base/slice.h"
#include "inspectors/views/classify.h"

#define SCAN_WORD BASE64_RUN
#define SCAN_REST 128
#define SCAN_AROUND (SCAN_REST + 4)                      /* and what \b looks at */
#define SCAN_GAP 192                                     /* bytes between stretches that are not worth leaving out */
#define SCAN_BEFORE (SCAN_WORD + SCAN_AROUND + SCAN_GAP) /* how far before a piece a stretch may begin */

struct near {
	uint64_t pos;   /* of the next piece in the text */
	uint64_t last;  /* which of the 64 bytes before it are of words */
	uint64_t done;  /* everything before was handed out or left out */
	uint64_t until; /* the stretch under way ends here; at `done` or before: there is none */
};

/* Told of each stretch [from, to) of the text in order; `from` is at most SCAN_BEFORE before the piece. False: no more. */
typedef bool near_stretch(void *arg, uint64_t from, uint64_t to);

/* False: it was told so. */
bool near_feed(struct near *n, struct slice piece, near_stretch *stretch, void *arg);

#endif
