/* The search: over all bytes where nothing can begin as fast as possible, then a comparison with the few ways that may
 * begin there. */
#include "inspectors/known/set.h"

/* What the comparisons at one place have come to. */
struct verdict {
	bool is_found, is_partial;
	struct known_match match;
};

static void try_way(const struct known_way *way, struct slice text, size_t at, struct verdict *v)
{
	size_t len;
	enum compare c = known_compare(way, slice_from(text, at), &len);
	if (c == COMPARE_GOOD)
		v->is_partial = true;
	if (c != COMPARE_EQUAL || (v->is_found && at + len <= v->match.end))
		return;
	v->is_found = true;
	v->match = (struct known_match){way->item, way->form, way->align, at, at + len};
}

/* A longer match may still come of what is partial. */
static enum known_answer answer(const struct verdict *v, size_t at, bool is_end, struct known_match *m)
{
	if (v->is_partial && !is_end) {
		*m = (struct known_match){.start = at};
		return KNOWN_PARTIAL;
	}
	if (!v->is_found)
		return KNOWN_NONE;
	*m = v->match;
	return KNOWN_FOUND;
}

/* What begins in the last bytes of a text that goes on, which are fewer than a start has. */
static enum known_answer try_short(const struct known_set *set, struct slice text, size_t at, struct known_match *m)
{
	struct verdict v = {0};
	if (!set->firsts[(unsigned char)text.ptr[at]])
		return KNOWN_NONE;
	if (text.len - at > 1 && !(set->pairs[known_pair(text.ptr + at)] & 1))
		return KNOWN_NONE;
	for (size_t i = 0; i < set->n_ways && !v.is_partial; i++)
		try_way(&set->ways[i], text, at, &v);
	return answer(&v, at, false, m);
}

/* What begins right there. */
static enum known_answer try_at(const struct known_set *set, struct slice text, size_t at, bool is_end,
				struct known_match *m)
{
	struct verdict v = {0};
	if (text.len - at < known_start_length(text.ptr + at))
		return is_end ? KNOWN_NONE : try_short(set, text, at, m);
	uint32_t key = known_start_key(text.ptr + at);
	unsigned bucket = known_bucket(key);
	for (uint32_t i = set->buckets[bucket]; i < set->buckets[bucket + 1]; i++)
		if (set->starts[i].key == key)
			try_way(&set->ways[set->starts[i].way], text, at, &v);
	return answer(&v, at, is_end, m);
}

/* What begins with the digit there, or in those of its bits that are free. */
static enum known_answer try_shared(const struct known_set *set, struct slice text, struct known_place place,
				    bool is_end, struct known_match *m)
{
	struct verdict v = {0};
	for (size_t i = 0; i < set->n_ways; i++)
		if (set->ways[i].form != KNOWN_BASE64 || set->ways[i].align >= place.align)
			try_way(&set->ways[i], text, place.at, &v);
	return answer(&v, place.at, is_end, m);
}

/* ---- the quick part ---- */

/* A bit for each of the first n places where all pairs of some start may stand. Without branches: in a long run of
 * digits nearly every pair is one that some value has. */
static inline unsigned likely_places(const struct known_set *set, const char *p, unsigned n)
{
	unsigned places = 0, first = set->pairs[known_pair(p)], second = set->pairs[known_pair(p + 1)];
	for (unsigned i = 0; i < n; i++) {
		unsigned third = set->pairs[known_pair(p + i + 2)];
		places |= (first & second >> 1 & third >> 2 & 1) << i;
		first = second;
		second = third;
	}
	return places;
}

/* The first place from `at` on, but before `end`, where something may begin; else end. KNOWN_START bytes are there from
 * each of these places on. */
static size_t next_likely(const struct known_set *set, const char *text, size_t at, size_t end)
{
	for (; end - at >= 6; at += 6) {
		if (!(set->pairs[known_pair(text + at + 2)] | set->pairs[known_pair(text + at + 5)]))
			continue;
		unsigned places = likely_places(set, text + at, 6);
		if (places)
			return at + (unsigned)__builtin_ctz(places);
	}
	while (at < end && !likely_places(set, text + at, 1))
		at++;
	return at;
}

/* ---- the whole of it ---- */

struct known_place known_behind(const struct known_match *m)
{
	unsigned align = (unsigned)(m->align + known_item_length(m->item)) % 3;
	if (m->form != KNOWN_BASE64 || align == 0)
		return (struct known_place){m->end, 0};
	return (struct known_place){m->end - 1, align};
}

enum known_answer known_next(const struct known_set *set, struct slice text, struct known_place from, size_t limit,
			     bool is_end, struct known_match *m)
{
	size_t at = from.at;
	enum known_answer a = KNOWN_NONE;
	if (known_set_is_empty(set) || at >= limit)
		return KNOWN_NONE;
	if (from.align > 0) {
		a = try_shared(set, text, from, is_end, m);
		at++;
	}
	size_t sure = text.len >= KNOWN_START ? text.len - KNOWN_START + 1 : 0;
	if (sure > limit)
		sure = limit;
	while (a == KNOWN_NONE && at < sure) {
		at = next_likely(set, text.ptr, at, sure);
		if (at < sure)
			a = try_at(set, text, at++, is_end, m);
	}
	for (; a == KNOWN_NONE && at < limit && !is_end; at++)
		a = try_short(set, text, at, m);
	return a;
}

enum known_answer known_find(const struct known_set *set, struct slice text, size_t from, bool is_end,
			     struct known_match *m)
{
	return known_next(set, text, (struct known_place){.at = from}, text.len, is_end, m);
}
