/* The scanner: all formats of a set at once, over a text that comes in pieces.
 *
 * Hyperscan in stream mode looks at every byte and says where some format may end; PCRE2, bounded, then confirms it on
 * the bytes around, and the format's own checks decide. A bound that is hit is a hit too (THREATS T32): what can't be
 * judged is not let through. A database is built once (for the catalogue: when cage is built) and loaded from bytes. */
#ifndef CAGE_INSPECTORS_SCAN_H
#define CAGE_INSPECTORS_SCAN_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "inspectors/scan/format.h"

/* ---- sets of formats ---- */

/* Most formats are looked for near long words only; the others everywhere. */
enum scan_pass { SCAN_EVERYWHERE, SCAN_NEAR_WORDS, SCAN_PASSES };

/* The databases of a set. */
struct scan_bytes {
	struct slice of[SCAN_PASSES]; /* empty: no format for that pass */
};

/* Compiles formats to databases in bytes, which live in the arena, and sets the max_len of each. CAGE_EPROTO:
 * formats[*at] can't be compiled, *why (in the arena) says what is wrong with it. */
enum cage_status scan_set_compile(struct format *formats, size_t n, struct arena *arena, struct scan_bytes *bytes,
				  size_t *at, const char **why) MUST_CHECK;

struct scan_set;

/* From formats and the bytes that scan_set_compile() made of them; both are borrowed and outlive the set. Bytes made on
 * another kind of processor are not used: the set is compiled anew. NULL: no memory. */
struct scan_set *scan_set_load(const struct format *formats, size_t n, const struct scan_bytes *bytes);

void scan_set_free(struct scan_set **set);

/* The catalogue that was built in; loaded at the first call. NULL: no memory. */
const struct scan_set *scan_catalogue(void);
const struct format *scan_catalogue_formats(size_t *n);

/* ---- scanning ---- */

enum scan_certainty {
	SCAN_CONFIRMED,
	SCAN_BOUNDED /* the exact match ran into a bound; said once for each format and text */
};

struct scan_hit {
	const struct format *format;
	enum scan_certainty certainty;
	struct slice value; /* borrowed for the call; empty with SCAN_BOUNDED */
	uint64_t offset;    /* of the value in the text */
};

typedef void scan_found(void *arg, const struct scan_hit *hit);

struct scan;

/* NULL: no memory. found may be called from within scan_feed and scan_end; it must not feed a scan of the same set. */
struct scan *scan_new(const struct scan_set *set, scan_found *found, void *arg);

/* CAGE_OK, or CAGE_ENOMEM/CAGE_ESYS: the engine failed, and the text must not pass. */
enum cage_status scan_feed(struct scan *s, struct slice piece) MUST_CHECK;
enum cage_status scan_end(struct scan *s) MUST_CHECK;

/* Ready for another text, which may report to somebody else. */
enum cage_status scan_reset(struct scan *s, void *arg) MUST_CHECK;

void scan_free(struct scan **s);

#endif
