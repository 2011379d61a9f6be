/* The exact match of one format: PCRE2 on the bytes where Hyperscan has seen one end.
 *
 * A text may go on behind the bytes that are known. An answer that more bytes could change is not given: it is
 * CONFIRM_MORE, and the caller asks again. So an answer never depends on where a text was cut. */
#ifndef CAGE_INSPECTORS_CONFIRM_H
#define CAGE_INSPECTORS_CONFIRM_H

#include "core/base/status.h"
#include "inspectors/scan/format.h"

enum confirm_result {
	CONFIRM_NONE,
	CONFIRM_MATCH,
	CONFIRM_MORE,   /* a match that begins at start may need bytes that are not there yet */
	CONFIRM_BOUNDED /* the match was given up */
};

/* Where to look: for a match that begins at `from` or later, but not behind `limit`. The byte before `from`, if there is
 * one, is only looked at. */
struct confirm_window {
	struct slice bytes;
	size_t from, limit;
	bool is_end; /* the text ends with these bytes */
};

struct confirm_match {
	size_t start, end;  /* in the window */
	struct slice value; /* group 1 if it took part, else all */
};

struct confirm;

/* NULL: no memory, or the pattern is wrong; then *why (PCRE2's words, in a buffer that the next call writes) says how. */
struct confirm *confirm_new(const struct format *format, const char **why);

/* The first match in the window, and whether its value passes the format's checks. */
enum confirm_result confirm_find(struct confirm *c, const struct confirm_window *w, struct confirm_match *match,
				 bool *passes) MUST_CHECK;

void confirm_free(struct confirm **c);

#endif
