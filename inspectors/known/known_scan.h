/* Looks for known values and placeholders in a text that comes in pieces, for search.h. */
#ifndef CAGE_INSPECTORS_KNOWN_SCAN_H
#define CAGE_INSPECTORS_KNOWN_SCAN_H

#include "inspectors/known/known.h"

/* bytes: the match as it stands, and for a random placeholder with its digits; borrowed for the call. offset: of it in
 * the text. */
typedef void known_found(void *arg, const struct known_item *item, struct slice bytes, uint64_t offset);

struct known_scan;

/* NULL: no memory. The set outlives it. */
struct known_scan *known_scan_new(const struct known_set *set, known_found *found, void *arg);
enum cage_status known_scan_feed(struct known_scan *s, struct slice piece) MUST_CHECK;
enum cage_status known_scan_end(struct known_scan *s) MUST_CHECK;

/* Ready for another text, which may report to somebody else. */
void known_scan_reset(struct known_scan *s, void *arg);

/* Cleanses what it kept. */
void known_scan_free(struct known_scan **s);

#endif
