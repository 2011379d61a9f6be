/* Path patterns at load time. Two patterns meet when some path matches both; that is decided exactly, by a table over
 * the suffixes of both: once over segments, and inside that over the bytes of two segments. */
#include "core/policy/pattern.h"

#include "core/base/limits.h"

static bool has_star(struct slice s)
{
	return slice_find(s, '*') != s.len;
}

const char *pattern_fault(struct slice pattern)
{
	while (pattern.len > 0) {
		struct slice segment = segment_cut(&pattern);
		if (segment_is_deep(segment))
			continue;
		for (size_t i = 1; i < segment.len; i++)
			if (segment.ptr[i] == '*' && segment.ptr[i - 1] == '*')
				return "two stars must be a whole segment: /**";
	}
	return NULL;
}

size_t pattern_weight(struct slice pattern)
{
	size_t weight = has_star(pattern) ? 0 : 1;
	while (pattern.len > 0) {
		struct slice segment = segment_cut(&pattern);
		if (segment_is_deep(segment))
			continue;
		weight++;
		for (size_t i = 0; i < segment.len; i++)
			weight += segment.ptr[i] != '*';
	}
	return weight;
}

struct slice pattern_prefix(struct slice pattern)
{
	size_t n = 0;
	for (struct slice rest = pattern; rest.len > 0;) {
		struct slice segment = segment_cut(&rest);
		if (segment_is_deep(segment))
			break;
		n += 1 + slice_find(segment, '*');
		if (has_star(segment))
			break;
	}
	return slice_head(pattern, n);
}

/* One row of a table, for a suffix of a: does it meet the suffix of b that starts at j? */
struct row {
	bool meets[LIMIT_PATH_PATTERN + 1];
};

/* A cell where one side starts with stars: they take nothing, or the first thing of the other side. */
static bool stars_meet(bool in_a, bool in_b, size_t j, const struct row *here, const struct row *below)
{
	return (in_a && below->meets[j]) || (in_b && here->meets[j + 1]);
}

static bool bytes_meet(struct slice a, size_t i, struct slice b, size_t j, const struct row *here,
		       const struct row *below)
{
	bool in_a = i < a.len, in_b = j < b.len;
	if ((in_a && a.ptr[i] == '*') || (in_b && b.ptr[j] == '*'))
		return stars_meet(in_a, in_b, j, here, below);
	if (!in_a || !in_b)
		return in_a == in_b;
	return a.ptr[i] == b.ptr[j] && below->meets[j + 1];
}

/* Is there a text without slashes that both match? */
static bool segments_overlap(struct slice a, struct slice b, uint64_t *steps)
{
	*steps += (a.len + 1) * (b.len + 1);
	if (!has_star(a) && !has_star(b))
		return slice_eq(a, b);
	struct row rows[2];
	rows[0].meets[0] = false;
	for (size_t i = a.len + 1; i-- > 0;)
		for (size_t j = b.len + 1; j-- > 0;)
			rows[i & 1].meets[j] = bytes_meet(a, i, b, j, &rows[i & 1], &rows[~i & 1]);
	return rows[0].meets[0];
}

struct segments {
	struct slice list[LIMIT_PATH_PATTERN];
	size_t n;
};

static void segments_of(struct segments *s, struct slice pattern)
{
	s->n = 0;
	while (pattern.len > 0)
		s->list[s->n++] = segment_cut(&pattern);
}

static bool suffixes_meet(const struct segments *a, size_t i, const struct segments *b, size_t j,
			  const struct row *here, const struct row *below, uint64_t *steps)
{
	bool in_a = i < a->n, in_b = j < b->n;
	if ((in_a && segment_is_deep(a->list[i])) || (in_b && segment_is_deep(b->list[j])))
		return stars_meet(in_a, in_b, j, here, below);
	if (!in_a || !in_b)
		return in_a == in_b;
	return below->meets[j + 1] && segments_overlap(a->list[i], b->list[j], steps);
}

bool patterns_overlap(struct slice a, struct slice b, uint64_t *steps)
{
	struct segments sa, sb;
	struct row rows[2];
	rows[0].meets[0] = false;
	segments_of(&sa, a);
	segments_of(&sb, b);
	*steps += (sa.n + 1) * (sb.n + 1);
	for (size_t i = sa.n + 1; i-- > 0;)
		for (size_t j = sb.n + 1; j-- > 0;)
			rows[i & 1].meets[j] = suffixes_meet(&sa, i, &sb, j, &rows[i & 1], &rows[~i & 1], steps);
	return rows[0].meets[0];
}
