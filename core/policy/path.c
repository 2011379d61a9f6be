/* Matching a path against a pattern. Both are walked segment by segment; after a mismatch it goes on behind the newest
 * pair of stars with one segment more, and inside a segment the same with one star and one byte. Going back to the
 * newest stars is enough: whatever older ones could still take, the newest can take as well. */
#include "core/policy/pattern.h"
#include "core/policy/policy.h"

static bool segment_matches(struct slice pattern, struct slice text)
{
	size_t p = 0, t = 0;
	size_t star = pattern.len, taken = 0; /* the newest star, and up to where it has taken the text */
	while (t < text.len) {
		if (p < pattern.len && pattern.ptr[p] == '*') {
			star = p++;
			taken = t;
		} else if (p < pattern.len && pattern.ptr[p] == text.ptr[t]) {
			p++;
			t++;
		} else if (star < pattern.len) {
			p = star + 1;
			t = ++taken;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.ptr[p] == '*')
		p++;
	return p == pattern.len;
}

static bool only_deep_segments(struct slice pattern)
{
	while (pattern.len > 0)
		if (!segment_is_deep(segment_cut(&pattern)))
			return false;
	return true;
}

bool policy_path_matches(struct slice pattern, struct slice path)
{
	if (pattern.len == 0 || pattern.ptr[0] != '/' || path.len == 0 || path.ptr[0] != '/')
		return false;
	struct slice behind_deep = SLICE_NONE, taken = SLICE_NONE; /* pattern and path at the newest two stars */
	bool has_deep = false;
	while (path.len > 0) {
		struct slice pattern_rest = pattern, path_rest = path;
		struct slice want = pattern.len > 0 ? segment_cut(&pattern_rest) : SLICE_NONE;
		if (segment_is_deep(want)) {
			if (pattern_rest.len == 0)
				return true;
			has_deep = true;
			pattern = behind_deep = pattern_rest;
			taken = path;
		} else if (pattern.len > 0 && segment_matches(want, segment_cut(&path_rest))) {
			pattern = pattern_rest;
			path = path_rest;
		} else if (has_deep) {
			segment_cut(&taken);
			pattern = behind_deep;
			path = taken;
		} else {
			return false;
		}
	}
	return only_deep_segments(pattern);
}
