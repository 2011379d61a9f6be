/* What the loader must know of path patterns: which are well formed, which is more specific, which can meet. */
#ifndef CAGE_POLICY_PATTERN_H
#define CAGE_POLICY_PATTERN_H

#include "core/base/slice.h"

/* NULL when the stars of a canonical pattern are well placed, else what is wrong. */
const char *pattern_fault(struct slice pattern);

/* How specific: the bytes of all segments, each with the slash before it, without stars; a segment of two stars counts
 * nothing, and a pattern without any star counts one more. */
size_t pattern_weight(struct slice pattern);

/* The bytes that every path starts with that the pattern matches. */
struct slice pattern_prefix(struct slice pattern);

/* Is there a path that both match? Adds the work it took to *steps. */
bool patterns_overlap(struct slice a, struct slice b, uint64_t *steps);

/* Cuts the first segment, without its slash, off a path or pattern that is not empty. */
static inline struct slice segment_cut(struct slice *rest)
{
	struct slice s = slice_of(rest->ptr + 1, rest->len - 1);
	size_t n = slice_find(s, '/');
	*rest = slice_of(s.ptr + n, s.len - n);
	return slice_of(s.ptr, n);
}

/* Does the segment stand for any number of segments? */
static inline bool segment_is_deep(struct slice segment)
{
	return slice_eq(segment, SLICE("**"));
}

#endif
